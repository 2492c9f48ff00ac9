//! A lost lease can do nothing any more: every write of a holder, named, by a former holder.

use std::time::Duration;

use hango_domain::run::{Change, Lease, Resume, RunStatus, TransitionError};

use crate::{Fixture, Place, owner, refused};

/// Every write of a holder, for a run whose first answer, with one call, is on record.
async fn every_write(fixture: &Fixture, place: &Place, lease: Lease) -> Vec<Change> {
    let calls = fixture.on_record(place, lease.run).await.calls;
    let resume = Resume {
        lease,
        write: fixture.write_id(),
        turn: 1,
        starts: Vec::new(),
        in_doubt: vec![calls[0].to_result(
            hango_domain::tool::ToolResult::error("nobody knows"),
            true,
            None,
        )],
    };
    vec![
        Change::Repair(fixture.repair(lease)),
        Change::Answer(fixture.answer(lease, 1, 1, 1)),
        Change::Resume(resume),
        Change::Record(fixture.record(lease, &calls[0], None)),
        Change::CompleteTurn(fixture.boundary(lease, 1, &calls)),
        Change::Retry(fixture.retry(lease, 1)),
        Change::GiveBack(fixture.give_back(lease, Duration::ZERO)),
        Change::Finish(fixture.finish(lease, 1)),
    ]
}

async fn nothing_is_written_under(fixture: &Fixture, place: &Place, stale: Lease) {
    let before = fixture.on_record(place, stale.run).await;
    for change in every_write(fixture, place, stale).await {
        let rule = refused(fixture.write(change.clone()).await);

        let lost = TransitionError::LeaseLost {
            owner: stale.owner,
            presented: stale.attempt,
        };
        assert_eq!(rule, lost, "{change:?}");
        let after = fixture.on_record(place, stale.run).await;
        assert_eq!(after, before, "{change:?}");
    }
}

/// A holder that fell silent appends nothing, counts nothing and ends nothing once somebody else has
/// the run.
pub async fn a_lost_lease_writes_nothing(fixture: Fixture) {
    let (place, stale, _) = fixture.answered(1, 1).await;
    fixture.taken_over(stale, owner(2)).await;

    nothing_is_written_under(&fixture, &place, stale).await;
}

/// The same holds where that somebody is the same process.
pub async fn a_process_cannot_write_as_its_former_self(fixture: Fixture) {
    let (place, stale, _) = fixture.answered(1, 1).await;
    fixture.taken_over(stale, owner(1)).await;

    nothing_is_written_under(&fixture, &place, stale).await;
}

/// Nor while nobody has it.
pub async fn a_lost_lease_writes_nothing_while_the_run_waits(fixture: Fixture) {
    let (place, stale, _) = fixture.answered(1, 1).await;
    fixture.clock.advance(crate::TTL);
    assert_eq!(fixture.sweep().await, [stale.run]);

    nothing_is_written_under(&fixture, &place, stale).await;
}

/// A lease that was guessed opens nothing, be it for the right attempt or the right owner.
pub async fn a_guessed_lease_writes_nothing(fixture: Fixture) {
    let (place, lease, _) = fixture.answered(1, 1).await;
    for forged in [
        Lease {
            owner: owner(2),
            ..lease
        },
        Lease {
            attempt: lease.attempt + 1,
            ..lease
        },
    ] {
        nothing_is_written_under(&fixture, &place, forged).await;
    }
}

/// Once a run ended its former holder is told so, and nothing of it changes.
pub async fn nothing_is_written_behind_the_end(fixture: Fixture) {
    let (place, lease, calls) = fixture.answered(1, 1).await;
    let boundary = fixture.boundary(lease, 1, &calls);
    fixture.written(Change::CompleteTurn(boundary)).await;
    fixture
        .written(Change::Finish(fixture.finish(lease, 2)))
        .await;
    let before = fixture.on_record(&place, lease.run).await;

    for change in every_write(&fixture, &place, lease).await {
        let rule = refused(fixture.write(change.clone()).await);

        let ended = TransitionError::AlreadyEnded {
            found: RunStatus::Succeeded,
        };
        assert_eq!(rule, ended, "{change:?}");
        let after = fixture.on_record(&place, lease.run).await;
        assert_eq!(after, before, "{change:?}");
    }
}

/// Only a renewal asks whether the lease ran out: who still has the run may write late.
pub async fn a_late_write_is_taken_while_nobody_took_the_run(fixture: Fixture) {
    let (place, lease, calls) = fixture.answered(1, 1).await;
    fixture.clock.advance(crate::TTL * 2);

    let boundary = fixture.boundary(lease, 1, &calls);
    let written = fixture.written(Change::CompleteTurn(boundary)).await;

    assert_eq!(written.status, RunStatus::Running);
    let run = fixture.on_record(&place, lease.run).await.run;
    assert_eq!(run.progress.resume_turn, 1);
}
