//! How runs end, and that an end is final.

use super::*;

fn cancel() -> Change {
    Change::RequestCancel {
        closing: Some(closing()),
    }
}

fn finish(outcome: Outcome) -> Change {
    Change::Finish(end(lease(1), 9, outcome))
}

#[test]
fn finishing_completes_the_last_turn_in_the_same_write() {
    let last = End {
        stop_reason: Some(StopReason::EndTurn),
        turn: Some(1),
        final_message_id: Some(message_id(7)),
        usage: usage(11),
        usage_discarded: usage(3),
        ..end(lease(1), 9, Outcome::Succeeded)
    };

    let ended = made(running(), &Change::Finish(last), 8);

    assert_eq!(
        ended,
        Run {
            state: RunState::Succeeded { at: at(8) },
            stop_reason: Some(StopReason::EndTurn),
            final_message_id: Some(message_id(7)),
            iterations: 1,
            usage: usage(11),
            usage_discarded: usage(3),
            progress: Progress {
                resume_turn: 1,
                begun_turn: 1,
                answered_turn: 1,
                last_event: 6,
                last_write: Some(write(9)),
                ..Progress::default()
            },
            ..running()
        }
    );
}

#[test]
fn an_acknowledged_cancel_wins_over_whatever_the_holder_ends_with() {
    let asked = made(running(), &cancel(), 5);
    let failure = RunError::new(RunErrorCode::Internal, "broken");

    assert_eq!(asked.state, running().state);
    assert_eq!(asked.cancel_requested_at, Some(at(5)));
    for outcome in [
        Outcome::Succeeded,
        Outcome::Failed(failure),
        Outcome::Cancelled,
    ] {
        let ended = made(asked.clone(), &finish(outcome), 8);
        assert_eq!(ended.state, RunState::Cancelled { at: at(8) });
    }
}

#[test]
fn a_run_given_back_with_a_cancel_asked_for_ends_there() {
    let asked = made(running(), &cancel(), 5);
    let answered = made(asked.clone(), &answer(lease(1), 2, 1), 6);
    let then = AfterTurn::GiveBack(RequeueReason::Drain);

    let amid = made(asked, &Change::GiveBack(give_back(lease(1), 3)), 8);
    let at_boundary = made(answered, &boundary(lease(1), 4, 1, then), 8);

    assert_eq!(amid.state, RunState::Cancelled { at: at(8) });
    assert_eq!(at_boundary.state, RunState::Cancelled { at: at(8) });
    assert_eq!(at_boundary.progress.resume_turn, 1);
}

#[test]
fn a_queued_run_is_cancelled_at_once_and_a_running_one_is_asked() {
    let ended = made(queued(), &cancel(), 5);
    let asked = made(running(), &cancel(), 5);

    assert_eq!(ended.state, RunState::Cancelled { at: at(5) });
    assert_eq!(ended.cancel_requested_at, Some(at(5)));
    assert_eq!(made(asked.clone(), &cancel(), 9), asked);
}

#[test]
fn an_ended_run_is_changed_by_nobody() {
    let ended = made(running(), &finish(Outcome::Succeeded), 5);
    let found = RunStatus::Succeeded;
    let ended_already = TransitionError::AlreadyEnded { found };

    for change in [
        renew(lease(1)),
        repair(lease(1), 20),
        answer(lease(1), 20, 1),
        resume(lease(1), 20, 1),
        record(lease(1), 20, 1),
        go_on(lease(1), 20, 1),
        retry(lease(1), 20, 1, shown_try()),
        Change::GiveBack(give_back(lease(1), 20)),
        Change::Finish(end(lease(1), 20, Outcome::Cancelled)),
        cancel(),
    ] {
        assert_eq!(refused(&ended, &change, 6), ended_already, "{change:?}");
    }
    assert_eq!(
        refused(&ended, &claim(2), 99),
        TransitionError::NotQueued { found }
    );
    assert_eq!(
        refused(&ended, &reclaim(5), 99),
        TransitionError::NotRunning { found }
    );
}
