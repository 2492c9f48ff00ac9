//! A turn is committed whole, and once.

use std::time::Duration;

use hango_domain::conversation::{Message, Usage};
use hango_domain::event::EventKind;
use hango_domain::journal::CallState;
use hango_domain::run::{
    Change, Outcome, RunError, RunErrorCode, RunState, RunStatus, TransitionError,
};

use crate::{Fixture, OnRecord, USAGE, owner, refused};

fn names(record: &OnRecord) -> Vec<&str> {
    record
        .events
        .iter()
        .map(|event| event.kind.name())
        .collect()
}

/// The run's input becomes the user's message at the first claim, and at no other.
pub async fn the_input_is_said_once_however_often_the_run_is_claimed(fixture: Fixture) {
    let place = fixture.place().await;
    let run = fixture.run(&place).await;
    assert_eq!(fixture.messages(place.seen(), run.session_id).await, []);

    let lease = fixture.held(run.id, owner(1)).await;
    let first = fixture.on_record(&place, run.id).await.messages;
    fixture.taken_over(lease, owner(2)).await;

    let messages = fixture.on_record(&place, run.id).await.messages;
    let ids: Vec<_> = messages.iter().map(|message| message.id).collect();
    assert_eq!(ids, [run.input_message_id]);
    assert_eq!(messages, first);
}

/// A claim of a run whose turn was begun begins it anew, and says so.
pub async fn a_turn_that_was_begun_and_not_answered_is_discarded_at_the_next_claim(
    fixture: Fixture,
) {
    let (place, lease) = fixture.running().await;
    fixture.taken_over(lease, owner(2)).await;

    let expected = [
        "run.queued",
        "run.started",
        "message.completed",
        "turn.started",
        "run.requeued",
        "run.started",
        "turn.discarded",
        "turn.started",
    ];
    assert_eq!(names(&fixture.on_record(&place, lease.run).await), expected);
}

/// A boundary commits the results, their message, the memory, the usage, the counters and the events.
pub async fn a_boundary_commits_all_of_its_turn(fixture: Fixture) {
    let (place, lease, calls) = fixture.answered(2, 2).await;
    fixture.clock.advance(Duration::from_secs(1));
    let boundary = fixture.boundary(lease, 1, &calls);

    let written = fixture
        .written(Change::CompleteTurn(boundary.clone()))
        .await;

    let record = fixture.on_record(&place, lease.run).await;
    let kinds: Vec<EventKind> = written.events.iter().map(|it| it.kind.clone()).collect();
    let completed = |position: u32| EventKind::ToolCompleted {
        position,
        tool_use_id: format!("call_1_{position}"),
        name: "get_time".to_owned(),
        is_error: false,
        duration_ms: Some(7),
    };
    let expected = [
        completed(1),
        completed(2),
        EventKind::MessageCompleted {
            message_id: boundary.message.id,
        },
        EventKind::TodosUpdated {
            todos: boundary.todos.clone().expect("the boundary has todos"),
        },
        EventKind::TurnCompleted { usage: USAGE },
        EventKind::TurnStarted,
    ];
    assert_eq!(kinds, expected);
    assert_eq!(record.events[record.events.len() - 6..], written.events);
    assert_eq!(Some(record.run.memory), boundary.memory);
    assert_eq!(record.run.usage, USAGE);
    assert_eq!(record.run.iterations, 1);
    assert_eq!(record.run.progress.resume_turn, 1);
    assert!(
        record
            .calls
            .iter()
            .all(|it| it.state == CallState::Finished)
    );
    let run = Some(lease.run);
    let stored = boundary
        .message
        .stored(place.session.id, run, 3, fixture.now());
    assert_eq!(record.messages.last(), Some(&stored));
}

/// A boundary that is refused leaves nothing of itself.
pub async fn a_boundary_out_of_order_leaves_nothing(fixture: Fixture) {
    let (place, lease, calls) = fixture.answered(1, 1).await;
    let before = fixture.on_record(&place, lease.run).await;

    for turn in [0, 2] {
        let boundary = fixture.boundary(lease, turn, &calls);
        let rule = refused(fixture.write(Change::CompleteTurn(boundary)).await);

        let order = TransitionError::TurnOutOfOrder {
            completed: 0,
            presented: turn,
        };
        assert_eq!(rule, order);
    }
    assert_eq!(fixture.on_record(&place, lease.run).await, before);
}

/// An answer is kept once; a second one for the same turn was paid for in vain, but changes nothing.
pub async fn a_turn_has_one_answer(fixture: Fixture) {
    let (place, lease, _) = fixture.answered(1, 1).await;
    let before = fixture.on_record(&place, lease.run).await;

    let second = fixture.answer(lease, 1, 2, 1);
    let rule = refused(fixture.write(Change::Answer(second)).await);

    assert_eq!(rule, TransitionError::WrongPoint { turn: 1 });
    assert_eq!(fixture.on_record(&place, lease.run).await, before);
}

/// No message stands between an answer and its results.
pub async fn an_answered_turn_takes_no_repair(fixture: Fixture) {
    let (place, lease, _) = fixture.answered(1, 1).await;
    let before = fixture.on_record(&place, lease.run).await;

    let repair = fixture.repair(lease);
    let rule = refused(fixture.write(Change::Repair(repair)).await);

    assert_eq!(rule, TransitionError::WrongPoint { turn: 1 });
    assert_eq!(fixture.on_record(&place, lease.run).await, before);
}

/// A turn can be completed only behind its answer.
pub async fn a_turn_without_an_answer_has_no_boundary(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let before = fixture.on_record(&place, lease.run).await;

    let rule = refused(
        fixture
            .write(Change::CompleteTurn(fixture.boundary(lease, 1, &[])))
            .await,
    );

    assert_eq!(rule, TransitionError::WrongPoint { turn: 1 });
    assert_eq!(fixture.on_record(&place, lease.run).await, before);
}

/// The last turn is one write with the end.
pub async fn the_end_commits_its_turn_and_the_terminal_event(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let mut end = fixture.finish(lease, 1);
    end.usage_discarded = USAGE;

    let written = fixture.written(Change::Finish(end.clone())).await;

    let record = fixture.on_record(&place, lease.run).await;
    assert_eq!(written.status, RunStatus::Succeeded);
    assert_eq!(record.run.state, RunState::Succeeded { at: fixture.now() });
    assert_eq!(record.run.final_message_id, end.final_message_id);
    assert_eq!(record.run.stop_reason, end.stop_reason);
    assert_eq!([record.run.usage, record.run.usage_discarded], [USAGE; 2]);
    let said: Vec<Message> = end
        .messages
        .into_iter()
        .map(|message| message.stored(place.session.id, Some(lease.run), 2, fixture.now()))
        .collect();
    assert_eq!(record.messages[1..], said);
    let expected = [
        "run.queued",
        "run.started",
        "message.completed",
        "turn.started",
        "message.completed",
        "turn.completed",
        "run.succeeded",
    ];
    assert_eq!(names(&record), expected);
}

/// How a run failed is kept as its holder said it.
pub async fn a_failure_is_kept_with_its_reason(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let error = RunError::new(RunErrorCode::ProviderAuth, "the key was refused: \"401\"");
    let mut end = fixture.finish(lease, 1);
    end.turn = None;
    end.outcome = Outcome::Failed(error.clone());

    fixture.written(Change::Finish(end)).await;

    let record = fixture.on_record(&place, lease.run).await;
    let failed = RunState::Failed {
        at: fixture.now(),
        error: error.clone(),
    };
    assert_eq!(record.run.state, failed);
    let last = record.events.last().map(|event| event.kind.clone());
    assert_eq!(last, Some(EventKind::RunFailed { error }));
}

/// Failed tries stay on the run until its turn completes, whoever made them.
pub async fn tries_are_counted_across_claims_until_the_turn_completes(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    fixture
        .written(Change::Retry(fixture.retry(lease, 1)))
        .await;
    let lease = fixture.taken_over(lease, owner(2)).await;
    let mut change = fixture.give_back(lease, Duration::from_secs(10));
    change.failed = Some(fixture.retry(lease, 1).failed);
    fixture.written(Change::GiveBack(change)).await;

    let run = fixture.on_record(&place, lease.run).await.run;
    assert_eq!(run.progress.tries, 2);
    assert_eq!(run.usage_discarded, USAGE + USAGE);
    assert_eq!(run.usage, Usage::default());

    fixture.clock.advance(Duration::from_secs(10));
    let lease = fixture.held(lease.run, owner(1)).await;
    fixture
        .written(Change::Finish(fixture.finish(lease, 1)))
        .await;
    let run = fixture.on_record(&place, lease.run).await.run;
    assert_eq!(run.progress.tries, 0);
}
