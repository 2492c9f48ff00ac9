//! A request that carries a key makes something once, and its repeats get what the first one made.

use std::time::Duration;

use futures::future::join_all;
use hango_domain::MessageId;
use hango_domain::access::{Role, visibility};
use hango_domain::conversation::{Block, Message, NewMessage};
use hango_domain::retention::ANSWERS_KEPT;
use hango_domain::run::{Change, Run};
use hango_domain::session::{OnBusy, Session};
use hango_ports::audit_store::AuditFilter;
use hango_ports::idempotency::{FirstAnswer, IdempotencyKey, Repeated};
use hango_ports::page::PageRequest;
use hango_ports::run_store::{Accepted, NewRun, PruneRequest, Pruned, RunFilter, RunStoreError};
use hango_ports::session_store::{SessionFilter, SessionPatch, SessionStoreError};
use serde_json::json;

use crate::{Fixture, Place, owner};

const ALL: PageRequest = PageRequest {
    limit: 1000,
    after: None,
};

async fn accept(
    fixture: &Fixture,
    new: NewRun,
    key: &IdempotencyKey,
) -> Result<Accepted, RunStoreError> {
    let audit = fixture.audit(&new.created_by, "run.create", new.id.0);
    fixture
        .stores
        .runs
        .accept(new, audit, Some(key.clone()))
        .await
}

async fn create(
    fixture: &Fixture,
    place: &Place,
    key: &IdempotencyKey,
) -> Result<Session, SessionStoreError> {
    let new = fixture.new_session(&place.owner, place.agent.id);
    let audit = fixture.audit(&place.owner, "session.create", new.id.0);
    let sessions = &fixture.stores.sessions;
    sessions.create(new, audit, Some(key.clone())).await
}

async fn append(
    fixture: &Fixture,
    place: &Place,
    key: &IdempotencyKey,
) -> Result<Message, SessionStoreError> {
    let message = NewMessage::user(MessageId(fixture.uuid()), vec![Block::text("1 + 1 = 2")]);
    let audit = fixture.audit(&place.owner, "message.create", message.id.0);
    let (seen, session) = (place.seen(), place.session.id);
    let sessions = &fixture.stores.sessions;
    sessions
        .append(seen, session, message, audit, Some(key.clone()))
        .await
}

/// What a repeated request is answered.
fn of_run(repeated: Result<Accepted, RunStoreError>) -> FirstAnswer {
    match repeated {
        Err(RunStoreError::Repeated(Repeated::Answered(first))) => first,
        other => panic!("{other:?}"),
    }
}

fn of_session<T: std::fmt::Debug>(repeated: Result<T, SessionStoreError>) -> FirstAnswer {
    match repeated {
        Err(SessionStoreError::Repeated(Repeated::Answered(first))) => first,
        other => panic!("{other:?}"),
    }
}

/// How many runs, sessions, messages of the session, and audit rows there are.
async fn there(fixture: &Fixture, place: &Place) -> [usize; 4] {
    let (stores, seen) = (&fixture.stores, place.seen());
    let runs = stores.runs.list(seen, RunFilter::default(), ALL).await;
    let sessions = stores.sessions.list(seen, SessionFilter::default(), ALL);
    let messages = fixture.messages(seen, place.session.id).await;
    let trail = stores.audit.list(place.tenant, AuditFilter::default(), ALL);
    [
        runs.expect("reads work").items.len(),
        sessions.await.expect("reads work").items.len(),
        messages.len(),
        trail.await.expect("reads work").items.len(),
    ]
}

async fn prune(fixture: &Fixture, rows: u32) -> Pruned {
    let request = PruneRequest {
        retention: None,
        rows,
    };
    let pruned = fixture.stores.runs.prune(request).await;
    pruned.expect("pruning works")
}

/// The first run is the answer, as it was then, whatever became of it; and nothing is made again.
pub async fn a_run_is_made_once_for_its_key(fixture: Fixture) {
    let place = fixture.place().await;
    let key = fixture.once(&place.owner, "run");
    let new = fixture.new_run(&place.owner, place.session.id);
    let first = accept(&fixture, new, &key).await.expect("a free key").run;
    let lease = fixture.held(first.id, owner(1)).await;
    fixture
        .written(Change::Finish(fixture.finish(lease, 1)))
        .await;
    let before = there(&fixture, &place).await;

    let new = fixture.new_run(&place.owner, place.session.id);
    let again = of_run(accept(&fixture, new, &key).await);

    assert_eq!(again.body, key.body);
    let answer: Run = serde_json::from_value(again.answer).expect("a run");
    assert_eq!(answer, first);
    assert_eq!(there(&fixture, &place).await, before);
}

/// So is the first session, changed or removed as it may be.
pub async fn a_session_is_made_once_for_its_key(fixture: Fixture) {
    let place = fixture.place().await;
    let key = fixture.once(&place.owner, "session");
    let first = create(&fixture, &place, &key).await.expect("a free key");
    let sessions = &fixture.stores.sessions;
    let audit = || fixture.audit(&place.owner, "session.change", first.id.0);
    let patch = SessionPatch {
        title: Some("Another".to_owned()),
        metadata: None,
    };
    let changed = sessions
        .update(place.seen(), first.id, patch, audit())
        .await;
    changed.expect("it is there");
    for removed in [false, true] {
        if removed {
            let deleted = sessions.delete(place.seen(), first.id, audit()).await;
            deleted.expect("it is there");
        }
        let before = there(&fixture, &place).await;

        let again = of_session(create(&fixture, &place, &key).await);

        let answer: Session = serde_json::from_value(again.answer).expect("a session");
        assert_eq!((answer, again.body), (first.clone(), key.body));
        assert_eq!(there(&fixture, &place).await, before);
    }
}

/// So is the first message, and that comes before what the session has to say.
pub async fn a_message_is_said_once_for_its_key(fixture: Fixture) {
    let place = fixture.place().await;
    let key = fixture.once(&place.owner, "message");
    let first = append(&fixture, &place, &key).await.expect("a free key");
    let run = fixture.run(&place).await;
    fixture.held(run.id, owner(1)).await;
    let before = there(&fixture, &place).await;

    let again = of_session(append(&fixture, &place, &key).await);

    let answer: Message = serde_json::from_value(again.answer).expect("a message");
    assert_eq!((answer, again.body), (first, key.body));
    assert_eq!(there(&fixture, &place).await, before);
}

/// A store tells which body a key was used with, and makes nothing for another.
pub async fn another_body_makes_nothing(fixture: Fixture) {
    let place = fixture.place().await;
    let key = fixture.once(&place.owner, "run");
    let new = fixture.new_run(&place.owner, place.session.id);
    accept(&fixture, new, &key).await.expect("a free key");
    let before = there(&fixture, &place).await;
    let other = IdempotencyKey {
        body: [9; 32],
        ..key.clone()
    };

    let new = fixture.new_run(&place.owner, place.session.id);
    let again = of_run(accept(&fixture, new, &other).await);

    assert_eq!(again.body, key.body);
    assert_eq!(there(&fixture, &place).await, before);
}

/// The same word of another user, in another tenant or for another call is another key.
pub async fn a_key_is_of_its_user_and_its_call(fixture: Fixture) {
    let (place, elsewhere) = (fixture.place().await, fixture.place().await);
    let admin = fixture.user(&place.owner, Role::Admin).await;
    let key = fixture.once(&place.owner, "run");
    let others = [
        (place.owner, place.session.id, key.clone()),
        (
            admin,
            place.session.id,
            IdempotencyKey {
                user: admin.user,
                ..key.clone()
            },
        ),
        (
            elsewhere.owner,
            elsewhere.session.id,
            IdempotencyKey {
                tenant: elsewhere.tenant,
                user: elsewhere.owner.user,
                ..key.clone()
            },
        ),
        (
            place.owner,
            place.session.id,
            IdempotencyKey {
                call: "POST /another".to_owned(),
                ..key.clone()
            },
        ),
        (
            place.owner,
            place.session.id,
            IdempotencyKey {
                key: key.key.to_uppercase(),
                ..key.clone()
            },
        ),
    ];
    for (by, session, key) in others {
        let accepted = accept(&fixture, fixture.new_run(&by, session), &key).await;
        assert!(accepted.is_ok(), "{key:?}: {accepted:?}");
    }
}

/// D35: of fifty requests at once with one key one makes a run, and all get that one.
pub async fn d35_fifty_requests_at_once_make_one_run(fixture: Fixture) {
    let place = fixture.place().await;
    let key = fixture.once(&place.owner, "run");
    let requests = (0..50).map(|_| {
        let new = fixture.new_run(&place.owner, place.session.id);
        accept(&fixture, new, &key)
    });

    let answers = join_all(requests).await;

    let (made, repeated): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    let made: Vec<Run> = made.into_iter().flatten().map(|it| it.run).collect();
    assert_eq!((made.len(), repeated.len()), (1, 49));
    for again in repeated {
        assert_eq!(of_run(again).answer, json!(made[0]));
    }
    let seen = visibility(&place.owner);
    let runs = fixture.stores.runs.list(seen, RunFilter::default(), ALL);
    assert_eq!(runs.await.expect("reads work").items, made);
}

/// What is refused leaves the key free.
pub async fn a_refused_change_leaves_its_key_free(fixture: Fixture) {
    let place = fixture.place().await;
    let key = fixture.once(&place.owner, "run");
    let running = fixture.run(&place).await;
    let lease = fixture.held(running.id, owner(1)).await;
    let mut busy = fixture.new_run(&place.owner, place.session.id);
    busy.on_busy = OnBusy::Reject;
    let nowhere = fixture.new_run(&place.owner, fixture.uuid().into());
    for new in [busy, nowhere] {
        let refused = accept(&fixture, new, &key).await;
        assert!(
            matches!(
                refused,
                Err(RunStoreError::Line(_) | RunStoreError::NotFound)
            ),
            "{refused:?}"
        );
    }
    let said = append(&fixture, &place, &key).await;
    assert!(
        matches!(said, Err(SessionStoreError::Busy { .. })),
        "{said:?}"
    );
    fixture
        .written(Change::Finish(fixture.finish(lease, 1)))
        .await;

    let new = fixture.new_run(&place.owner, place.session.id);
    let accepted = accept(&fixture, new, &key).await;

    assert!(accepted.is_ok(), "{accepted:?}");
}

/// A key is good for a day from the first answer on; then it is as if it had never been used.
pub async fn a_key_is_good_for_a_day(fixture: Fixture) {
    let place = fixture.place().await;
    let key = fixture.once(&place.owner, "session");
    for _ in 0..2 {
        let first = create(&fixture, &place, &key).await.expect("a free key");
        fixture
            .clock
            .advance(ANSWERS_KEPT.saturating_sub(Duration::from_micros(1)));
        let again = of_session(create(&fixture, &place, &key).await);
        assert_eq!(again.answer["id"], json!(first.id));
        fixture.clock.advance(Duration::from_micros(1));
    }
}

/// Old answers are removed in small steps wherever it is looked for what is old; nothing else is.
pub async fn old_answers_are_removed_and_nothing_else(fixture: Fixture) {
    let place = fixture.place().await;
    for n in 0..5 {
        let key = fixture.once(&place.owner, &format!("old {n}"));
        create(&fixture, &place, &key).await.expect("a free key");
    }
    fixture.clock.advance(Duration::from_micros(1));
    let young = fixture.once(&place.owner, "young");
    create(&fixture, &place, &young).await.expect("a free key");
    fixture
        .clock
        .advance(ANSWERS_KEPT.saturating_sub(Duration::from_micros(1)));
    let before = there(&fixture, &place).await;

    let mut steps = Vec::new();
    for _ in 0..4 {
        steps.push(prune(&fixture, 2).await);
    }

    let expected = [2, 2, 1, 0].map(|answers| Pruned {
        answers,
        ..Pruned::default()
    });
    assert_eq!(steps, expected);
    assert_eq!(there(&fixture, &place).await, before);
    of_session(create(&fixture, &place, &young).await);
}
