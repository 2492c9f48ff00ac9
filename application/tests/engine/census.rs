//! Operators are told how much there is to do, and how much of it each process does.

use std::time::Duration;

use hango_domain::queue::Counts;
use hango_ports::run_store::Census;
use hango_ports::telemetry::Observation;
use tokio::time::{Instant, sleep};

use crate::support::{Say, World, settings};

/// How often it is told.
const EVERY: Duration = Duration::from_secs(15);

/// What was told of the store, and of the workers.
fn told(world: &World) -> (Vec<Census>, Vec<(usize, usize)>) {
    let (mut censuses, mut workers) = (Vec::new(), Vec::new());
    for observation in world.watching.observed() {
        match observation {
            Observation::Census(census) => censuses.push(census),
            Observation::Workers { busy, limit } => workers.push((busy, limit)),
            _ => {}
        }
    }
    (censuses, workers)
}

#[tokio::test(start_paused = true)]
async fn what_runs_and_waits_is_told_at_start_up_and_then_again_and_again() {
    let world = World::new().await;
    world.provider.then(vec![Say::Hang]);
    let process = world.start(settings()).await;
    world
        .until("it is told at once", || told(&world).0.len() == 1)
        .await;
    assert_eq!(told(&world), (vec![Census::default()], vec![(0, 4)]));

    world.run().await;
    world.run().await;
    world
        .until("one is executed", || process.engine.executing() == 1)
        .await;
    world
        .until("it is told again", || told(&world).0.len() == 2)
        .await;

    let (censuses, workers) = told(&world);
    let both = Counts {
        queued: 1,
        running: 1,
    };
    assert_eq!(censuses[1].tenants, [(world.place.tenant, both)]);
    assert_eq!(censuses[1].claimable_for, None);
    assert_eq!(workers[1], (1, 4));
    let begun = Instant::now();
    world
        .until("it is told again", || told(&world).0.len() == 4)
        .await;
    let took = begun.elapsed();
    assert!(took > EVERY && took <= 2 * EVERY, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn while_the_store_fails_only_the_workers_are_told_of() {
    let world = World::new().await;
    let process = world.start(settings()).await;
    world
        .until("it is told at once", || told(&world).0.len() == 1)
        .await;

    world.store.set_down(true);
    world
        .until("workers are told of", || told(&world).1.len() == 4)
        .await;
    assert_eq!(told(&world).0.len(), 1);
    world.store.set_down(false);
    world
        .until("the store is told of", || told(&world).0.len() == 2)
        .await;

    let begun = Instant::now();
    process.drain().await;
    assert!(begun.elapsed() < Duration::from_secs(1));
    let at_the_end = told(&world).1.len();
    sleep(4 * EVERY).await;
    assert_eq!(told(&world).1.len(), at_the_end);
}
