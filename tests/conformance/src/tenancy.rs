//! What a caller may not see is not there: not to be read, not to be changed, not even to be refused.

use hango_domain::MessageId;
use hango_domain::access::{Role, Scope, visibility};
use hango_domain::conversation::{Block, NewMessage};
use hango_domain::run::Change;
use hango_domain::session::OnBusy;
use hango_ports::agent_store::{AgentPatch, AgentRef, AgentStoreError};
use hango_ports::audit_store::AuditFilter;
use hango_ports::page::PageRequest;
use hango_ports::run_store::{RunFilter, RunStoreError};
use hango_ports::session_store::{MessageQuery, SessionFilter, SessionPatch, SessionStoreError};

use crate::{Fixture, Place, owner};

const ALL: PageRequest = PageRequest {
    limit: 100,
    after: None,
};

/// The caller finds nothing of the place, and changes nothing in it.
async fn nothing_is_there(fixture: &Fixture, place: &Place, run: hango_domain::RunId, by: &Scope) {
    let (seen, session) = (visibility(by), place.session.id);
    let before = fixture.on_record(place, run).await;
    let audit = || fixture.audit(by, "test.try", session.0);

    let runs = &fixture.stores.runs;
    assert_eq!(runs.find(seen, run).await.expect("reads work"), None);
    let page = runs.list(seen, RunFilter::default(), ALL).await;
    assert_eq!(page.expect("reads work").items, []);
    assert_eq!(runs.tool_calls(seen, run).await.expect("reads work"), None);
    assert_eq!(
        runs.events(seen, run, 0, 9).await.expect("reads work"),
        None
    );
    let cancelled = fixture.cancel(by, run).await;
    assert!(matches!(cancelled, Err(RunStoreError::NotFound)));
    for on_busy in [OnBusy::Enqueue, OnBusy::Reject, OnBusy::Interrupt] {
        let mut new = fixture.new_run(by, session);
        new.on_busy = on_busy;
        let accepted = fixture.try_accept(new).await;
        assert!(matches!(accepted, Err(RunStoreError::NotFound)));
    }
    let mut known = fixture.new_run(by, session);
    known.id = run;
    let accepted = fixture.try_accept(known).await;
    assert!(matches!(accepted, Err(RunStoreError::NotFound)));

    let sessions = &fixture.stores.sessions;
    assert_eq!(
        sessions.find(seen, session).await.expect("reads work"),
        None
    );
    let page = sessions.list(seen, SessionFilter::default(), ALL).await;
    assert_eq!(page.expect("reads work").items, []);
    let query = MessageQuery {
        after_seq: 0,
        run: None,
        limit: 9,
    };
    let messages = sessions.messages(seen, session, query).await;
    assert_eq!(messages.expect("reads work"), None);
    let message = NewMessage::user(MessageId(fixture.uuid()), vec![Block::text("hi")]);
    let appended = sessions.append(seen, session, message, audit(), None).await;
    assert!(matches!(appended, Err(SessionStoreError::NotFound)));
    let patch = SessionPatch {
        title: Some("mine".to_owned()),
        metadata: None,
    };
    let updated = sessions.update(seen, session, patch, audit()).await;
    assert!(matches!(updated, Err(SessionStoreError::NotFound)));
    let deleted = sessions.delete(seen, session, audit()).await;
    assert!(matches!(deleted, Err(SessionStoreError::NotFound)));

    assert_eq!(fixture.on_record(place, run).await, before);
    let found = sessions.find(place.seen(), session).await;
    assert_eq!(found.expect("reads work"), Some(place.session.clone()));
    let filter = AuditFilter {
        actor_id: Some(by.user),
        ..AuditFilter::default()
    };
    let rows = fixture.stores.audit.list(by.tenant, filter, ALL).await;
    let rows = rows.expect("reads work").items;
    assert!(
        rows.iter()
            .all(|row| row.action != "test.try" && row.action != "run.create")
    );
}

/// Another tenant's owner sees nothing.
pub async fn another_tenant_sees_nothing(fixture: Fixture) {
    let (place, lease, _) = fixture.answered(1, 1).await;
    let stranger = fixture.tenant().await;

    nothing_is_there(&fixture, &place, lease.run, &stranger).await;
}

/// A member sees nothing of what another one created.
pub async fn another_member_sees_nothing(fixture: Fixture) {
    let (place, lease, _) = fixture.answered(1, 1).await;
    let member = fixture.user(&place.owner, Role::Member).await;

    nothing_is_there(&fixture, &place, lease.run, &member).await;
}

/// A member sees and changes what he created himself, and all that administer the tenant do too.
pub async fn a_members_session_is_his_and_the_admins(fixture: Fixture) {
    let place = fixture.place().await;
    let member = fixture.user(&place.owner, Role::Member).await;
    let admin = fixture.user(&place.owner, Role::Admin).await;
    let session = fixture.session(&member, place.agent.id).await;
    let run = fixture.accept(fixture.new_run(&member, session.id)).await;
    let lease = fixture.held(run.id, owner(1)).await;
    fixture
        .written(Change::Finish(fixture.finish(lease, 1)))
        .await;

    for scope in [&member, &admin, &place.owner] {
        let seen = visibility(scope);
        let found = fixture.stores.runs.find(seen, run.id).await;
        assert!(found.expect("reads work").is_some());
        assert_eq!(fixture.messages(seen, session.id).await.len(), 2);
        let new = fixture.new_run(scope, session.id);
        let accepted = fixture.accept(new).await;
        fixture.cancel(scope, accepted.id).await.expect("it waits");
    }
    let seen = visibility(&member);
    let page = fixture
        .stores
        .sessions
        .list(seen, SessionFilter::default(), ALL);
    assert_eq!(page.await.expect("reads work").items, [session]);
}

/// An agent is its tenant's alone: another one can neither read, change nor use it.
pub async fn an_agent_is_its_tenants_alone(fixture: Fixture) {
    let place = fixture.place().await;
    let stranger = fixture.tenant().await;
    let agents = &fixture.stores.agents;
    let id = place.agent.id;
    let audit = || fixture.audit(&stranger, "agent.update", id.0);

    for agent in [AgentRef::Id(id), AgentRef::Slug(place.agent.slug.clone())] {
        let found = agents.find(stranger.tenant, agent.clone()).await;
        assert_eq!(found.expect("reads work"), None);
        let mut new = fixture.new_session(&stranger, id);
        new.agent = agent;
        let made = fixture.stores.sessions.create(new, audit(), None).await;
        assert!(matches!(made, Err(SessionStoreError::UnknownAgent)));
    }
    let page = agents.list(stranger.tenant, true, ALL).await;
    assert_eq!(page.expect("reads work").items, []);
    let patch = AgentPatch::default();
    let updated = agents
        .update(stranger.tenant, id, None, patch, audit())
        .await;
    assert!(matches!(updated, Err(AgentStoreError::NotFound)));
    let archived = agents.archive(stranger.tenant, id, audit()).await;
    assert!(matches!(archived, Err(AgentStoreError::NotFound)));
    let found = agents.find(place.tenant, AgentRef::Id(id)).await;
    assert_eq!(found.expect("reads work"), Some(place.agent));
}

/// A tenant's audit trail is its own.
pub async fn an_audit_trail_is_its_tenants_alone(fixture: Fixture) {
    let place = fixture.place().await;
    fixture.run(&place).await;
    let stranger = fixture.tenant().await;
    let audit = &fixture.stores.audit;

    let rows = audit
        .list(stranger.tenant, AuditFilter::default(), ALL)
        .await;

    let rows = rows.expect("reads work").items;
    let actions: Vec<&str> = rows.iter().map(|row| row.action.as_str()).collect();
    assert_eq!(actions, ["tenant.create"]);
}
