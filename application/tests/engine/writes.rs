//! Fenced writes: repeated while their outcome is unknown, never made under a claim that is lost.

use std::sync::Arc;
use std::time::Duration;

use hango_conformance::owner;
use hango_domain::model::{ModelFailure, ModelFailureKind};
use hango_domain::run::{ChangeKind, RunErrorCode, RunState, RunStatus};
use hango_ports::Clock as _;
use hango_ports::run_store::ReclaimRequest;
use hango_ports::telemetry::Observation;
use hango_ports::tool::Idempotency;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::support::{Does, Fault, Say, World, asks, failed_with, lease_of, says, settings, texts};

#[tokio::test(start_paused = true)]
async fn a_write_of_unknown_outcome_is_repeated_as_it_was_and_stored_once() {
    let mut world = World::new().await;
    let tool = world.tool("clock", Idempotency::Unsafe, Does::Returns);
    let busy = ModelFailure::new(ModelFailureKind::Unavailable, "overloaded");
    let script = &world.provider;
    script.then(vec![Say::Refuse(busy)]);
    script.then(asks(&[
        ("c1", "clock", json!({})),
        ("c2", "clock", json!({})),
    ]));
    script.then(says("It is noon."));
    let kinds = [
        ChangeKind::Retry,
        ChangeKind::Answer,
        ChangeKind::Record,
        ChangeKind::CompleteTurn,
        ChangeKind::Finish,
    ];
    for kind in kinds {
        world.store.spoil(kind, Fault::AnswerLost);
    }

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    let writes = world.store.writes();
    assert_eq!(writes.len(), 2 * kinds.len());
    for (pair, kind) in writes.chunks(2).zip(kinds) {
        assert_eq!(pair[0].kind(), kind);
        assert_eq!(pair[0], pair[1], "the very same write");
    }
    assert_eq!(
        texts(&record.messages),
        [
            "What time is it?",
            "clock? c1",
            "clock? c2",
            "c1: clock did c1",
            "c2: clock did c2",
            "It is noon.",
        ]
    );
    let numbers: Vec<u64> = record.events.iter().map(|event| event.n).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!((world.provider.count(), tool.count()), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn a_give_back_of_unknown_outcome_is_made_once() {
    let world = World::new().await;
    let mut busy = ModelFailure::new(ModelFailureKind::Unavailable, "overloaded");
    busy.retry_after = Some(Duration::from_secs(30));
    world.provider.then(vec![Say::Refuse(busy)]);
    world.provider.then(says("It is noon."));
    world.store.spoil(ChangeKind::GiveBack, Fault::AnswerLost);

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!(record.run.attempt, 2);
    let back = ChangeKind::GiveBack;
    assert_eq!(world.kinds_written(), [back, back, ChangeKind::Finish]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_stops_the_execution_and_nothing_more_is_written() {
    let mut world = World::new().await;
    let tool = world.tool("clock", Idempotency::Safe, Does::Returns);
    let mut slow = vec![Say::Pause(Duration::from_secs(1))];
    slow.extend(asks(&[("c1", "clock", json!({}))]));
    world.provider.then(slow);
    let process = world.start(settings()).await;
    let run = world.run().await;
    world
        .until("it is asked", || world.provider.count() == 1)
        .await;

    let all = ReclaimRequest {
        limit: 1,
        max_stalled: 0,
        expired_only: false,
    };
    let taken = world.fixture.stores.runs.reclaim(all).await;
    let others = world.fixture.held(run.id, owner(9)).await;
    let before = world.on_record(run.id).await;
    world
        .until("it stopped", || process.engine.executing() == 0)
        .await;

    assert_eq!(taken.expect("the sweep works").len(), 1);
    assert_eq!(others.attempt, 2);
    assert_eq!(world.on_record(run.id).await, before);
    assert_eq!(world.kinds_written(), [ChangeKind::Answer]);
    assert_eq!((world.provider.count(), tool.count()), (1, 0));
    process.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_execution_whose_lease_ran_out_stops_and_writes_nothing() {
    let world = World::new().await;
    world.provider.then(vec![Say::Hang]);
    let mut settings = settings();
    settings.heartbeat = Duration::from_millis(100);
    settings.reclaim_interval = Duration::from_hours(1);
    let process = world.start(settings).await;
    let run = world.run().await;
    world
        .until("it is asked", || world.provider.count() == 1)
        .await;
    let lost = lease_of(&world.now(run.id).await);

    world.clock.advance(settings.lease_ttl);
    let swept = world.fixture.sweep().await;
    let before = world.fixture.held(run.id, owner(9)).await;
    let record = world.on_record(run.id).await;
    world
        .until("it stopped", || process.engine.executing() == 0)
        .await;

    assert_eq!(swept, [run.id]);
    assert_eq!(before.attempt, 2);
    assert!(world.provider.calls()[0].closed.is_some());
    assert_eq!(world.on_record(run.id).await, record);
    assert_eq!(world.store.writes(), []);
    let told = Observation::LeaseLost { lease: lost };
    assert!(world.watching.observed().contains(&told));
    process.drain().await;
}

#[tokio::test(start_paused = true)]
async fn an_execution_that_cannot_renew_stops_by_itself_before_others_may_take_its_run() {
    let world = World::new().await;
    world.provider.then(vec![Say::Hang]);
    world.provider.then(says("It is noon."));
    let mut settings = settings();
    settings.lease_ttl = Duration::from_secs(30);
    let process = world.start(settings).await;
    let run = world.run().await;
    world
        .until("it is asked", || world.provider.count() == 1)
        .await;

    world.store.set_down(true);
    world
        .until("it stopped", || process.engine.executing() == 0)
        .await;
    let stopped = world.on_record(run.id).await;
    world.store.set_down(false);
    let record = world.ended(run.id).await;

    let RunState::Running { expires_at, .. } = stopped.run.state else {
        panic!("nobody took it: {:?}", stopped.run.state);
    };
    let first = &world.provider.calls()[0];
    let closed = first.closed.expect("it was dropped");
    let closed = world.store_clock.now().minus(closed.elapsed());
    let early = expires_at.since(closed);
    assert!((1..=2).contains(&early.as_secs()), "a margin: {early:?}");
    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!((record.run.attempt, world.provider.count()), (2, 2));
    process.drain().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_beside_a_write_that_is_not_answered_is_broken_off_before_others_may_take_the_run() {
    let mut world = World::new().await;
    world.tool("clock", Idempotency::Safe, Does::Returns);
    let hangs = world.tool("slow", Idempotency::Safe, Does::Hangs);
    let both = [("c1", "clock", json!({})), ("c2", "slow", json!({}))];
    world.provider.then(asks(&both));
    let never = Arc::new(Semaphore::new(0));
    let unanswered = Fault::AnswerHeld(Arc::clone(&never));
    world.store.spoil(ChangeKind::Record, unanswered);
    let mut settings = settings();
    settings.lease_ttl = Duration::from_secs(4);
    let process = world.start(settings).await;
    let run = world.run().await;
    world
        .until("the call is begun", || hangs.count() == 1)
        .await;
    let RunState::Running { expires_at, .. } = world.now(run.id).await.state else {
        panic!("nobody took it");
    };

    world
        .until("it stopped", || process.engine.executing() == 0)
        .await;

    let dropped = hangs.executions()[0].dropped.expect("it was dropped");
    let dropped = world.store_clock.now().minus(dropped.elapsed());
    assert!(dropped < expires_at, "{dropped:?} is before {expires_at:?}");
    process.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_are_told_of_an_end_whose_answer_came_late() {
    let world = World::new().await;
    world.provider.then(says("It is noon."));
    let late = Arc::new(Semaphore::new(0));
    let held = Fault::AnswerHeld(Arc::clone(&late));
    world.store.spoil(ChangeKind::Finish, held);
    let mut settings = settings();
    settings.heartbeat = Duration::from_millis(20);

    let process = world.start(settings).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    let beats = world.store.asked(ChangeKind::Renew) + 2;
    let beaten = || world.store.asked(ChangeKind::Renew) >= beats;
    world.until("a renewal finds the run ended", beaten).await;
    late.add_permits(1);
    world
        .until("it is over", || process.engine.executing() == 0)
        .await;
    process.drain().await;

    assert_eq!(world.watching.durable(run.id).last(), record.events.last());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_can_never_be_made_ends_the_run_and_frees_its_slot() {
    let world = World::new().await;
    world.provider.otherwise(says("It is noon."));
    world.store.spoil(ChangeKind::Finish, Fault::Corrupt);
    let elsewhere = world.place(|_| {}).await;
    let mut settings = settings();
    settings.workers = 1;

    let process = world.start(settings).await;
    let run = world.run().await;
    let broken = world.ended(run.id).await;
    let other = world.run_in(&elsewhere).await;
    let whole = world.ended_in(&elsewhere, other.id).await;
    process.drain().await;

    let code = failed_with(&broken.run.state);
    assert_eq!(code, Some(RunErrorCode::Internal));
    assert_eq!(broken.run.attempt, 1);
    assert_eq!(whole.run.state.status(), RunStatus::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_not_made_is_made_when_the_store_is_back() {
    let world = World::new().await;
    world.provider.then(says("It is noon."));
    for _ in 0..5 {
        world.store.spoil(ChangeKind::Finish, Fault::NotDone);
    }

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!(world.kinds_written(), [ChangeKind::Finish; 6]);
    assert_eq!(world.provider.count(), 1);
}
