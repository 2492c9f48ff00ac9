//! Which events go into which write, and in which order.

use super::*;
use crate::conversation::NewMessage;

fn answered() -> Run {
    made(running(), &answer(lease(1), 1, 1), 1)
}

#[test]
fn an_accepted_run_tells_so_before_its_first_turn() {
    let unnumbered = Run {
        progress: Progress::default(),
        ..queued()
    };

    let (run, event) = unnumbered.accepted();

    assert_eq!(run, queued());
    assert_eq!(
        event,
        Event {
            run_id: run.id,
            n: 1,
            turn: 0,
            attempt: 0,
            at: at(0),
            kind: EventKind::RunQueued,
        }
    );
}

#[test]
fn the_first_claim_tells_of_the_start_the_input_and_the_turn() {
    let claimed = queued().apply(&claim(1), at(4)).expect("a legal claim");
    let event = |n, turn, kind| Event {
        run_id: queued().id,
        n,
        turn,
        attempt: 1,
        at: at(4),
        kind,
    };

    let started = EventKind::RunStarted {
        owner: claimed.run.lease().map(|lease| lease.owner),
        lease_expires_at: claimed.run.lease_expires_at(),
    };
    let message_id = message_id(100);
    assert_eq!(
        claimed.events,
        [
            event(2, 0, started),
            event(3, 0, EventKind::MessageCompleted { message_id }),
            event(4, 1, EventKind::TurnStarted),
        ]
    );
}

#[test]
fn a_later_claim_discards_a_turn_that_was_begun_and_begins_it_anew() {
    let reclaimed = made(running(), &reclaim(5), 30);

    assert_eq!(
        told(&reclaimed, &claim(1), 31),
        ["run.started", "turn.discarded", "turn.started"]
    );
}

#[test]
fn a_claim_of_an_open_answer_goes_on_with_its_turn() {
    let reclaimed = made(answered(), &reclaim(5), 31);

    assert_eq!(told(&reclaimed, &claim(1), 32), ["run.started"]);
}

#[test]
fn a_claim_behind_a_boundary_begins_the_next_turn_and_discards_nothing() {
    let then = AfterTurn::GiveBack(RequeueReason::Drain);
    let given_back = made(answered(), &boundary(lease(1), 2, 1, then), 2);

    assert_eq!(
        told(&given_back, &claim(1), 3),
        ["run.started", "turn.started"]
    );
    assert_eq!(made(given_back, &claim(1), 3).progress.begun_turn, 2);
}

#[test]
fn an_answer_tells_of_its_message_and_of_the_calls_that_start() {
    let change = answer(lease(1), 1, 1);

    let applied = running().apply(&change, at(1)).expect("a legal answer");

    let StartedCall {
        position,
        tool_use_id,
        name,
    } = started(1);
    let kinds: Vec<EventKind> = applied.events.into_iter().map(|event| event.kind).collect();
    assert_eq!(
        kinds,
        [
            EventKind::MessageCompleted {
                message_id: message_id(1)
            },
            EventKind::ToolStarted {
                position,
                tool_use_id,
                name
            },
        ]
    );
}

#[test]
fn a_result_tells_of_itself_and_then_of_the_call_that_takes_its_place() {
    assert_eq!(
        told(&answered(), &record(lease(1), 2, 1), 2),
        ["tool.completed", "tool.started"]
    );
    assert_eq!(
        told(&answered(), &resume(lease(1), 2, 1), 2),
        ["tool.completed", "tool.started"]
    );
}

#[test]
fn a_boundary_tells_of_results_todos_and_the_turn_and_begins_the_next_or_gives_back() {
    let todos = vec![Todo {
        content: "look".to_owned(),
        status: TodoStatus::Pending,
    }];
    let with_todos = |change| match change {
        Change::CompleteTurn(change) => Change::CompleteTurn(Boundary {
            todos: Some(todos.clone()),
            ..change
        }),
        other => other,
    };
    let then = AfterTurn::GiveBack(RequeueReason::Drain);

    assert_eq!(
        told(&answered(), &with_todos(go_on(lease(1), 2, 1)), 2),
        [
            "tool.completed",
            "message.completed",
            "todos.updated",
            "turn.completed",
            "turn.started"
        ]
    );
    assert_eq!(
        told(&answered(), &boundary(lease(1), 2, 1, then), 2),
        [
            "tool.completed",
            "message.completed",
            "turn.completed",
            "run.requeued"
        ]
    );
}

#[test]
fn an_end_tells_what_is_open_and_then_of_itself() {
    let last = End {
        turn: Some(1),
        results: vec![result(1), result(2)],
        messages: vec![
            NewMessage::user(message_id(2), Vec::new()),
            NewMessage::user(message_id(3), Vec::new()),
        ],
        ..end(lease(1), 2, Outcome::Succeeded)
    };

    assert_eq!(
        told(&answered(), &Change::Finish(last), 2),
        [
            "tool.completed",
            "tool.completed",
            "message.completed",
            "message.completed",
            "turn.completed",
            "run.succeeded"
        ]
    );
}

#[test]
fn an_end_without_a_holder_tells_of_the_calls_that_it_closes() {
    let asked = made(answered(), &Change::RequestCancel { closing: None }, 2);
    let requeued = made(answered(), &reclaim(5), 31);
    let with_closing = GiveBack {
        closing: Some(closing()),
        ..give_back(lease(1), 2)
    };
    let cancel = Change::RequestCancel {
        closing: Some(closing()),
    };
    let closed = |last| {
        let results = ["tool.completed", "tool.completed", "message.completed"];
        [results.as_slice(), &[last]].concat()
    };

    assert_eq!(told(&requeued, &cancel, 32), closed("run.cancelled"));
    assert_eq!(told(&asked, &reclaim(5), 31), closed("run.cancelled"));
    assert_eq!(
        told(&asked, &Change::GiveBack(with_closing.clone()), 3),
        closed("run.cancelled")
    );
    assert_eq!(told(&answered(), &reclaim(1), 31), closed("run.failed"));
    assert_eq!(
        told(&answered(), &Change::GiveBack(with_closing), 3),
        ["run.requeued"]
    );
}

#[test]
fn a_failed_try_tells_to_forget_its_deltas_if_there_were_any() {
    let silent = FailedTry {
        shown: false,
        ..shown_try()
    };
    let waiting = GiveBack {
        failed: Some(shown_try()),
        ..give_back(lease(1), 2)
    };

    assert_eq!(
        told(&running(), &retry(lease(1), 2, 1, shown_try()), 2),
        ["turn.discarded"]
    );
    assert!(told(&running(), &retry(lease(1), 2, 1, silent), 2).is_empty());
    assert_eq!(
        told(&running(), &Change::GiveBack(waiting), 2),
        ["turn.discarded", "run.requeued"]
    );
}

#[test]
fn tries_are_counted_by_kind_until_their_turn_is_complete() {
    let empty = FailedTry {
        kind: TryFailure::Empty,
        ..shown_try()
    };
    let tried = after(
        running(),
        &[
            retry(lease(1), 2, 1, shown_try()),
            retry(lease(1), 3, 1, empty),
            retry(lease(1), 4, 1, shown_try()),
        ],
    );

    assert_eq!((tried.progress.tries, tried.progress.empty_answers), (2, 1));
    assert_eq!(tried.usage_discarded, usage(6));
    let completed = after(tried, &[answer(lease(1), 5, 1), go_on(lease(1), 6, 1)]);
    assert_eq!(
        (
            completed.progress.tries,
            completed.progress.empty_answers,
            completed.usage
        ),
        (0, 0, usage(5))
    );
}
