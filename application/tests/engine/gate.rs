//! One provider, many runs: when it fails, not all of them have to find out.

use std::time::Duration;

use hango_conformance::Place;
use hango_domain::model::{ModelFailure, ModelFailureKind};
use hango_domain::run::RunStatus;
use tokio::time::Instant;

use crate::support::{Say, World, says, settings};

fn busy(retry_after: Option<Duration>) -> Vec<Say> {
    let mut failure = ModelFailure::new(ModelFailureKind::Unavailable, "overloaded");
    failure.retry_after = retry_after;
    vec![Say::Refuse(failure)]
}

/// Sessions of the world's place.
async fn sessions(world: &World, count: usize) -> Vec<Place> {
    let mut places = Vec::new();
    for _ in 0..count {
        let place = world.place.clone();
        let session = world.fixture.session(&place.owner, place.agent.id).await;
        places.push(Place { session, ..place });
    }
    places
}

/// Seconds from `start` to each call.
fn seconds(world: &World, start: Instant) -> Vec<u64> {
    let calls = world.provider.calls();
    calls
        .iter()
        .map(|call| (call.at - start).as_secs())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_dead_provider_is_not_called_by_every_run() {
    let world = World::new().await;
    world.provider.otherwise(busy(None));
    let mut settings = settings();
    settings.workers = 20;
    let places = sessions(&world, 20).await;

    let process = world.start(settings).await;
    let start = Instant::now();
    for place in &places {
        world.run_in(place).await;
    }
    for place in &places {
        world.all_ended(place, RunStatus::Failed).await;
    }
    process.drain().await;

    let seconds = seconds(&world, start);
    let in_the_first = seconds.iter().filter(|second| **second < 1).count();
    assert!(in_the_first <= 8, "5 close the gate: {seconds:?}");
    let busiest = (0..60).map(|at| seconds.iter().filter(|it| **it == at).count());
    assert!(
        busiest.skip(1).max() <= Some(4),
        "then one probes: {seconds:?}"
    );
    assert!(seconds.len() < 60, "20 runs, 3 tries each: {seconds:?}");
}

#[tokio::test(start_paused = true)]
async fn after_the_rest_that_a_provider_asked_for_one_call_probes_and_the_others_wait() {
    let world = World::new().await;
    let places = sessions(&world, 3).await;
    let mut slow = vec![Say::Pause(Duration::from_secs(1))];
    slow.extend(says("It is noon."));
    world.provider.then(busy(Some(Duration::from_secs(5))));
    world.provider.otherwise(slow);

    let process = world.start(settings()).await;
    let start = Instant::now();
    for place in &places {
        world.run_in(place).await;
    }
    for place in &places {
        world.all_ended(place, RunStatus::Succeeded).await;
    }
    process.drain().await;

    assert_eq!(seconds(&world, start), [0, 5, 6, 6]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_asked_for_before_does_not_end_the_rest_that_a_provider_asked_for() {
    let world = World::new().await;
    let places = sessions(&world, 3).await;
    let mut slow = vec![Say::Pause(Duration::from_secs(2))];
    slow.extend(says("It is noon."));
    world.provider.then(slow);
    world.provider.then(busy(Some(Duration::from_secs(8))));
    world.provider.otherwise(says("It is one."));

    let process = world.start(settings()).await;
    let start = Instant::now();
    world.run_in(&places[0]).await;
    world
        .until("the first is asked", || world.provider.count() == 1)
        .await;
    world.run_in(&places[1]).await;
    world.all_ended(&places[0], RunStatus::Succeeded).await;
    world.run_in(&places[2]).await;
    for place in &places {
        world.all_ended(place, RunStatus::Succeeded).await;
    }
    process.drain().await;

    assert_eq!(seconds(&world, start), [0, 0, 8, 8]);
}
