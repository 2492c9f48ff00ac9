//! Writes whose outcome their writer does not know: made again as they were, they are answered as the
//! first time, and nothing is stored twice.

use std::time::Duration;

use hango_domain::run::{Change, Resume, TransitionError};
use hango_ports::run_store::Written;

use crate::{Fixture, Place, owner, refused};

async fn is_answered_as_the_first(fixture: &Fixture, place: &Place, change: Change) {
    let lease = change.lease().expect("a holder's write");
    let first = fixture.written(change.clone()).await;
    let before = fixture.on_record(place, lease.run).await;
    fixture.clock.advance(Duration::from_secs(1));

    let again = fixture.written(change.clone()).await;

    let expected = Written {
        events: Vec::new(),
        ..first
    };
    assert_eq!(again, expected, "{change:?}");
    let after = fixture.on_record(place, lease.run).await;
    assert_eq!(after, before, "{change:?}");
}

/// Who does not know whether his write was made makes it again, and gets the first one's answer:
/// nothing is stored twice.
pub async fn each_write_can_be_repeated_after_an_unknown_outcome(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let repeat = async |change| is_answered_as_the_first(&fixture, &place, change).await;
    repeat(Change::Repair(fixture.repair(lease))).await;
    repeat(Change::Retry(fixture.retry(lease, 1))).await;
    repeat(Change::Answer(fixture.answer(lease, 1, 3, 1))).await;
    let calls = fixture.on_record(&place, lease.run).await.calls;
    repeat(Change::Record(fixture.record(
        lease,
        &calls[0],
        Some(&calls[1]),
    )))
    .await;
    repeat(Change::Resume(Resume {
        lease,
        write: fixture.write_id(),
        turn: 1,
        starts: vec![calls[1].to_started(), calls[2].to_started()],
        in_doubt: Vec::new(),
    }))
    .await;
    let calls = fixture.on_record(&place, lease.run).await.calls;
    repeat(Change::CompleteTurn(fixture.boundary(lease, 1, &calls))).await;
    repeat(Change::GiveBack(fixture.give_back(lease, Duration::ZERO))).await;
    let lease = fixture.held(lease.run, owner(2)).await;
    repeat(Change::Finish(fixture.finish(lease, 2))).await;
}

/// The answer of a repeat does not depend on whether its writer still has the run.
pub async fn a_repeat_is_recognised_before_the_fence_refuses(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let change = Change::Repair(fixture.repair(lease));
    let first = fixture.written(change.clone()).await;
    let fresh = fixture.taken_over(lease, owner(2)).await;
    let before = fixture.on_record(&place, lease.run).await;

    let again = fixture.written(change).await;

    assert_eq!(again.events, []);
    assert_eq!(again.status, first.status);
    assert_eq!(fixture.on_record(&place, lease.run).await, before);
    let another = Change::Repair(fixture.repair(lease));
    let lost = TransitionError::LeaseLost {
        owner: lease.owner,
        presented: lease.attempt,
    };
    assert_eq!(refused(fixture.write(another).await), lost);
    assert_eq!(before.run.lease(), Some(fresh));
}
