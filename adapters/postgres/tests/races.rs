//! Several processes change the same things at once, and what was true before stays true.

use std::sync::Arc;

use futures::future::{join, join_all};
use hango_conformance::{Fixture, ManualClock, Place};
use hango_domain::access::Role;
use hango_domain::conversation::{Block, Message, NewMessage};
use hango_domain::{MessageId, SessionId, UserId};
use hango_ports::Stores;
use hango_ports::agent_store::{AgentPatch, AgentStoreError};
use hango_ports::identity_store::{IdentityStoreError, UserPatch};
use hango_ports::session_store::{MessageQuery, SessionStoreError};
use hango_postgres::{Options, PostgresStore};
use hango_test_database::TestDatabase;
use sqlx::{Connection, PgConnection};

/// How often a race is run: one that is lost now and then is found.
const ROUNDS: u32 = 25;

/// Two processes on one database.
struct Processes {
    /// The first one.
    fixture: Fixture,
    /// The second one's stores.
    other: Stores,
    database: TestDatabase,
}

impl Processes {
    async fn start() -> Self {
        let database = TestDatabase::new().await;
        let clock = Arc::new(ManualClock::default());
        let open = || {
            let options = Options {
                clock: Some(clock.clone()),
                ..Options::new(database.url())
            };
            Arc::new(PostgresStore::open(options).expect("the URL is one of PostgreSQL"))
        };
        let (first, second) = (open(), open());
        first.migrate().await.expect("the schema is brought up");
        Self {
            fixture: Fixture::new(first.stores(), clock.clone()),
            other: second.stores(),
            database,
        }
    }

    /// The first process' stores, or the second one's.
    fn stores(&self, number: usize) -> &Stores {
        if number.is_multiple_of(2) {
            &self.fixture.stores
        } else {
            &self.other
        }
    }

    async fn say(
        &self,
        process: usize,
        place: &Place,
        session: SessionId,
    ) -> Result<Message, SessionStoreError> {
        let id = MessageId(self.fixture.uuid());
        let message = NewMessage::user(id, vec![Block::text("hello")]);
        let audit = self
            .fixture
            .audit(&place.owner, "message.create", session.0);
        let sessions = &self.stores(process).sessions;
        sessions
            .append(place.seen(), session, message, audit, None)
            .await
    }

    /// How many rows a query counts.
    async fn count(&self, query: &'static str) -> i64 {
        let mut conn = PgConnection::connect(self.database.url())
            .await
            .expect("the database is there");
        sqlx::query_scalar(query)
            .fetch_one(&mut conn)
            .await
            .expect("reads work")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_numbered_without_gaps_whoever_appends_them() {
    let processes = Processes::start().await;
    let place = processes.fixture.place().await;
    let session = place.session.id;

    let said = (0..40).map(|process| processes.say(process, &place, session));
    for message in join_all(said).await {
        message.expect("each is appended");
    }

    let all = MessageQuery {
        after_seq: 0,
        run: None,
        limit: 100,
    };
    let sessions = &processes.other.sessions;
    let messages = sessions.messages(place.seen(), session, all).await;
    let messages = messages.expect("reads work").expect("it is there");
    let numbers: Vec<_> = messages.iter().map(|message| message.seq).collect();
    assert_eq!(numbers, (1..=40).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_session_leaves_no_message_that_came_meanwhile() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    let place = fixture.place().await;
    for _ in 0..ROUNDS {
        let session = fixture.session(&place.owner, place.agent.id).await.id;
        let audit = fixture.audit(&place.owner, "session.delete", session.0);
        let removed = fixture.stores.sessions.delete(place.seen(), session, audit);
        let said = join_all((0..6).map(|process| processes.say(process, &place, session)));

        let (removed, said) = join(removed, said).await;

        removed.expect("nothing is pending");
        for message in said {
            assert!(matches!(message, Ok(_) | Err(SessionStoreError::NotFound)));
        }
    }
    assert_eq!(processes.count("select count(*) from messages").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_active_owner_stays_one_whoever_demotes_him() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    for _ in 0..ROUNDS {
        let one = fixture.tenant().await;
        let two = fixture.user(&one, Role::Owner).await;
        let demote = async |process: usize, user: UserId| {
            let audit = fixture.audit(&one, "user.update", user.0);
            let patch = UserPatch {
                role: Some(Role::Member),
                ..UserPatch::default()
            };
            let identities = &processes.stores(process).identities;
            identities
                .update_user(None, one.tenant, user, patch, audit)
                .await
        };

        let both = join(demote(0, one.user), demote(1, two.user)).await;

        let mut both = [both.0, both.1];
        both.sort_by_key(Result::is_err);
        assert!(
            matches!(both, [Ok(_), Err(IdentityStoreError::LastOwner)]),
            "{both:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_taken_once_whoever_takes_it() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    let scope = fixture.tenant().await;
    for _ in 0..ROUNDS {
        let slug = fixture.name();
        let create = async |process: usize| {
            let mut agent = fixture.new_agent(&scope);
            agent.slug.clone_from(&slug);
            let audit = fixture.audit(&scope, "agent.create", agent.id.0);
            processes.stores(process).agents.create(agent, audit).await
        };
        let both = join(create(0), create(1)).await;
        let mut both = [both.0, both.1];
        both.sort_by_key(Result::is_err);
        assert!(
            matches!(both, [Ok(_), Err(AgentStoreError::SlugTaken)]),
            "{both:?}"
        );

        let email = fixture.name();
        let add = async |process: usize| {
            let mut user = fixture.new_user(scope.tenant, Role::Member);
            user.email.clone_from(&email);
            let audit = fixture.audit(&scope, "user.create", user.id.0);
            let identities = &processes.stores(process).identities;
            identities.create_user(user, audit).await
        };
        let both = join(add(0), add(1)).await;
        let mut both = [both.0, both.1];
        both.sort_by_key(Result::is_err);
        assert!(
            matches!(both, [Ok(_), Err(IdentityStoreError::EmailTaken)]),
            "{both:?}"
        );
    }
    // Who was refused left no trace.
    let agents = "select count(*) from audit_events where action = 'agent.create'";
    assert_eq!(processes.count(agents).await, i64::from(ROUNDS));
    let users = "select count(*) from audit_events where action = 'user.create'";
    assert_eq!(processes.count(users).await, i64::from(ROUNDS));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_changed_once_whoever_changes_it() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    let scope = fixture.tenant().await;
    let agent = fixture.agent(&scope).await;
    for version in 1..=ROUNDS {
        let change = async |process: usize| {
            let audit = fixture.audit(&scope, "agent.update", agent.id.0);
            let patch = AgentPatch {
                name: Some(format!("by {process} upon {version}")),
                ..AgentPatch::default()
            };
            let agents = &processes.stores(process).agents;
            agents
                .update(scope.tenant, agent.id, Some(version), patch, audit)
                .await
        };

        let (made, refused): (Vec<_>, Vec<_>) = join_all((0..8).map(change))
            .await
            .into_iter()
            .partition(Result::is_ok);

        let made = made.into_iter().flatten().map(|agent| agent.version);
        assert_eq!(made.collect::<Vec<_>>(), [version + 1]);
        for refused in refused {
            assert!(matches!(
                refused,
                Err(AgentStoreError::VersionMismatch { found }) if found == version + 1
            ));
        }
    }
}
