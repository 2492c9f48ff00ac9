//! Cancels: wherever a run stands, it ends, and what it leaves is a history to go on from.

use std::sync::Arc;
use std::time::Duration;

use hango_domain::model::{ModelFailure, ModelFailureKind, StreamEvent};
use hango_domain::run::{ChangeKind, RunStatus};
use hango_ports::tool::Idempotency;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::support::{Does, Fault, Say, World, asks, says, settings, texts};

fn begins(text: &str) -> Vec<Say> {
    let text = StreamEvent::Text {
        index: 0,
        text: text.to_owned(),
    };
    vec![Say::Event(text), Say::Hang]
}

#[tokio::test(start_paused = true)]
async fn a_cancel_closes_the_stream_and_keeps_what_had_arrived_for_people() {
    let world = World::new().await;
    world.provider.then(begins("It is alm"));
    world.provider.then(says("It is noon."));

    let process = world.start(settings()).await;
    let run = world.run().await;
    let shown = || !world.watching.deltas(run.id).is_empty();
    world.until("something is shown", shown).await;
    world.cancel(run.id).await;
    let record = world.ended(run.id).await;
    let next = world.run().await;
    let next = world.ended(next.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Cancelled);
    assert_eq!(texts(&record.messages), ["What time is it?", "It is alm"]);
    assert!(record.messages[1].partial);
    let calls = world.provider.calls();
    assert!(calls[0].closed.is_some() && !calls[0].whole);
    assert_eq!(next.run.state.status(), RunStatus::Succeeded);
    assert!(!texts(&calls[1].asked.messages).concat().contains("alm"));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_drops_running_tools_and_answers_their_calls() {
    let mut world = World::new().await;
    let tool = world.tool("stuck", Idempotency::Unsafe, Does::Hangs);
    let quick = world.tool("quick", Idempotency::Unsafe, Does::Returns);
    let script = &world.provider;
    script.then(asks(&[
        ("c1", "stuck", json!({})),
        ("c2", "quick", json!({})),
        ("c3", "stuck", json!({})),
        ("c4", "quick", json!({})),
    ]));
    script.then(says("It is noon."));
    let mut settings = settings();
    settings.tool_concurrency = 2;

    let process = world.start(settings).await;
    let run = world.run().await;
    world.until("both hang", || tool.count() == 2).await;
    world.cancel(run.id).await;
    let record = world.ended(run.id).await;
    let next = world.run().await;
    let next = world.ended(next.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Cancelled);
    assert_eq!(
        texts(&record.messages)[5..],
        [
            "c1! interrupted, outcome unknown",
            "c2: quick did c2",
            "c3! interrupted, outcome unknown",
            "c4! tool call interrupted",
        ]
    );
    assert!(
        tool.executions()
            .iter()
            .all(|it| it.dropped.is_some() && !it.returned)
    );
    assert_eq!(quick.count(), 1);
    assert_eq!(next.run.state.status(), RunStatus::Succeeded);
    assert_eq!(world.provider.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_queued_run_that_is_cancelled_is_never_claimed() {
    let world = World::new().await;
    world.provider.then(vec![Say::Hang]);

    let process = world.start(settings()).await;
    let first = world.run().await;
    world
        .until("the first is asked", || world.provider.count() == 1)
        .await;
    let second = world.run().await;
    let cancelled = world.cancel(second.id).await;
    world.cancel(first.id).await;
    world.ended(first.id).await;
    let record = world.ended(second.id).await;
    process.drain().await;

    assert_eq!(cancelled.state.status(), RunStatus::Cancelled);
    assert_eq!(record.run.attempt, 0);
    assert_eq!(world.provider.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_wait_for_another_try() {
    let world = World::new().await;
    let mut busy = ModelFailure::new(ModelFailureKind::Unavailable, "overloaded");
    busy.retry_after = Some(Duration::from_secs(9));
    world.provider.then(vec![Say::Refuse(busy)]);

    let process = world.start(settings()).await;
    let run = world.run().await;
    let noted = || world.store.asked(ChangeKind::Retry) == 1;
    world.until("the try is noted", noted).await;
    world.cancel(run.id).await;
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Cancelled);
    assert_eq!(world.provider.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_nobody_hinted_at_is_found_by_the_poll() {
    let world = World::new().await;
    world.provider.then(vec![Say::Hang]);

    let process = world.start(settings()).await;
    let run = world.run().await;
    world
        .until("it is asked", || world.provider.count() == 1)
        .await;
    let asked = world.fixture.cancel(&world.place.owner, run.id).await;
    let record = world.ended(run.id).await;
    process.drain().await;

    let asked_at = asked.ok().and_then(|run| run.cancel_requested_at);
    let ended = record.events.last().expect("it has events").at;
    let took = ended.since(asked_at.expect("it was asked for"));
    assert_eq!(record.run.state.status(), RunStatus::Cancelled);
    assert!(took <= settings().poll_interval, "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_that_nobody_hinted_at_comes_back_with_a_renewal() {
    let world = World::new().await;
    world.provider.then(vec![Say::Hang]);
    let mut settings = settings();
    settings.heartbeat = Duration::from_millis(20);
    settings.poll_interval = Duration::from_hours(1);

    let process = world.start(settings).await;
    let run = world.run().await;
    world
        .until("it is asked", || world.provider.count() == 1)
        .await;
    let asked = world.fixture.cancel(&world.place.owner, run.id).await;
    let record = world.ended(run.id).await;
    process.drain().await;

    asked.expect("it has not ended");
    assert_eq!(record.run.state.status(), RunStatus::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_a_run_that_its_process_gave_back_and_claimed_again() {
    let world = World::new().await;
    let late = Arc::new(Semaphore::new(0));
    let mut busy = ModelFailure::new(ModelFailureKind::Unavailable, "overloaded");
    busy.retry_after = Some(Duration::from_secs(30));
    world.provider.then(vec![Say::Refuse(busy)]);
    world.provider.then(vec![Say::Hang]);
    let held = Fault::AnswerHeld(Arc::clone(&late));
    world.store.spoil(ChangeKind::GiveBack, held);

    let process = world.start(settings()).await;
    let run = world.run().await;
    world
        .until("it is claimed again", || world.provider.count() == 2)
        .await;
    late.add_permits(1);
    let alone = || process.engine.executing() == 1;
    world.until("the first execution is over", alone).await;
    world.cancel(run.id).await;
    let cancelled_at = tokio::time::Instant::now();
    let record = world.ended(run.id).await;
    let took = cancelled_at.elapsed();
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Cancelled);
    assert!(
        took < Duration::from_millis(100),
        "the hint did it: {took:?}"
    );
}
