//! Calls of one answer: side by side, each on record as it ends.

use std::time::Duration;

use hango_domain::event::{Event, EventKind};
use hango_domain::run::{ChangeKind, RunStatus};
use hango_ports::tool::Idempotency;
use serde_json::json;

use crate::support::{Does, World, asks, says, settings, texts};

#[tokio::test(start_paused = true)]
async fn eight_calls_four_at_a_time_take_twice_as_long_as_one() {
    let mut world = World::new().await;
    let takes = Does::Takes(Duration::from_millis(200));
    let tool = world.tool("slow", Idempotency::Safe, takes);
    let ids = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];
    let script = &world.provider;
    script.then(asks(&ids.map(|id| (id, "slow", json!({})))));
    script.then(says("Done."));

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    let calls = world.provider.calls();
    let took = calls[1].at - calls[0].at;
    assert_eq!(took.as_millis(), 400);
    let results = ids.map(|id| format!("{id}: slow did {id}"));
    assert_eq!(texts(&record.messages)[9..17], results);
    assert_eq!(tool.count(), 8);
    let records = [ChangeKind::Record; 7];
    assert_eq!(world.kinds_written()[1..8], records);
    assert_eq!(most_at_once(&record.events), 4);
}

/// How many calls had been begun and not completed at once, by the events.
fn most_at_once(events: &[Event]) -> i32 {
    let mut most = 0;
    events.iter().fold(0, |running, event| {
        let running = match event.kind {
            EventKind::ToolStarted { .. } => running + 1,
            EventKind::ToolCompleted { .. } => running - 1,
            _ => running,
        };
        most = most.max(running);
        running
    });
    most
}

#[tokio::test(start_paused = true)]
async fn results_stand_in_the_order_of_the_calls_whichever_ends_first() {
    let mut world = World::new().await;
    let takes = |millis| Does::Takes(Duration::from_millis(millis));
    world.tool("slow", Idempotency::Safe, takes(300));
    world.tool("quick", Idempotency::Safe, takes(100));
    let script = &world.provider;
    script.then(asks(&[
        ("c1", "slow", json!({})),
        ("c2", "quick", json!({})),
        ("c3", "slow", json!({})),
    ]));
    script.then(says("Done."));

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    let completed = record.events.iter().filter_map(|event| match &event.kind {
        EventKind::ToolCompleted { position, .. } => Some(*position),
        _ => None,
    });
    assert_eq!(completed.collect::<Vec<_>>(), [2, 1, 3]);
    assert_eq!(
        texts(&record.messages)[4..7],
        ["c1: slow did c1", "c2: quick did c2", "c3: slow did c3"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_does_not_disturb_those_beside_it() {
    let mut world = World::new().await;
    world.tool("bomb", Idempotency::Safe, Does::Panics);
    let takes = Does::Takes(Duration::from_millis(100));
    let tool = world.tool("slow", Idempotency::Safe, takes);
    let script = &world.provider;
    script.then(asks(&[
        ("c1", "bomb", json!({})),
        ("c2", "slow", json!({})),
    ]));
    script.then(says("Half of it."));

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!(texts(&record.messages)[4], "c2: slow did c2");
    assert!(tool.executions()[0].returned);
}
