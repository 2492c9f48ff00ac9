//! Who changes something is asked again in the very transaction: what was taken from him since he was let in
//! he has no more.

use std::time::Duration;

use hango_domain::MessageId;
use hango_domain::access::{Role, Scope, visibility};
use hango_domain::agent::Agent;
use hango_domain::conversation::{Block, Message, NewMessage};
use hango_domain::people::{ApiKey, TenantStatus, User, UserStatus};
use hango_domain::run::{Change, Run};
use hango_domain::session::{OnBusy, Session};
use hango_ports::StoreFailure;
use hango_ports::agent_store::{AgentPatch, AgentStoreError};
use hango_ports::audit_store::{AuditFilter, AuditRow};
use hango_ports::identity_store::{IdentityStoreError, UserPatch};
use hango_ports::page::PageRequest;
use hango_ports::run_store::{RunFilter, RunStoreError};
use hango_ports::session_store::{SessionFilter, SessionPatch, SessionStoreError};

use crate::{Fixture, Place, owner};

const ALL: PageRequest = PageRequest {
    limit: 1000,
    after: None,
};

const MINUTE: Duration = Duration::from_mins(1);

/// Things for somebody to change, and who he is: an admin with a key for a minute.
struct Stage {
    place: Place,
    admin: Scope,
    /// A session with a queued run.
    waiting: Run,
    /// A session with a running run.
    running: Run,
    /// Somebody else, with a key.
    other: Scope,
}

/// All that is in a tenant.
#[derive(Debug, PartialEq)]
struct There {
    agents: Vec<Agent>,
    sessions: Vec<(Session, Vec<Message>)>,
    runs: Vec<Run>,
    users: Vec<User>,
    keys: Vec<ApiKey>,
    trail: Vec<AuditRow>,
}

impl Stage {
    async fn new(fixture: &Fixture) -> Self {
        let place = fixture.place().await;
        let admin = fixture.user(&place.owner, Role::Admin).await;
        let admin = fixture
            .keyed(&admin, Some(fixture.now().plus(MINUTE)))
            .await;
        let other = fixture.user(&place.owner, Role::Member).await;
        let other = fixture.keyed(&other, None).await;
        let session = fixture.session(&place.owner, place.agent.id).await;
        let running = fixture.new_run(&place.owner, session.id);
        let running = fixture.accept(running).await;
        fixture.held(running.id, owner(1)).await;
        let session = fixture.session(&place.owner, place.agent.id).await;
        let waiting = fixture
            .accept(fixture.new_run(&place.owner, session.id))
            .await;
        Self {
            place,
            admin,
            waiting,
            running,
            other,
        }
    }

    async fn there(&self, fixture: &Fixture) -> There {
        let (tenant, seen) = (self.place.tenant, self.place.seen());
        let stores = &fixture.stores;
        let mut there = There {
            agents: items(stores.agents.list(tenant, true, ALL).await),
            sessions: Vec::new(),
            runs: items(stores.runs.list(seen, RunFilter::default(), ALL).await),
            users: items(stores.identities.users(tenant, None, ALL).await),
            keys: items(stores.identities.keys(tenant, None, ALL).await),
            trail: items(stores.audit.list(tenant, AuditFilter::default(), ALL).await),
        };
        let sessions = stores.sessions.list(seen, SessionFilter::default(), ALL);
        for session in items(sessions.await) {
            let messages = fixture.messages(seen, session.id).await;
            there.sessions.push((session, messages));
        }
        there
    }

    /// Everything that the admin could do, each of which is refused, and leaves nothing.
    async fn nothing_can_be_done(&self, fixture: &Fixture) {
        let before = self.there(fixture).await;
        self.nothing_of_agents(fixture).await;
        self.nothing_of_sessions(fixture).await;
        self.nothing_of_runs(fixture).await;
        self.nothing_of_people(fixture).await;
        assert_eq!(self.there(fixture).await, before);
    }

    async fn nothing_of_agents(&self, fixture: &Fixture) {
        let (agents, by) = (&fixture.stores.agents, &self.admin);
        let agent = self.place.agent.id;
        let audit = || fixture.audit(by, "test.try", agent.0);
        let refused = |done: Result<(), AgentStoreError>| {
            let failure = AgentStoreError::Failure(StoreFailure::ActorRefused);
            assert_eq!(format!("{done:?}"), format!("{:?}", Err::<(), _>(failure)));
        };
        let patch = AgentPatch {
            name: Some("mine".to_owned()),
            ..AgentPatch::default()
        };

        refused(
            agents
                .create(fixture.new_agent(by), audit())
                .await
                .map(drop),
        );
        let update = agents.update(by.tenant, agent, None, patch, audit());
        refused(update.await.map(drop));
        refused(agents.archive(by.tenant, agent, audit()).await);
    }

    async fn nothing_of_sessions(&self, fixture: &Fixture) {
        let (sessions, by) = (&fixture.stores.sessions, &self.admin);
        let (seen, session) = (visibility(by), self.place.session.id);
        let audit = || fixture.audit(by, "test.try", session.0);
        let refused = |done: Result<(), SessionStoreError>| {
            let failure = SessionStoreError::Failure(StoreFailure::ActorRefused);
            assert_eq!(format!("{done:?}"), format!("{:?}", Err::<(), _>(failure)));
        };
        let new = || fixture.new_session(by, self.place.agent.id);
        let said = || NewMessage::user(MessageId(fixture.uuid()), vec![Block::text("hi")]);
        let patch = SessionPatch {
            title: Some("mine".to_owned()),
            metadata: None,
        };

        for once in [None, Some(fixture.once(by, "test"))] {
            refused(
                sessions
                    .create(new(), audit(), once.clone())
                    .await
                    .map(drop),
            );
            let append = sessions.append(seen, session, said(), audit(), once);
            refused(append.await.map(drop));
        }
        let update = sessions.update(seen, session, patch, audit());
        refused(update.await.map(drop));
        refused(sessions.delete(seen, session, audit()).await);
    }

    async fn nothing_of_runs(&self, fixture: &Fixture) {
        let (runs, by) = (&fixture.stores.runs, &self.admin);
        let refused = |done: Result<(), RunStoreError>| {
            let failure = RunStoreError::Failure(StoreFailure::ActorRefused);
            assert_eq!(format!("{done:?}"), format!("{:?}", Err::<(), _>(failure)));
        };
        let sessions = [&self.waiting, &self.running].map(|run| run.session_id);

        for session in [self.place.session.id, sessions[0], sessions[1]] {
            for on_busy in [OnBusy::Enqueue, OnBusy::Interrupt] {
                for once in [None, Some(fixture.once(by, "test"))] {
                    let mut new = fixture.new_run(by, session);
                    new.on_busy = on_busy;
                    let audit = fixture.audit(by, "run.create", new.id.0);
                    refused(runs.accept(new, audit, once).await.map(drop));
                }
            }
        }
        for run in [&self.waiting, &self.running] {
            refused(fixture.cancel(by, run.id).await.map(drop));
        }
    }

    async fn nothing_of_people(&self, fixture: &Fixture) {
        let (identities, by) = (&fixture.stores.identities, &self.admin);
        let audit = || fixture.audit(by, "test.try", by.user.0);
        let refused = |done: Result<(), IdentityStoreError>| {
            let failure = IdentityStoreError::Failure(StoreFailure::ActorRefused);
            assert_eq!(format!("{done:?}"), format!("{:?}", Err::<(), _>(failure)));
        };
        let user = fixture.new_user(by.tenant, Role::Member);
        let key = fixture.new_key(&User {
            id: self.other.user,
            ..user.clone()
        });
        let patch = || UserPatch {
            name: Some("Nobody".to_owned()),
            ..UserPatch::default()
        };

        refused(identities.create_user(user, audit()).await.map(drop));
        for changed in [self.other.user, by.user] {
            let update = identities.update_user(None, by.tenant, changed, patch(), audit());
            refused(update.await.map(drop));
        }
        refused(identities.create_key(None, key, audit()).await.map(drop));
        let key = self.other.key.expect("he has one");
        refused(identities.revoke_key(by.tenant, key, audit()).await);
        let suspended = TenantStatus::Suspended;
        let suspend = identities.set_tenant_status(by.tenant, suspended, audit());
        refused(suspend.await.map(drop));
    }

    /// What somebody else changes of a user.
    async fn change(&self, fixture: &Fixture, user: &Scope, patch: UserPatch) {
        fixture
            .change_user(&self.place.owner, user.user, patch)
            .await;
    }
}

fn items<T, E: std::fmt::Debug>(page: Result<hango_ports::page::Page<T>, E>) -> Vec<T> {
    page.expect("reads work").items
}

fn disabled() -> UserPatch {
    UserPatch {
        status: Some(UserStatus::Disabled),
        ..UserPatch::default()
    }
}

fn of_role(role: Role) -> UserPatch {
    UserPatch {
        role: Some(role),
        ..UserPatch::default()
    }
}

/// Who comes with a key that was revoked changes nothing.
pub async fn a_revoked_key_changes_nothing(fixture: Fixture) {
    let stage = Stage::new(&fixture).await;
    fixture.revoke(&stage.place.owner, &stage.admin).await;

    stage.nothing_can_be_done(&fixture).await;
}

/// Who comes with a key whose time is over changes nothing.
pub async fn an_expired_key_changes_nothing(fixture: Fixture) {
    let stage = Stage::new(&fixture).await;
    fixture.clock.advance(MINUTE);

    stage.nothing_can_be_done(&fixture).await;
}

/// Who was disabled changes nothing.
pub async fn a_disabled_user_changes_nothing(fixture: Fixture) {
    let stage = Stage::new(&fixture).await;
    stage.change(&fixture, &stage.admin, disabled()).await;

    stage.nothing_can_be_done(&fixture).await;
}

/// Nobody of a suspended tenant changes anything.
pub async fn a_suspended_tenant_changes_nothing(fixture: Fixture) {
    let stage = Stage::new(&fixture).await;
    let owner = &stage.place.owner;
    fixture.set_tenant(owner, TenantStatus::Suspended).await;

    stage.nothing_can_be_done(&fixture).await;
}

/// Who has a lesser role than he was let in with changes nothing as what he was.
pub async fn a_demoted_user_changes_nothing_as_what_he_was(fixture: Fixture) {
    let stage = Stage::new(&fixture).await;
    let member = of_role(Role::Member);
    stage.change(&fixture, &stage.admin, member).await;

    stage.nothing_can_be_done(&fixture).await;
}

/// Nobody comes with the key of another user, or of another tenant.
pub async fn a_key_is_its_users_alone(fixture: Fixture) {
    let mut stage = Stage::new(&fixture).await;
    let elsewhere = fixture.tenant().await;
    for key in [stage.other.key, elsewhere.key, Some(fixture.uuid().into())] {
        stage.admin.key = key;

        stage.nothing_can_be_done(&fixture).await;
    }
}

/// A key that is good is good to its last moment, and whoever got a greater role may go on.
pub async fn who_may_still_act_does(fixture: Fixture) {
    let stage = Stage::new(&fixture).await;
    stage
        .change(&fixture, &stage.admin, of_role(Role::Owner))
        .await;
    fixture
        .clock
        .advance(MINUTE.saturating_sub(Duration::from_micros(1)));

    let session = fixture.session(&stage.admin, stage.place.agent.id).await;

    fixture
        .accept(fixture.new_run(&stage.admin, session.id))
        .await;
    let cancelled = fixture.cancel(&stage.admin, stage.running.id).await;
    assert!(cancelled.is_ok(), "{cancelled:?}");
}

/// Who changes himself may do so as he was; then he may no more.
pub async fn who_steps_down_does_it_himself(fixture: Fixture) {
    for patch in [disabled(), of_role(Role::Member)] {
        let stage = Stage::new(&fixture).await;
        fixture
            .change_user(&stage.admin, stage.admin.user, patch)
            .await;
        stage.nothing_can_be_done(&fixture).await;
    }
    let stage = Stage::new(&fixture).await;
    fixture.revoke(&stage.admin, &stage.admin).await;
    stage.nothing_can_be_done(&fixture).await;
}

/// A refusal is on record whoever asked.
pub async fn a_refusal_is_recorded_whoever_asked(fixture: Fixture) {
    let stage = Stage::new(&fixture).await;
    fixture.revoke(&stage.place.owner, &stage.admin).await;
    let before = stage.there(&fixture).await.trail.len();

    let row = fixture.audit(&stage.admin, "session.refuse", stage.admin.user.0);
    let recorded = fixture.stores.audit.record(row).await;

    recorded.expect("the store works");
    assert_eq!(stage.there(&fixture).await.trail.len(), before + 1);
}

/// What executes a run is nobody's key: its rights are another rule.
pub async fn a_run_goes_on_whatever_becomes_of_the_key_that_made_it(fixture: Fixture) {
    let stage = Stage::new(&fixture).await;
    let session = fixture.session(&stage.admin, stage.place.agent.id).await;
    let run = fixture
        .accept(fixture.new_run(&stage.admin, session.id))
        .await;
    fixture.revoke(&stage.place.owner, &stage.admin).await;
    stage.change(&fixture, &stage.admin, disabled()).await;

    let lease = fixture.held(run.id, owner(2)).await;

    fixture
        .written(Change::Answer(fixture.answer(lease, 1, 1, 1)))
        .await;
    let calls = fixture.on_record(&stage.place, run.id).await.calls;
    let turn = fixture.boundary(lease, 1, &calls);
    fixture.written(Change::CompleteTurn(turn)).await;
    fixture
        .written(Change::Finish(fixture.finish(lease, 2)))
        .await;
}
