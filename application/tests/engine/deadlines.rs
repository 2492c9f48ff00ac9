//! Limits in time: of a tool call, and of a run.

use std::time::Duration;

use hango_domain::agent::RunLimits;
use hango_domain::model::{ModelFailure, ModelFailureKind};
use hango_domain::run::{RunErrorCode, RunState, RunStatus};
use hango_ports::tool::Idempotency;
use serde_json::json;

use crate::support::{Does, Say, World, asks, failed_with, says, settings, texts};

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_return_in_time_is_dropped_and_its_call_an_error() {
    let mut world = World::new().await;
    let tool = world.tool("stuck", Idempotency::Safe, Does::Hangs);
    let script = &world.provider;
    script.then(asks(&[("c1", "stuck", json!({}))]));
    script.then(says("It is stuck."));

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    let result = &texts(&record.messages)[2];
    assert!(
        result.starts_with("c1! the tool did not return within 10000 ms"),
        "{result}"
    );
    let execution = &tool.executions()[0];
    let dropped = execution.dropped.map(|at| (at - execution.began).as_secs());
    assert_eq!((dropped, execution.returned), (Some(10), false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_blocks_its_thread_holds_up_neither_renewal_nor_its_time_limit() {
    let mut world = World::new().await;
    let blocks = Does::Blocks(Duration::from_millis(2200));
    let tool = world.tool("blocker", Idempotency::Unsafe, blocks);
    let script = &world.provider;
    script.then(asks(&[("c1", "blocker", json!({}))]));
    script.then(says("It hangs."));
    let mut settings = settings();
    settings.lease_ttl = Duration::from_secs(1);
    settings.heartbeat = Duration::from_millis(50);
    settings.limits.tool_timeout = Duration::from_millis(1300);

    let process = world.start(settings).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!(record.run.attempt, 1, "its lease was renewed all the while");
    assert!(texts(&record.messages)[2].starts_with("c1! the tool did not return"));
    assert!(!tool.executions()[0].returned, "it blocks still");
    process.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_blocks_its_thread_does_not_hold_up_its_runs_time_limit() {
    let mut world = World::new().await;
    let blocks = Does::Blocks(Duration::from_secs(1));
    let tool = world.tool("blocker", Idempotency::Unsafe, blocks);
    world.provider.then(asks(&[("c1", "blocker", json!({}))]));
    let mut settings = settings();
    settings.limits.deadline = Duration::from_millis(200);

    let process = world.start(settings).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;

    assert_eq!(
        failed_with(&record.run.state),
        Some(RunErrorCode::DeadlineExceeded)
    );
    assert!(!tool.executions()[0].returned, "it blocks still");
    assert_eq!(
        texts(&record.messages)[2],
        "c1! interrupted, outcome unknown"
    );
    process.drain().await;
}

#[tokio::test(start_paused = true)]
async fn a_runs_time_counts_from_its_first_start_whatever_it_waited_for() {
    let world = World::new().await;
    let place = world
        .place(|agent| agent.limits.run_deadline_ms = Some(60_000))
        .await;
    let mut busy = ModelFailure::new(ModelFailureKind::Unavailable, "busy");
    busy.retry_after = Some(Duration::from_secs(40));
    world.provider.then(vec![Say::Refuse(busy)]);
    world.provider.otherwise(vec![Say::Hang]);

    let process = world.start(settings()).await;
    let run = world.run_in(&place).await;
    let record = world.ended_in(&place, run.id).await;
    process.drain().await;

    let RunState::Failed { at, error } = record.run.state else {
        panic!("its time is over: {:?}", record.run.state);
    };
    assert_eq!(error.code, RunErrorCode::DeadlineExceeded);
    let took = at.since(record.run.started_at.expect("it was started"));
    assert_eq!(took.as_secs(), 60);
    assert_eq!((record.run.attempt, world.provider.count()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_claimed_after_its_time_fails_and_nobody_is_called() {
    let world = World::new().await;
    world.provider.otherwise(vec![Say::Hang]);
    let first = world.start(settings()).await;
    let run = world.run().await;
    world
        .until("it is asked", || world.provider.count() == 1)
        .await;
    first.engine.drain(Duration::ZERO).await;
    world.clock.advance(settings().limits.deadline);

    let second = world.start(settings()).await;
    let record = world.ended(run.id).await;
    second.drain().await;

    assert_eq!(
        failed_with(&record.run.state),
        Some(RunErrorCode::DeadlineExceeded)
    );
    assert_eq!((record.run.attempt, world.provider.count()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_never_comes_to_an_end_stops_at_the_most_calls_it_may_make() {
    let mut world = World::new().await;
    let tool = world.tool("clock", Idempotency::Safe, Does::Returns);
    world.provider.otherwise(asks(&[("", "clock", json!({}))]));
    let mut settings = settings();
    settings.limits = RunLimits {
        max_iterations: 3,
        ..settings.limits
    };

    let process = world.start(settings).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(
        failed_with(&record.run.state),
        Some(RunErrorCode::MaxIterations)
    );
    assert_eq!((world.provider.count(), tool.count()), (3, 3));
    assert_eq!(
        record.run.final_message_id,
        record.messages.last().map(|it| it.id)
    );
}
