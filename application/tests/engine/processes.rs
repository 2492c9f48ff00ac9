//! Many runs at once, in one process and in two: each is executed once, in its session's order.

use std::collections::BTreeMap;
use std::time::Duration;

use hango_conformance::{Place, owner};
use hango_domain::RunId;
use hango_domain::run::{Run, RunStatus};
use tokio::time::Instant;

use crate::support::{Call, Say, World, says, settings};

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

fn takes(span: Duration) -> Vec<Say> {
    std::iter::once(Say::Pause(span))
        .chain(says("Done."))
        .collect()
}

/// When a call began and when its stream was dropped.
fn span(call: &Call) -> (Instant, Instant) {
    (call.at, call.closed.expect("every stream was dropped"))
}

/// The most spans that a moment lies in.
fn most_at_once(calls: &[Call]) -> usize {
    let at_once = |moment: Instant| {
        let spans = calls.iter().map(span);
        spans
            .filter(|(from, to)| *from <= moment && moment < *to)
            .count()
    };
    calls.iter().map(|call| at_once(call.at)).max().unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_on_one_store_execute_each_run_once() {
    let world = World::new().await;
    world.provider.otherwise(takes(Duration::from_millis(5)));
    let places = sessions(&world, 50).await;
    let mut settings = settings();
    settings.poll_interval = Duration::from_millis(5);
    let first = world.start_as(owner(1), settings).await;
    let second = world.start_as(owner(2), settings).await;

    for place in &places {
        world.run_in(place).await;
    }
    for place in &places {
        world.all_ended(place, RunStatus::Succeeded).await;
    }
    first.drain().await;
    second.drain().await;

    let mut calls: BTreeMap<RunId, usize> = BTreeMap::new();
    for call in world.provider.calls() {
        *calls.entry(call.asked.context.run).or_default() += 1;
        assert_eq!(call.asked.context.attempt, 1);
    }
    assert_eq!(calls.len(), 50);
    assert!(calls.values().all(|count| *count == 1), "{calls:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sessions_runs_are_executed_in_their_order_and_one_at_a_time() {
    let world = World::new().await;
    world.provider.otherwise(takes(Duration::from_millis(2)));
    let places = sessions(&world, 50).await;
    let mut settings = settings();
    settings.workers = 8;
    let process = world.start(settings).await;

    let mut accepted: Vec<Run> = Vec::new();
    for _ in 0..4 {
        for place in &places {
            accepted.push(world.run_in(place).await);
        }
    }
    for place in &places {
        world.all_ended(place, RunStatus::Succeeded).await;
    }
    process.drain().await;

    let calls = world.provider.calls();
    assert_eq!(calls.len(), 200);
    assert!(most_at_once(&calls) <= 8, "{}", most_at_once(&calls));
    for place in &places {
        let session = place.session.id;
        let own = |call: &&Call| call.asked.context.session == session;
        let own: Vec<Call> = calls.iter().filter(own).cloned().collect();
        let executed: Vec<RunId> = own.iter().map(|call| call.asked.context.run).collect();
        let in_order = accepted.iter().filter(|run| run.session_id == session);
        assert_eq!(executed, in_order.map(|run| run.id).collect::<Vec<_>>());
        assert_eq!(most_at_once(&own), 1);
    }
}
