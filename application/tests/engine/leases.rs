//! Renewal: in real time, on a thread of its own.

use std::sync::Arc;
use std::time::Duration;

use hango_application::engine::EngineSettings;
use hango_domain::event::EventKind;
use hango_domain::run::{ChangeKind, RequeueReason, RunStatus};
use tokio::sync::Semaphore;

use crate::support::{Fault, Say, World, says, settings};

/// Leases that would not last for a test without renewal.
fn short_leases() -> EngineSettings {
    EngineSettings {
        lease_ttl: Duration::from_secs(1),
        heartbeat: Duration::from_millis(50),
        reclaim_interval: Duration::from_millis(50),
        poll_interval: Duration::from_millis(50),
        ..settings()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_lasts_three_leases_is_executed_once() {
    let world = World::new().await;
    let mut slow = vec![Say::Pause(Duration::from_secs(3))];
    slow.extend(says("It is noon."));
    world.provider.then(slow);

    let process = world.start(short_leases()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!((record.run.attempt, world.provider.count()), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_answer_was_lost_is_given_back_long_before_its_lease_ends() {
    let world = World::new().await;
    world.provider.then(says("It is noon."));
    world.store.spoil(ChangeKind::Claim, Fault::AnswerLost);
    let run = world.run().await;
    let mut settings = short_leases();
    settings.lease_ttl = Duration::from_hours(1);

    let process = world.start(settings).await;
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!((record.run.attempt, record.run.stalled_attempts), (2, 0));
    let reason = RequeueReason::Orphaned;
    let requeued = |it: &&_| **it == EventKind::RunRequeued { reason };
    for events in [record.events, world.watching.durable(run.id)] {
        let kinds: Vec<_> = events.into_iter().map(|it| it.kind).collect();
        assert_eq!(kinds.iter().filter(requeued).count(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_answer_takes_longer_than_renewals_is_executed_and_not_given_back() {
    let world = World::new().await;
    world.provider.then(says("It is noon."));
    let answer = Arc::new(Semaphore::new(0));
    let held = Fault::AnswerHeld(Arc::clone(&answer));
    world.store.spoil(ChangeKind::Claim, held);
    let run = world.run().await;
    let mut settings = short_leases();
    settings.lease_ttl = Duration::from_hours(1);

    let process = world.start(settings).await;
    let beats = world.store.asked(ChangeKind::Renew) + 4;
    let beaten = || world.store.asked(ChangeKind::Renew) >= beats;
    world.until("renewals find the claim", beaten).await;
    answer.add_permits(1);
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!((record.run.attempt, world.provider.count()), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_that_panics_starts_again_before_the_leases_end() {
    let world = World::new().await;
    let mut slow = vec![Say::Pause(Duration::from_millis(4500))];
    slow.extend(says("It is noon."));
    world.provider.then(slow);
    let mut settings = short_leases();
    settings.lease_ttl = Duration::from_secs(4);

    let process = world.start(settings).await;
    let run = world.run().await;
    world
        .until("it is asked", || world.provider.count() == 1)
        .await;
    world.store.spoil(ChangeKind::Renew, Fault::Panics);
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!((record.run.attempt, world.provider.count()), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_is_dropped_stops_renewing_so_that_others_take_its_runs() {
    let world = World::new().await;
    world.provider.then(vec![Say::Hang]);
    world.provider.then(says("It is noon."));
    let dies = world.start(short_leases()).await;
    let run = world.run().await;
    world
        .until("it is asked", || world.provider.count() == 1)
        .await;

    drop(dies);
    let other = world
        .start_as(hango_conformance::owner(2), short_leases())
        .await;
    let record = world.ended(run.id).await;
    other.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!((record.run.attempt, world.provider.count()), (2, 2));
}
