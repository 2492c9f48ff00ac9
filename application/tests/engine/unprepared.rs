//! Runs that cannot even begin: they end and say why, and leave nothing open.

use std::time::Duration;

use hango_conformance::{Place, owner};
use hango_domain::RunId;
use hango_domain::journal::ToolCall;
use hango_domain::run::{Change, RunErrorCode, RunState, RunStatus, StoredMemory};
use serde_json::json;

use crate::support::{Say, World, failed_with, says, settings, texts};

/// A queued run that completed a turn and left `memory` behind.
async fn with_memory(world: &World, place: &Place, memory: StoredMemory) -> RunId {
    let fixture = &world.fixture;
    let run = fixture.run(place).await.id;
    let lease = fixture.held(run, owner(9)).await;
    let answer = fixture.answer(lease, 1, 1, 1);
    fixture.written(Change::Answer(answer)).await;
    let calls = fixture.on_record(place, run).await.calls;
    let mut boundary = fixture.boundary(lease, 1, &calls);
    boundary.memory = Some(memory);
    fixture.written(Change::CompleteTurn(boundary)).await;
    let back = fixture.give_back(lease, Duration::ZERO);
    fixture.written(Change::GiveBack(back)).await;
    run
}

#[tokio::test(start_paused = true)]
async fn a_run_of_a_provider_that_is_not_configured_fails_and_says_which() {
    let world = World::new().await;
    let place = world
        .place(|agent| agent.provider = "gone".to_owned())
        .await;

    let process = world.start(settings()).await;
    let run = world.run_in(&place).await;
    let record = world.ended_in(&place, run.id).await;
    process.drain().await;

    let RunState::Failed { error, .. } = record.run.state else {
        panic!("it cannot begin: {:?}", record.run.state);
    };
    assert_eq!(error.code, RunErrorCode::ProviderRejected);
    assert!(error.message.contains("\"gone\""), "{}", error.message);
    assert_eq!(world.provider.count() + world.other.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_memory_is_damaged_fails_as_internal_and_its_session_goes_on() {
    let world = World::new().await;
    let damaged = StoredMemory {
        json: json!({"todos": 3}),
        ..StoredMemory::default()
    };
    let damaged = with_memory(&world, &world.place, damaged).await;
    world.provider.then(says("It is noon."));

    let process = world.start(settings()).await;
    let next = world.run().await;
    let record = world.ended(damaged).await;
    let next = world.ended(next.id).await;
    process.drain().await;

    assert_eq!(failed_with(&record.run.state), Some(RunErrorCode::Internal));
    assert_eq!(next.run.state.status(), RunStatus::Succeeded);
    assert_eq!(world.provider.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_memory_is_of_a_newer_format_is_left_to_those_who_can_read_it() {
    let world = World::new().await;
    let newer = StoredMemory {
        version: 99,
        json: json!({"what": "is this"}),
    };
    let newer = with_memory(&world, &world.place, newer).await;
    let before = world.now(newer).await;

    let process = world.start(settings()).await;
    let claims = world.polls_after(3).await;
    process.drain().await;

    assert_eq!(world.now(newer).await, before, "after {claims} claims");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_go_on_answers_the_calls_that_it_left_open() {
    let world = World::new().await;
    let place = world
        .place(|agent| agent.provider = "gone".to_owned())
        .await;
    let fixture = &world.fixture;
    let run = fixture.run(&place).await.id;
    let lease = fixture.held(run, owner(9)).await;
    let answer = fixture.answer(lease, 1, 2, 1);
    fixture.written(Change::Answer(answer)).await;
    let back = fixture.give_back(lease, Duration::ZERO);
    fixture.written(Change::GiveBack(back)).await;

    let process = world.start(settings()).await;
    let record = world.ended_in(&place, run).await;
    process.drain().await;

    assert_eq!(
        failed_with(&record.run.state),
        Some(RunErrorCode::ProviderRejected)
    );
    assert!(record.calls.iter().all(ToolCall::is_settled));
    let said = texts(&record.messages);
    assert_eq!(
        said[said.len() - 2..],
        [
            "call_1_1! interrupted, outcome unknown",
            "call_1_2! tool call interrupted"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_on_which_the_engine_panics_fails_as_internal_and_is_not_tried_for_ever() {
    let world = World::new().await;
    world.provider.otherwise(vec![Say::Panic]);
    let mut settings = settings();
    settings.heartbeat = Duration::from_millis(10);

    let process = world.start(settings).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    let calls = world.provider.count();
    process.drain().await;

    assert_eq!(failed_with(&record.run.state), Some(RunErrorCode::Internal));
    assert_eq!((record.run.attempt, calls), (1, 1));
}
