//! Removing what is old, and nothing else.

mod history;

use std::time::Duration;

use futures::future::{join, join_all};
use hango_domain::MessageId;
use hango_domain::conversation::{Block, Message, NewMessage};
use hango_domain::retention::{ANSWERS_KEPT, Retention};
use hango_domain::run::Change;
use hango_domain::session::Session;
use hango_ports::audit_store::AuditFilter;
use hango_ports::idempotency::IdempotencyKey;
use hango_ports::page::PageRequest;
use hango_ports::run_store::{PruneRequest, Pruned, RunFilter, RunStoreError};
use hango_ports::session_store::{SessionPatch, SessionStoreError};

pub use history::any_history_leaves_what_the_rule_keeps;

use crate::{Fixture, Place, owner};

/// How long things are kept in these checks.
const KEPT: Duration = Retention::LEAST;

/// A moment that is not one.
const MOMENT: Duration = Duration::from_micros(1);

const ALL: PageRequest = PageRequest {
    limit: 100,
    after: None,
};

async fn step(fixture: &Fixture, rows: u32) -> Pruned {
    let request = PruneRequest {
        retention: Retention::new(KEPT),
        rows,
    };
    let pruned = fixture.stores.runs.prune(request).await;
    pruned.expect("pruning works")
}

/// Removes everything old; how many runs and sessions that were.
async fn prune(fixture: &Fixture) -> (u64, u64) {
    let mut total = (0, 0);
    loop {
        let Pruned { runs, sessions, .. } = step(fixture, 1000).await;
        if (runs, sessions) == (0, 0) {
            return total;
        }
        total = (total.0 + runs, total.1 + sessions);
    }
}

/// Says something in a session without a run.
async fn say(
    fixture: &Fixture,
    place: &Place,
    session: &Session,
) -> Result<Message, SessionStoreError> {
    say_once(fixture, place, session, None).await
}

/// The same once for its key, if there is one.
async fn say_once(
    fixture: &Fixture,
    place: &Place,
    session: &Session,
    once: Option<IdempotencyKey>,
) -> Result<Message, SessionStoreError> {
    let message = NewMessage::user(MessageId(fixture.uuid()), vec![Block::text("By the way:")]);
    let audit = fixture.audit(&place.owner, "message.create", message.id.0);
    let sessions = &fixture.stores.sessions;
    sessions
        .append(place.seen(), session.id, message, audit, once)
        .await
}

/// Gives a session another title.
async fn rename(
    fixture: &Fixture,
    place: &Place,
    session: &Session,
) -> Result<Session, SessionStoreError> {
    let patch = SessionPatch {
        title: Some(fixture.name()),
        metadata: None,
    };
    let audit = fixture.audit(&place.owner, "session.update", session.id.0);
    let sessions = &fixture.stores.sessions;
    sessions
        .update(place.seen(), session.id, patch, audit)
        .await
}

/// The session as it is now; `None` if it is not there.
async fn found(fixture: &Fixture, place: &Place, session: &Session) -> Option<Session> {
    let found = fixture.stores.sessions.find(place.seen(), session.id).await;
    found.expect("reads work")
}

/// A tenant at work, and a run of its that has just ended.
async fn ended(fixture: &Fixture) -> (Place, Change) {
    let (place, lease) = fixture.running().await;
    let end = Change::Finish(fixture.finish(lease, 1));
    fixture.written(end.clone()).await;
    (place, end)
}

/// Answers that keep becoming old hold up nothing else.
pub async fn a_step_goes_on_behind_old_answers(fixture: Fixture) {
    let (place, _) = ended(&fixture).await;
    let key = IdempotencyKey {
        tenant: place.owner.tenant,
        user: place.owner.user,
        call: "POST /v1/sessions".to_owned(),
        key: "once".to_owned(),
        body: [7; 32],
    };
    say_once(&fixture, &place, &place.session, Some(key))
        .await
        .expect("it is there");
    fixture.clock.advance(ANSWERS_KEPT);

    let Pruned { answers, runs, .. } = step(&fixture, 1000).await;

    assert_eq!((answers, runs), (1, 1));
}

/// A run is kept until its last moment, and is answered from then on as if it had never been there.
/// What was said stays, and names it.
pub async fn a_run_goes_with_all_that_is_its_alone(fixture: Fixture) {
    let (place, end) = ended(&fixture).await;
    let run = end.lease().expect("a holder's write").run;
    let before = fixture.on_record(&place, run).await;
    rename(&fixture, &place, &place.session)
        .await
        .expect("it is there");
    fixture.clock.almost(KEPT);
    assert_eq!(prune(&fixture).await, (0, 0));
    assert_eq!(fixture.on_record(&place, run).await, before);
    say(&fixture, &place, &place.session)
        .await
        .expect("nothing is running");

    fixture.clock.advance(MOMENT);
    assert_eq!(prune(&fixture).await, (1, 0));

    let (seen, runs) = (place.seen(), &fixture.stores.runs);
    assert_eq!(runs.find(seen, run).await.expect("reads work"), None);
    assert_eq!(runs.tool_calls(seen, run).await.expect("reads work"), None);
    let events = runs.events(seen, run, 0, 9).await;
    assert_eq!(events.expect("reads work"), None);
    let listed = runs.list(seen, RunFilter::default(), ALL).await;
    assert_eq!(listed.expect("reads work").items, []);
    let late = fixture.write(end).await;
    assert!(matches!(late, Err(RunStoreError::NotFound)), "{late:?}");
    let cancelled = fixture.cancel(&place.owner, run).await;
    assert!(matches!(cancelled, Err(RunStoreError::NotFound)));
    let messages = fixture.messages(seen, place.session.id).await;
    assert!(messages.starts_with(&before.messages), "{messages:?}");
}

/// What has not ended stays for ever, with its session.
pub async fn what_has_not_ended_stays(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let waiting = fixture.run(&place).await;
    let alone = fixture.place().await;
    let queued = fixture.run(&alone).await;
    let before = [
        fixture.on_record(&place, lease.run).await,
        fixture.on_record(&place, waiting.id).await,
        fixture.on_record(&alone, queued.id).await,
    ];

    fixture.clock.advance(KEPT * 1000);
    assert_eq!(prune(&fixture).await, (0, 0));

    let after = [
        fixture.on_record(&place, lease.run).await,
        fixture.on_record(&place, waiting.id).await,
        fixture.on_record(&alone, queued.id).await,
    ];
    assert_eq!(after, before);
}

/// A session goes when it has no run any more and nothing happened in it for that long. What people did
/// stays on the audit trail.
pub async fn an_idle_session_goes_behind_its_runs(fixture: Fixture) {
    let (place, _) = ended(&fixture).await;
    let empty = fixture.session(&place.owner, place.agent.id).await;
    let changed = fixture.session(&place.owner, place.agent.id).await;
    let spoken = fixture.session(&place.owner, place.agent.id).await;
    fixture.clock.advance(MOMENT);
    rename(&fixture, &place, &changed)
        .await
        .expect("it is there");
    say(&fixture, &place, &spoken).await.expect("it is there");
    let audited = async || {
        let audit = &fixture.stores.audit;
        let rows = audit.list(place.tenant, AuditFilter::default(), ALL).await;
        rows.expect("reads work").items
    };
    let trail = audited().await;

    fixture.clock.almost(KEPT);
    let used = [&place.session, &empty];
    let (first, used_again) = (prune(&fixture).await, [&changed, &spoken]);

    assert_eq!(first, (1, 2));
    for gone in used {
        assert_eq!(found(&fixture, &place, gone).await, None);
    }
    for there in used_again {
        assert!(found(&fixture, &place, there).await.is_some());
    }
    fixture.clock.advance(MOMENT);
    assert_eq!(prune(&fixture).await, (0, 2));
    for gone in used_again {
        assert_eq!(found(&fixture, &place, gone).await, None);
        let refused = say(&fixture, &place, gone).await;
        assert!(matches!(refused, Err(SessionStoreError::NotFound)));
        let new = fixture.new_run(&place.owner, gone.id);
        let refused = fixture.try_accept(new).await;
        assert!(matches!(refused, Err(RunStoreError::NotFound)));
    }
    assert_eq!(audited().await, trail);
}

/// A session that goes on has its whole history, although the runs that brought it are gone, and goes on
/// counting where it was.
pub async fn a_later_run_has_the_history_of_those_that_are_gone(fixture: Fixture) {
    let (place, _) = ended(&fixture).await;
    let before = fixture.messages(place.seen(), place.session.id).await;
    fixture.clock.advance(KEPT);
    rename(&fixture, &place, &place.session)
        .await
        .expect("it is there");
    assert_eq!(prune(&fixture).await, (1, 0));

    let run = fixture.run(&place).await;
    let claimed = fixture.claim(run.id, owner(2)).await;

    assert_eq!(run.session_no, 2);
    let claimed = claimed.expect("nothing stands before it");
    let mut history = claimed.context.expect("it can be read").history;
    let said = history.pop().map(|message| (message.run_id, message.seq));
    assert_eq!(history, before);
    assert_eq!(said, Some((Some(run.id), 3)));
}

/// A step ends with the thing that makes it long enough, and removes one at least.
pub async fn a_step_is_no_longer_than_was_asked_for(fixture: Fixture) {
    for _ in 0..4 {
        ended(&fixture).await;
    }
    let (place, end) = ended(&fixture).await;
    let run = end.lease().expect("a holder's write").run;
    let run = fixture.on_record(&place, run).await.run;
    let of_a_run = hango_domain::retention::rows_of_run(&run);
    fixture.clock.advance(KEPT);
    let two = u32::try_from(of_a_run).expect("it is small") + 1;

    let mut steps = Vec::new();
    for rows in [1, two, 1000, 1, two - 1, 4, 1000, 1000] {
        let Pruned { runs, sessions, .. } = step(&fixture, rows).await;
        steps.push((runs, sessions));
    }

    // Each session has two messages.
    let runs = [(1, 0), (2, 0), (2, 0)];
    let sessions = [(0, 1), (0, 3), (0, 1), (0, 0), (0, 0)];
    assert_eq!(of_a_run, 8, "so that as many sessions go as is said");
    assert_eq!(steps, [&runs[..], &sessions[..]].concat());
}

/// Whoever removes at the same time removes each thing once.
pub async fn what_many_remove_at_once_goes_once(fixture: Fixture) {
    for _ in 0..20 {
        ended(&fixture).await;
    }
    fixture.clock.advance(KEPT);

    let steps = join_all((0..8).map(|_| step(&fixture, 40))).await;

    let (mut runs, mut sessions) = prune(&fixture).await;
    for step in steps {
        runs += step.runs;
        sessions += step.sessions;
    }
    assert_eq!((runs, sessions), (20, 20));
}

/// A run that comes as its session goes is accepted, and then its session stays, or finds none.
pub async fn a_run_finds_its_session_or_none(fixture: Fixture) {
    for round in 0..40 {
        fixture.clock.advance(KEPT);
        prune(&fixture).await;
        let place = fixture.place().await;
        fixture.clock.advance(KEPT);
        let new = fixture.new_run(&place.owner, place.session.id);
        let id = new.id;

        let (accept, remove) = (fixture.try_accept(new), step(&fixture, 1000));
        let accepted = if round % 2 == 0 {
            join(accept, remove).await.0
        } else {
            join(remove, accept).await.1
        };

        let session = found(&fixture, &place, &place.session).await;
        let run = fixture.stores.runs.find(place.seen(), id).await;
        let run = run.expect("reads work");
        match accepted {
            Ok(accepted) => {
                assert!(session.is_some());
                assert_eq!(run, Some(accepted.run));
                let lease = fixture.held(id, owner(1)).await;
                let end = Change::Finish(fixture.finish(lease, 1));
                fixture.written(end).await;
            }
            Err(RunStoreError::NotFound) => assert_eq!((session, run), (None, None)),
            Err(other) => panic!("nothing else stands before it: {other:?}"),
        }
    }
}
