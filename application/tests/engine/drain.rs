//! A process that ends: its runs go to others at once.

use std::sync::Arc;
use std::time::Duration;

use hango_conformance::owner;
use hango_domain::event::EventKind;
use hango_domain::model::{ModelFailure, ModelFailureKind, StreamEvent};
use hango_domain::run::{ChangeKind, RequeueReason, RunState, RunStatus};
use hango_ports::tool::Idempotency;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::support::{Does, Fault, Say, World, asks, says, settings, texts};

const DRAINED: EventKind = EventKind::RunRequeued {
    reason: RequeueReason::Drain,
};

#[tokio::test(start_paused = true)]
async fn a_drain_gives_a_run_back_at_its_boundary_and_another_process_goes_on_at_once() {
    let mut world = World::new().await;
    let takes = Does::Takes(Duration::from_secs(1));
    let tool = world.tool("slow", Idempotency::Unsafe, takes);
    let script = &world.provider;
    script.then(asks(&[("c1", "slow", json!({}))]));
    script.then(says("It is noon."));
    let process = world.start(settings()).await;
    let run = world.run().await;
    world.until("the tool works", || tool.count() == 1).await;

    process.drain().await;
    let given_back = world.on_record(run.id).await;
    let other = world.start_as(owner(2), settings()).await;
    let record = world.ended(run.id).await;
    other.drain().await;

    assert_eq!(given_back.run.state, RunState::Queued);
    assert_eq!(given_back.run.available_at, None);
    let last: Vec<_> = given_back.events.iter().rev().take(2).collect();
    assert_eq!(last[0].kind, DRAINED);
    assert_eq!(last[1].kind.name(), "turn.completed", "no turn is begun");
    assert_eq!(given_back.run.progress.resume_turn, 1);
    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!((world.provider.count(), tool.count()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_outlasts_the_drain_is_broken_off_and_executed_again() {
    let world = World::new().await;
    let text = StreamEvent::Text {
        index: 0,
        text: "It is alm".to_owned(),
    };
    world.provider.then(vec![Say::Event(text), Say::Hang]);
    world.provider.then(says("It is noon."));
    let process = world.start(settings()).await;
    let run = world.run().await;
    let shown = || !world.watching.deltas(run.id).is_empty();
    world.until("something is shown", shown).await;

    process.engine.drain(Duration::from_secs(5)).await;
    let given_back = world.on_record(run.id).await;
    let other = world.start_as(owner(2), settings()).await;
    let record = world.ended(run.id).await;
    other.drain().await;

    assert_eq!(given_back.run.state, RunState::Queued);
    assert!(world.provider.calls()[0].closed.is_some());
    assert_eq!(texts(&record.messages), ["What time is it?", "It is noon."]);
    let discarded = record
        .events
        .iter()
        .filter(|it| it.kind == EventKind::TurnDiscarded);
    assert_eq!(discarded.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_another_try_is_given_back_without_it() {
    let world = World::new().await;
    let busy = ModelFailure::new(ModelFailureKind::Unavailable, "overloaded");
    world.provider.then(vec![Say::Refuse(busy)]);
    world.provider.otherwise(vec![Say::Hang]);
    let process = world.start(settings()).await;
    let run = world.run().await;
    let noted = || world.store.asked(ChangeKind::Retry) == 1;
    world.until("the try is noted", noted).await;

    process.drain().await;

    let record = world.on_record(run.id).await;
    assert_eq!(record.run.state, RunState::Queued);
    assert_eq!(
        record.events.last().map(|it| it.kind.clone()),
        Some(DRAINED)
    );
    assert_eq!(world.provider.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_claimed_once_a_drain_has_begun() {
    let mut world = World::new().await;
    let takes = Does::Takes(Duration::from_secs(1));
    let tool = world.tool("slow", Idempotency::Unsafe, takes);
    world.provider.otherwise(asks(&[("", "slow", json!({}))]));
    let elsewhere = world.place(|_| {}).await;
    let process = world.start(settings()).await;
    world.run().await;
    world.until("the tool works", || tool.count() == 1).await;

    let (late, ()) = tokio::join!(world.run_in(&elsewhere), process.drain());

    let late = world.fixture.on_record(&elsewhere, late.id).await.run;
    assert_eq!((late.state, late.attempt), (RunState::Queued, 0));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_under_way_when_a_drain_begins_is_given_back() {
    let world = World::new().await;
    let answer = Arc::new(Semaphore::new(0));
    let held = Fault::AnswerHeld(Arc::clone(&answer));
    world.store.spoil(ChangeKind::Claim, held);
    let run = world.run().await;
    let process = world.start(settings()).await;
    let asked = || world.store.asked(ChangeKind::Claim) == 1;
    world.until("it is asked for", asked).await;

    let arrives = async {
        tokio::task::yield_now().await;
        answer.add_permits(1);
    };
    tokio::join!(process.drain(), arrives);

    let record = world.on_record(run.id).await;
    assert_eq!(
        (record.run.state, record.run.attempt),
        (RunState::Queued, 1)
    );
    assert_eq!(world.provider.count(), 0);
}
