//! Runs whose holder was killed: what he left behind is told by who takes the run, and its root once.

use std::time::{Duration, SystemTime};

use hango_conformance::{TTL, owner};
use hango_domain::SpanId;
use hango_domain::run::{Change, RunErrorCode};
use opentelemetry_sdk::trace::SpanData;

use crate::support::{World, attribute, of, says};

fn moment(micros: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).expect("after 1970"))
}

fn events(span: &SpanData) -> Vec<&str> {
    span.events.iter().map(|event| &*event.name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_process_was_killed_is_told_by_who_takes_the_run() {
    let world = World::new().await;
    let run = world.fixture.run(&world.place).await;
    let lease = world.fixture.held(run.id, owner(9)).await;
    let answer = world.fixture.answer(lease, 1, 2, 1);
    world.fixture.written(Change::Answer(answer)).await;
    let before = world.fixture.on_record(&world.place, run.id).await.run;
    let expires = before.lease_expires_at().expect("it is held");
    world.clock.advance(TTL * 2);
    world.provider.then(says("done"));

    let trace = world.trace_of(run.id).await;

    let turns = trace.all("chain turn");
    let told: Vec<_> = turns
        .iter()
        .map(|turn| {
            let attempt = attribute(turn, "hango.attempt").unwrap_or_default();
            let number = attribute(turn, "hango.turn").unwrap_or_default();
            (number, attempt, attribute(turn, "error.type"))
        })
        .collect();
    let told: Vec<_> = told
        .iter()
        .map(|(turn, attempt, error)| (turn.as_str(), attempt.as_str(), error.as_deref()))
        .collect();
    assert_eq!(
        told,
        [
            ("1", "1", Some("worker_lost")),
            ("1", "2", None),
            ("2", "2", None)
        ]
    );
    let lost = turns[0];
    let id = SpanId::of_turn(run.id, 1, 1);
    assert_eq!(lost.span_context.span_id().to_bytes(), id.0);
    assert_eq!(lost.end_time, moment(expires.as_micros()));
    let root = trace.one("invoke_agent Support bot");
    assert_eq!(lost.parent_span_id, root.span_context.span_id());
    assert_eq!(
        events(root),
        [
            "run.claimed",
            "run.reclaimed",
            "run.claimed",
            "agent.middleware_stack"
        ]
    );
    let reclaimed: Vec<_> = root.events.iter().collect();
    let reclaimed = &reclaimed[1].attributes;
    let previous = of(reclaimed, "hango.owner.previous_id").map(ToString::to_string);
    assert_eq!(previous, Some(owner(9).to_string()));
    let resume = of(reclaimed, "hango.resume_turn").map(ToString::to_string);
    assert_eq!(resume.as_deref(), Some("0"));
    let started = before.started_at.expect("it was claimed");
    assert_eq!(root.start_time, moment(started.as_micros()));
    assert_eq!(attribute(root, "hango.run.attempts").as_deref(), Some("2"));
}

#[tokio::test(start_paused = true)]
async fn a_call_of_which_nobody_knows_what_came_is_told_as_interrupted() {
    let world = World::new().await;
    let run = world.fixture.run(&world.place).await;
    let lease = world.fixture.held(run.id, owner(9)).await;
    let mut answer = world.fixture.answer(lease, 1, 1, 1);
    answer.calls[0].name = "well".to_owned();
    world.fixture.written(Change::Answer(answer)).await;
    world.clock.advance(TTL * 2);
    world.provider.then(says("done"));

    let trace = world.trace_of(run.id).await;

    let call = trace.one("execute_tool well");
    assert_eq!(
        attribute(call, "error.type").as_deref(),
        Some("interrupted")
    );
    assert_eq!(
        attribute(call, "hango.tool.executed").as_deref(),
        Some("false")
    );
    let turn = SpanId::of_turn(run.id, 2, 1);
    assert_eq!(call.parent_span_id.to_bytes(), turn.0);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_no_holder_survives_has_its_root_from_the_sweep() {
    let world = World::new().await;
    let run = world.fixture.run(&world.place).await;
    world.fixture.held(run.id, owner(8)).await;
    world.clock.advance(TTL * 2);
    assert_eq!(world.fixture.sweep().await, [run.id]);
    world.fixture.held(run.id, owner(9)).await;
    world.clock.advance(TTL * 2);

    let trace = world.trace_of(run.id).await;

    let root = trace.one("invoke_agent Support bot");
    let stalled = RunErrorCode::Stalled.as_str();
    assert_eq!(attribute(root, "error.type").as_deref(), Some(stalled));
    assert_eq!(attribute(root, "hango.run.attempts").as_deref(), Some("2"));
    // The first was taken by somebody who told nobody.
    let turn = trace.one("chain turn");
    assert_eq!(attribute(turn, "hango.attempt").as_deref(), Some("2"));
    assert_eq!(
        attribute(turn, "error.type").as_deref(),
        Some("worker_lost")
    );
    assert_eq!(trace.0.len(), 2, "{:?}", trace.names());
}

#[tokio::test(start_paused = true)]
async fn what_a_layer_ought_to_find_in_a_resumed_run_and_does_not_is_an_event_of_the_root() {
    let world = World::new().await;
    let run = world.fixture.run(&world.place).await;
    let lease = world.fixture.held(run.id, owner(9)).await;
    let answer = world.fixture.answer(lease, 1, 1, 1);
    world.fixture.written(Change::Answer(answer)).await;
    let calls = world.fixture.on_record(&world.place, run.id).await.calls;
    // The memory that it stores has nothing of any layer.
    let boundary = world.fixture.boundary(lease, 1, &calls);
    world.fixture.written(Change::CompleteTurn(boundary)).await;
    world.clock.advance(TTL * 2);
    world.provider.then(says("done"));

    let trace = world.trace_of(run.id).await;

    let root = trace.one("invoke_agent Support bot");
    let missing = root
        .events
        .iter()
        .find(|it| it.name == "middleware.state_missing");
    let missing = missing.expect("it is told of");
    let layer = of(&missing.attributes, "hango.middleware.name").map(ToString::to_string);
    assert_eq!(layer.as_deref(), Some("repeat_call"));
}
