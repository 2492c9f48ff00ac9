//! Sessions and their messages.

use std::time::Duration;

use hango_domain::MessageId;
use hango_domain::conversation::{Block, Message, NewMessage};
use hango_domain::run::Change;
use hango_domain::session::Session;
use hango_ports::agent_store::AgentRef;
use hango_ports::audit_store::AuditFilter;
use hango_ports::page::PageRequest;
use hango_ports::run_store::RunStoreError;
use hango_ports::session_store::{MessageQuery, SessionFilter, SessionPatch, SessionStoreError};
use serde_json::{Map, json};

use crate::{Fixture, Place, owner};

const ALL: PageRequest = PageRequest {
    limit: 100,
    after: None,
};

async fn append(fixture: &Fixture, place: &Place) -> Result<Message, SessionStoreError> {
    let message = NewMessage::user(MessageId(fixture.uuid()), vec![Block::text("By the way:")]);
    let audit = fixture.audit(&place.owner, "message.create", message.id.0);
    let sessions = &fixture.stores.sessions;
    let id = place.session.id;
    sessions
        .append(place.seen(), id, message, audit, None)
        .await
}

async fn delete(fixture: &Fixture, place: &Place) -> Result<(), SessionStoreError> {
    let audit = fixture.audit(&place.owner, "session.delete", place.session.id.0);
    let sessions = &fixture.stores.sessions;
    sessions.delete(place.seen(), place.session.id, audit).await
}

/// A session is made with an agent by its id or its slug, and dated by the store.
pub async fn a_session_is_found_as_it_was_made(fixture: Fixture) {
    let place = fixture.place().await;
    let mut new = fixture.new_session(&place.owner, place.agent.id);
    new.agent = AgentRef::Slug(place.agent.slug.clone());
    let audit = fixture.audit(&place.owner, "session.create", new.id.0);
    let sessions = &fixture.stores.sessions;

    let made = sessions.create(new.clone(), audit, None).await;

    let expected = Session {
        id: new.id,
        tenant_id: place.tenant,
        agent_id: place.agent.id,
        created_by: place.owner.user,
        title: new.title,
        metadata: new.metadata,
        created_at: fixture.now(),
        updated_at: fixture.now(),
    };
    assert_eq!(made.expect("the agent is there"), expected);
    let found = sessions.find(place.seen(), new.id).await;
    assert_eq!(found.expect("reads work"), Some(expected));
}

/// A change of a session replaces what it names.
pub async fn a_session_is_changed_in_what_is_named(fixture: Fixture) {
    let place = fixture.place().await;
    fixture.clock.advance(Duration::from_secs(5));
    let sessions = &fixture.stores.sessions;
    let update = async |patch| {
        let audit = fixture.audit(&place.owner, "session.update", place.session.id.0);
        let changed = sessions.update(place.seen(), place.session.id, patch, audit);
        changed.await.expect("the session is there")
    };

    update(SessionPatch {
        title: Some("Another".to_owned()),
        metadata: None,
    })
    .await;
    let changed = update(SessionPatch {
        title: None,
        metadata: Some(Map::from_iter([("a".to_owned(), json!([1]))])),
    })
    .await;

    let expected = Session {
        title: "Another".to_owned(),
        metadata: Map::from_iter([("a".to_owned(), json!([1]))]),
        updated_at: fixture.now(),
        ..place.session.clone()
    };
    assert_eq!(changed, expected);
    let found = sessions.find(place.seen(), place.session.id).await;
    assert_eq!(found.expect("reads work"), Some(expected));
}

/// A message without a run takes the next number of its session.
pub async fn a_message_without_a_run_stands_between_those_of_runs(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    fixture
        .written(Change::Finish(fixture.finish(lease, 1)))
        .await;

    let appended = append(&fixture, &place).await.expect("nothing is running");

    assert_eq!((appended.seq, appended.run_id), (3, None));
    assert_eq!(appended.created_at, fixture.now());
    let next = fixture.run(&place).await;
    fixture.held(next.id, owner(1)).await;
    let messages = fixture.messages(place.seen(), place.session.id).await;
    let runs: Vec<_> = messages.iter().map(|message| message.run_id).collect();
    let expected = [Some(lease.run), Some(lease.run), None, Some(next.id)];
    assert_eq!(runs, expected);
    assert_eq!(messages[2], appended);
}

/// Nobody speaks while a run is running; while one waits, everybody may.
pub async fn a_running_run_refuses_messages(fixture: Fixture) {
    let place = fixture.place().await;
    let run = fixture.run(&place).await;
    append(&fixture, &place).await.expect("nothing is running");
    let lease = fixture.held(run.id, owner(1)).await;

    let refused = append(&fixture, &place).await;

    assert!(matches!(
        refused,
        Err(SessionStoreError::Busy { pending: 1 })
    ));
    let change = fixture.give_back(lease, Duration::ZERO);
    fixture.written(Change::GiveBack(change)).await;
    append(&fixture, &place).await.expect("nothing is running");
}

/// Messages are read from a number on, those of one run if one is named, and one more than the limit.
pub async fn messages_are_read_from_a_number_on(fixture: Fixture) {
    let (place, lease, calls) = fixture.answered(1, 1).await;
    let boundary = fixture.boundary(lease, 1, &calls);
    fixture.written(Change::CompleteTurn(boundary)).await;
    fixture
        .written(Change::Finish(fixture.finish(lease, 2)))
        .await;
    append(&fixture, &place).await.expect("nothing is running");
    let read = async |after_seq, run, limit| {
        let query = MessageQuery {
            after_seq,
            run,
            limit,
        };
        let messages = fixture
            .stores
            .sessions
            .messages(place.seen(), place.session.id, query);
        let messages = messages.await.expect("reads work");
        let messages = messages.expect("the session is there");
        messages
            .iter()
            .map(|message| message.seq)
            .collect::<Vec<_>>()
    };

    assert_eq!(read(0, None, 100).await, [1, 2, 3, 4, 5]);
    assert_eq!(read(0, None, 2).await, [1, 2, 3]);
    assert_eq!(read(3, None, 2).await, [4, 5]);
    assert_eq!(read(5, None, 2).await, Vec::<u64>::new());
    assert_eq!(read(1, Some(lease.run), 100).await, [2, 3, 4]);
}

/// A session with pending runs is not removed.
pub async fn a_busy_session_is_not_removed(fixture: Fixture) {
    let place = fixture.place().await;
    let run = fixture.run(&place).await;
    fixture.run(&place).await;

    let refused = delete(&fixture, &place).await;

    assert!(matches!(
        refused,
        Err(SessionStoreError::Busy { pending: 2 })
    ));
    fixture.held(run.id, owner(1)).await;
    let refused = delete(&fixture, &place).await;
    assert!(matches!(
        refused,
        Err(SessionStoreError::Busy { pending: 2 })
    ));
}

/// A session goes with all that was in it; the audit trail stays.
pub async fn a_removed_session_takes_all_with_it_but_the_audit_trail(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let end = fixture.finish(lease, 1);
    fixture.written(Change::Finish(end.clone())).await;

    delete(&fixture, &place).await.expect("nothing is pending");

    let (seen, session, run) = (place.seen(), place.session.id, lease.run);
    let sessions = &fixture.stores.sessions;
    assert_eq!(
        sessions.find(seen, session).await.expect("reads work"),
        None
    );
    let listed = sessions.list(seen, SessionFilter::default(), ALL).await;
    assert_eq!(listed.expect("reads work").items, []);
    let runs = &fixture.stores.runs;
    assert_eq!(runs.find(seen, run).await.expect("reads work"), None);
    assert_eq!(runs.tool_calls(seen, run).await.expect("reads work"), None);
    assert_eq!(
        runs.events(seen, run, 0, 9).await.expect("reads work"),
        None
    );
    let late = fixture.write(Change::Finish(end)).await;
    assert!(matches!(late, Err(RunStoreError::NotFound)));
    assert!(matches!(
        delete(&fixture, &place).await,
        Err(SessionStoreError::NotFound)
    ));
    let rows = fixture
        .stores
        .audit
        .list(place.tenant, AuditFilter::default(), ALL);
    let rows = rows.await.expect("reads work").items;
    let mut actions: Vec<&str> = rows.iter().map(|row| row.action.as_str()).collect();
    actions.sort_unstable();
    let expected = [
        "agent.create",
        "run.create",
        "session.create",
        "session.delete",
        "tenant.create",
    ];
    assert_eq!(actions, expected);
}
