//! Taking runs from holders that fell silent.

use std::time::Duration;

use hango_domain::conversation::{Block, NewMessage};
use hango_domain::journal;
use hango_domain::run::{Change, RunErrorCode, RunState, RunStatus};
use hango_ports::run_store::{ReclaimRequest, Reclaimed};

use crate::{Fixture, TTL, owner};

const REQUEST: ReclaimRequest = ReclaimRequest {
    limit: 100,
    max_stalled: 5,
    expired_only: true,
};

async fn sweep(fixture: &Fixture, request: ReclaimRequest) -> Vec<Reclaimed> {
    let taken = fixture.stores.runs.reclaim(request).await;
    taken.expect("the sweep works")
}

/// A lease holds until its last moment, and not beyond.
pub async fn a_live_lease_is_not_taken(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let before = fixture.on_record(&place, lease.run).await;

    let expired_at = before.run.lease_expires_at().expect("the run is held");
    fixture.clock.almost(TTL);
    assert_eq!(sweep(&fixture, REQUEST).await, []);
    assert_eq!(fixture.on_record(&place, lease.run).await, before);

    fixture.clock.advance(Duration::from_micros(1));
    let taken = sweep(&fixture, REQUEST).await;
    let expected = Reclaimed {
        previous: lease,
        expired_at,
        resume_turn: 0,
        status: RunStatus::Queued,
        events: fixture
            .on_record(&place, lease.run)
            .await
            .events
            .split_off(4),
    };
    assert_eq!(taken, [expected]);
    assert_eq!(sweep(&fixture, REQUEST).await, []);
}

/// A run that is taken back is claimed again at once, from where it was.
pub async fn a_run_that_was_taken_back_goes_on_behind_its_last_turn(fixture: Fixture) {
    let (place, lease, calls) = fixture.answered(1, 1).await;
    let boundary = fixture.boundary(lease, 1, &calls);
    fixture.written(Change::CompleteTurn(boundary)).await;
    fixture.clock.advance(TTL);

    let taken = sweep(&fixture, REQUEST).await;

    let resume_turns: Vec<u32> = taken.iter().map(|it| it.resume_turn).collect();
    assert_eq!(resume_turns, [1]);
    fixture.held(lease.run, owner(2)).await;
    let run = fixture.on_record(&place, lease.run).await.run;
    assert_eq!(run.progress.begun_turn, 2);
}

/// The longest silent goes first, and no more than were asked for.
pub async fn the_longest_silent_is_taken_first(fixture: Fixture) {
    let (_, first) = fixture.running().await;
    fixture.clock.advance(Duration::from_secs(1));
    let (_, second) = fixture.running().await;
    fixture.clock.advance(TTL * 2);
    let one = ReclaimRequest {
        limit: 1,
        ..REQUEST
    };

    let taken: Vec<_> = [sweep(&fixture, one).await, sweep(&fixture, one).await]
        .concat()
        .iter()
        .map(|it| it.previous)
        .collect();

    assert_eq!(taken, [first, second]);
}

/// Who knows that no other process executes takes live leases too.
pub async fn a_start_up_takes_back_every_running_run_at_once(fixture: Fixture) {
    let (_, lease) = fixture.running().await;
    let all = ReclaimRequest {
        expired_only: false,
        ..REQUEST
    };

    let taken: Vec<_> = sweep(&fixture, all).await;

    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].previous, lease);
    fixture.held(lease.run, owner(2)).await;
}

/// The first time costs no wait, each further one twice as much as the one before, and up to twice that,
/// by the run.
pub async fn each_stalled_attempt_waits_longer(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let forever = ReclaimRequest {
        max_stalled: 0,
        ..REQUEST
    };
    let mut waits = Vec::new();
    for attempt in 0..12 {
        if attempt > 0 {
            fixture.held(lease.run, owner(1)).await;
        }
        fixture.clock.advance(TTL);
        assert_eq!(sweep(&fixture, forever).await.len(), 1);
        let run = fixture.on_record(&place, lease.run).await.run;
        let wait = run
            .available_at
            .map_or(Duration::ZERO, |at| at.since(fixture.now()));
        waits.push(wait);
        if !wait.is_zero() {
            fixture.clock.almost(wait);
            assert!(fixture.claim(lease.run, owner(1)).await.is_none());
            fixture.clock.advance(Duration::from_micros(1));
        }
    }

    let least = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map(Duration::from_secs);
    let longest = Duration::from_mins(5);
    for (wait, least) in waits.into_iter().zip(least) {
        let most = (2 * least).min(longest);
        assert!(
            least <= wait && wait <= most,
            "{wait:?}, not {least:?} to {most:?}"
        );
    }
}

/// With a limit of N the N-th claim without progress is the last; the session goes on.
pub async fn a_run_that_stalls_too_often_fails_and_its_session_goes_on(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let next = fixture.run(&place).await;
    let twice = ReclaimRequest {
        max_stalled: 2,
        ..REQUEST
    };
    fixture.clock.advance(TTL);
    assert_eq!(sweep(&fixture, twice).await[0].status, RunStatus::Queued);
    fixture.held(lease.run, owner(1)).await;
    fixture.clock.advance(TTL);

    assert_eq!(sweep(&fixture, twice).await[0].status, RunStatus::Failed);

    let run = fixture.on_record(&place, lease.run).await.run;
    let code = run.state.error().map(|error| error.code);
    assert_eq!(code, Some(RunErrorCode::Stalled));
    fixture.held(next.id, owner(1)).await;
}

/// A completed turn is progress: the count begins anew.
pub async fn a_completed_turn_forgets_the_stalls_before_it(fixture: Fixture) {
    let (place, lease, _) = fixture.answered(1, 1).await;
    let lease = fixture.taken_over(lease, owner(2)).await;
    let record = fixture.on_record(&place, lease.run).await;
    assert_eq!(record.run.stalled_attempts, 1);

    let boundary = fixture.boundary(lease, 1, &record.calls);
    fixture.written(Change::CompleteTurn(boundary)).await;

    let run = fixture.on_record(&place, lease.run).await.run;
    assert_eq!(run.stalled_attempts, 0);
}

/// A cancel that was asked for is kept by the sweep, stalled or not.
pub async fn a_cancel_that_was_asked_for_wins_over_the_sweep(fixture: Fixture) {
    let once = ReclaimRequest {
        max_stalled: 1,
        ..REQUEST
    };
    let (place, lease) = fixture.running().await;
    fixture
        .cancel(&place.owner, lease.run)
        .await
        .expect("it runs");
    fixture.clock.advance(TTL);

    let taken = sweep(&fixture, once).await;

    assert_eq!(taken[0].status, RunStatus::Cancelled);
    let run = fixture.on_record(&place, lease.run).await.run;
    assert_eq!(run.state, RunState::Cancelled { at: fixture.now() });
}

/// A run that the sweep ends answers its open calls: known results stay, calls that began are in doubt,
/// the others were not executed. The next run of the session can use the history.
pub async fn the_sweep_answers_the_open_calls_of_a_run_that_it_ends(fixture: Fixture) {
    let (place, lease, calls) = fixture.answered(3, 2).await;
    let record = fixture.record(lease, &calls[0], None);
    fixture.written(Change::Record(record)).await;
    let before = fixture.on_record(&place, lease.run).await;
    fixture.clock.advance(TTL);
    let once = ReclaimRequest {
        max_stalled: 1,
        ..REQUEST
    };

    assert_eq!(sweep(&fixture, once).await[0].status, RunStatus::Failed);

    let after = fixture.on_record(&place, lease.run).await;
    let result =
        |position: u32, content: &str, for_user: Option<&str>, is_error| Block::ToolResult {
            tool_use_id: format!("call_1_{position}"),
            content: content.to_owned(),
            for_user: for_user.map(str::to_owned),
            is_error,
        };
    let closing = NewMessage::user(
        journal::closing_message_id(lease.run),
        vec![
            result(1, "result 1", Some("get_time said so"), false),
            result(2, journal::OUTCOME_UNKNOWN, None, true),
            result(3, journal::NOT_EXECUTED, None, true),
        ],
    );
    let stored = closing.stored(place.session.id, Some(lease.run), 3, fixture.now());
    assert_eq!(after.messages[..2], before.messages);
    assert_eq!(after.messages[2..], [stored]);
    assert!(
        after
            .calls
            .iter()
            .all(hango_domain::journal::ToolCall::is_settled)
    );
    let names: Vec<&str> = after.events[before.events.len()..]
        .iter()
        .map(|event| event.kind.name())
        .collect();
    let expected = [
        "tool.completed",
        "tool.completed",
        "message.completed",
        "run.failed",
    ];
    assert_eq!(names, expected);
}

/// A run that goes on keeps its open calls: nobody answers them before its next holder does.
pub async fn the_sweep_leaves_open_the_calls_of_a_run_that_goes_on(fixture: Fixture) {
    let (place, lease, calls) = fixture.answered(2, 1).await;
    fixture.clock.advance(TTL);

    assert_eq!(sweep(&fixture, REQUEST).await[0].status, RunStatus::Queued);

    let after = fixture.on_record(&place, lease.run).await;
    assert_eq!(after.calls, calls);
    assert_eq!(after.messages.len(), 2);
}
