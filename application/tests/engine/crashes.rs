//! What a process that died left behind, and how another goes on with it.

use std::time::Duration;

use hango_conformance::{TTL, owner};
use hango_domain::RunId;
use hango_domain::journal::CallState;
use hango_domain::run::{Change, ChangeKind, RunErrorCode, RunStatus};
use hango_ports::telemetry::Observation;
use hango_ports::tool::Idempotency;

use crate::support::{Does, Fault, Say, World, failed_with, says, settings, texts};

/// A run whose holder died with an answer on record that asks for three calls, of which two began.
async fn left_amid_a_turn(world: &World) -> RunId {
    let fixture = &world.fixture;
    let run = fixture.run(&world.place).await.id;
    let lease = fixture.held(run, owner(9)).await;
    let answer = fixture.answer(lease, 1, 3, 2);
    fixture.written(Change::Answer(answer)).await;
    run
}

#[tokio::test(start_paused = true)]
async fn the_sweep_takes_a_silent_holders_run_and_its_answer_is_not_asked_for_again() {
    let mut world = World::new().await;
    let tool = world.tool("get_time", Idempotency::Safe, Does::Returns);
    let run = left_amid_a_turn(&world).await;
    world.provider.then(says("It is noon."));
    let process = world.start(settings()).await;
    world.clock.advance(TTL);

    let record = world.ended(run).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!((world.provider.count(), tool.count()), (1, 3));
    let executions: Vec<u32> = record.calls.iter().map(|call| call.executions).collect();
    assert_eq!(executions, [2, 2, 1]);
    let taken = |it: &Observation| matches!(it, Observation::Reclaimed { .. });
    assert_eq!(
        world
            .watching
            .observed()
            .iter()
            .filter(|it| taken(it))
            .count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_not_be_repeated_is_said_to_be_in_doubt_and_a_pending_one_executed() {
    let mut world = World::new().await;
    let tool = world.tool("get_time", Idempotency::Unsafe, Does::Returns);
    let run = left_amid_a_turn(&world).await;
    world.provider.then(says("It is noon."));
    let process = world.start(settings()).await;
    world.clock.advance(TTL);

    let record = world.ended(run).await;
    process.drain().await;

    let states: Vec<CallState> = record.calls.iter().map(|call| call.state).collect();
    let doubt = CallState::InDoubt;
    assert_eq!(states, [doubt, doubt, CallState::Finished]);
    assert_eq!(tool.count(), 1);
    let said = texts(&record.messages);
    assert!(
        said.contains(&"call_1_1! interrupted, outcome unknown".to_owned()),
        "{said:?}"
    );
    assert!(
        said.contains(&"call_1_3: get_time did call_1_3".to_owned()),
        "{said:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_alone_takes_running_runs_back_at_once() {
    let world = World::new().await;
    world.provider.then(says("It is noon."));
    let run = world.fixture.run(&world.place).await.id;
    world.fixture.held(run, owner(9)).await;
    let mut settings = settings();
    settings.exclusive = true;

    let process = world.start(settings).await;
    let record = world.ended(run).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!(record.run.attempt, 2);
    let ended = record.events.last().expect("it has events").at;
    let took = ended.since(record.run.created_at);
    assert!(took < TTL, "nobody waited for the lease: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_engine_among_others_leaves_a_lease_that_lasts_alone() {
    let world = World::new().await;
    let run = world.fixture.run(&world.place).await.id;
    let lease = world.fixture.held(run, owner(9)).await;

    let process = world.start(settings()).await;
    let claims = world.polls_after(3).await;
    let held = world.now(run).await;
    process.drain().await;

    assert_eq!(held.lease(), Some(lease), "after {claims} claims");
}

#[tokio::test(start_paused = true)]
async fn an_exclusive_scheduler_that_starts_again_does_not_take_its_own_runs_back() {
    let world = World::new().await;
    let mut slow = vec![Say::Pause(Duration::from_secs(20))];
    slow.extend(says("It is noon."));
    world.provider.then(slow);
    let mut settings = settings();
    settings.exclusive = true;
    let process = world.start(settings).await;
    let run = world.run().await;
    world
        .until("it is asked", || world.provider.count() == 1)
        .await;

    world.store.spoil(ChangeKind::Claim, Fault::Panics);
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!((record.run.attempt, world.provider.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_outlives_every_holder_ends_as_stalled() {
    let world = World::new().await;
    let run = world.fixture.run(&world.place).await.id;
    world.fixture.held(run, owner(9)).await;
    let mut settings = settings();
    settings.max_stalled = 1;
    world.clock.advance(TTL);

    let process = world.start(settings).await;
    let record = world.ended(run).await;
    process.drain().await;

    assert_eq!(failed_with(&record.run.state), Some(RunErrorCode::Stalled));
    assert_eq!(world.provider.count(), 0);
}
