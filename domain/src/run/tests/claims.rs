//! Taking a run off the queue and putting it back: by its holder, or by the sweep.

use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::RunId;

/// The run after it was claimed and reclaimed `times` times, and the second at which it is available.
fn stalled(times: u32) -> (Run, u64) {
    let mut run = queued();
    let mut second = 0;
    for _ in 0..times {
        run = made(run, &claim(1), second);
        second += TTL.as_secs();
        run = made(run, &reclaim(0), second);
        second += 300;
    }
    (run, second)
}

#[test]
fn a_claim_takes_the_run_off_the_queue_under_a_new_attempt() {
    let claimed = made(queued(), &claim(1), 7);

    assert_eq!(
        claimed,
        Run {
            state: RunState::Running {
                owner: owner(1),
                expires_at: at(37),
            },
            attempt: 1,
            started_at: Some(at(7)),
            progress: Progress {
                begun_turn: 1,
                last_event: 4,
                ..Progress::default()
            },
            ..queued()
        }
    );
    assert_eq!(claimed.lease(), Some(lease(1)));
}

#[test]
fn a_later_claim_keeps_the_moment_of_the_first() {
    let given_back = made(running(), &Change::GiveBack(give_back(lease(1), 1)), 10);

    let claimed = made(given_back, &claim(2), 20);

    assert_eq!(claimed.started_at, Some(at(0)));
    assert_eq!(claimed.attempt, 2);
}

#[test]
fn a_run_that_is_running_is_not_claimed_again() {
    let found = RunStatus::Running;

    assert_eq!(
        refused(&running(), &claim(2), 99),
        TransitionError::NotQueued { found }
    );
}

#[test]
fn a_run_that_waits_is_claimed_at_the_moment_it_waits_for_and_not_before() {
    let waiting = GiveBack {
        delay: Duration::from_mins(1),
        reason: RequeueReason::ProviderWait,
        ..give_back(lease(1), 1)
    };
    let run = made(running(), &Change::GiveBack(waiting), 10);

    assert_eq!(run.available_at, Some(at(70)));
    assert_eq!(
        refused(&run, &claim(1), 69),
        TransitionError::NotAvailable { until: at(70) }
    );
    assert_eq!(made(run, &claim(1), 70).available_at, None);
}

#[test]
fn a_lease_is_renewed_until_it_expires_and_not_after() {
    let renewed = made(running(), &renew(lease(1)), 29);

    assert_eq!(
        renewed.state,
        RunState::Running {
            owner: owner(1),
            expires_at: at(59),
        }
    );
    assert_eq!(refused(&renewed, &renew(lease(1)), 59), lost(lease(1)));
}

#[test]
fn a_live_lease_is_not_reclaimed() {
    assert_eq!(
        refused(&running(), &reclaim(5), 29),
        TransitionError::StillHeld { until: at(30) }
    );
    let found = RunStatus::Queued;
    assert_eq!(
        refused(&queued(), &reclaim(5), 99),
        TransitionError::NotRunning { found }
    );
}

#[test]
fn who_knows_that_no_other_process_lives_takes_a_run_back_at_once() {
    let taken = made(running(), &take_back(), 1);

    assert_eq!(taken.state, RunState::Queued);
    assert_eq!(taken.available_at, None);
}

#[test]
fn runs_that_were_taken_back_together_come_back_apart() {
    let wait = |id: u128| {
        let run = Run {
            id: RunId(Uuid::from_u128(id)),
            ..stalled(1).0
        };
        let run = made(made(run, &claim(1), 600), &reclaim(0), 700);
        let until = run.available_at.expect("it waits");
        until.since(at(700)).as_millis()
    };

    assert_eq!([wait(0), wait(0x8000), wait(0xffff)], [1000, 1500, 1999]);
}

#[test]
fn the_first_reclaim_waits_for_nothing_and_each_further_one_twice_as_long_up_to_five_minutes() {
    let waits: Vec<u64> = (1..=12)
        .map(|times| {
            let (run, second) = stalled(times);
            let reclaimed = at(second - 300);
            let wait = run.available_at.map(|until| until.since(reclaimed));
            wait.unwrap_or_default().as_secs()
        })
        .collect();

    assert_eq!(waits, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
}

#[test]
fn the_last_claim_without_progress_fails_the_run_as_stalled() {
    let (run, second) = stalled(2);
    let run = made(run, &claim(1), second);

    let failed = made(run.clone(), &reclaim(3), second + 30);

    assert_eq!(failed.attempt, 3);
    assert_eq!(
        failed.state.error().map(|error| error.code),
        Some(RunErrorCode::Stalled)
    );
    assert_eq!(made(run, &reclaim(4), second + 30).state, RunState::Queued);
}

#[test]
fn with_a_limit_of_zero_a_run_is_reclaimed_for_ever() {
    let (run, _) = stalled(50);

    assert_eq!(run.state, RunState::Queued);
    assert_eq!(run.stalled_attempts, 50);
}

#[test]
fn a_completed_turn_is_progress_and_giving_back_is_neither() {
    let (run, second) = stalled(2);
    let run = made(run, &claim(1), second);
    let lease = lease(3);

    let given_back = made(
        run.clone(),
        &Change::GiveBack(give_back(lease, 1)),
        second + 1,
    );
    let answered = made(run, &answer(lease, 2, 1), second + 1);
    let completed = made(answered, &go_on(lease, 3, 1), second + 2);

    assert_eq!(given_back.stalled_attempts, 2);
    assert_eq!(completed.stalled_attempts, 0);
    assert_eq!(
        made(completed, &reclaim(2), second + 40).state,
        RunState::Queued
    );
}

#[test]
fn a_stalled_run_whose_cancel_was_asked_for_ends_cancelled() {
    let asked = made(running(), &Change::RequestCancel { closing: None }, 5);

    let ended = made(asked, &reclaim(1), 30);

    assert_eq!(ended.state, RunState::Cancelled { at: at(30) });
}
