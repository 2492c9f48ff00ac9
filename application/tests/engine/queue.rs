//! Claiming: what is queued is found, in its order, and never more than can be executed.

use std::time::Duration;

use hango_domain::run::{ChangeKind, RunState, RunStatus};

use crate::support::{Fault, Say, World, says, settings};

#[tokio::test(start_paused = true)]
async fn a_sessions_next_run_starts_when_the_former_ends_and_waits_for_no_poll() {
    let world = World::new().await;
    world.provider.otherwise(says("It is noon."));
    let mut settings = settings();
    settings.poll_interval = Duration::from_hours(10);

    let process = world.start(settings).await;
    let (first, second) = (world.run().await, world.run().await);
    let first = world.ended(first.id).await;
    let second = world.ended(second.id).await;
    process.drain().await;

    let ended = first.events.last().map(|event| event.at);
    assert_eq!(first.run.state.status(), RunStatus::Succeeded);
    assert_eq!(
        second.run.started_at, ended,
        "on a clock that nobody made wait"
    );
}

#[tokio::test(start_paused = true)]
async fn an_accepted_run_of_which_nobody_was_told_is_found_by_the_poll() {
    let world = World::new().await;
    world.provider.then(says("It is noon."));
    let process = world.start(settings()).await;
    world.polls_after(1).await;

    let run = world.fixture.run(&world.place).await;
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    let waited = record
        .run
        .started_at
        .map(|at| at.since(record.run.created_at));
    assert!(waited <= Some(settings().poll_interval), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn no_more_runs_are_claimed_than_can_be_executed() {
    let world = World::new().await;
    world.provider.otherwise(vec![Say::Hang]);
    let mut settings = settings();
    settings.workers = 2;
    let process = world.start(settings).await;
    let mut runs = Vec::new();
    for _ in 0..5 {
        let place = world.place(|_| {}).await;
        runs.push((world.run_in(&place).await, place));
    }

    world
        .until("two are asked", || world.provider.count() == 2)
        .await;
    let polls = || world.store.asked(ChangeKind::RequestCancel) >= 3;
    world.until("a few polls have passed", polls).await;

    let mut running = 0;
    for (run, place) in &runs {
        let record = world.fixture.on_record(place, run.id).await;
        running += usize::from(matches!(record.run.state, RunState::Running { .. }));
    }
    assert_eq!((running, process.engine.executing()), (2, 2));
    process.engine.drain(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_a_while_does_not_stop_the_scheduler() {
    let world = World::new().await;
    world.provider.then(says("It is noon."));
    world.store.set_down(true);

    let process = world.start(settings()).await;
    let run = world.run().await;
    let asked = || world.store.asked(ChangeKind::Claim) >= 5;
    world.until("it was asked in vain", asked).await;
    world.store.set_down(false);
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!(record.run.attempt, 1);
}

#[tokio::test(start_paused = true)]
async fn a_scheduler_and_a_sweep_that_panic_start_again() {
    let world = World::new().await;
    world.provider.then(says("It is noon."));
    world.store.spoil(ChangeKind::Claim, Fault::Panics);
    world.store.spoil(ChangeKind::Reclaim, Fault::Panics);

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    let sweeps = || world.store.asked(ChangeKind::Reclaim) >= 3;
    world.until("the sweep works", sweeps).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
}
