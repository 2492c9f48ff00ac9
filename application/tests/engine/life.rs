//! A run from its claim to its end.

use hango_conformance::USAGE;
use hango_domain::conversation::StopReason;
use hango_domain::event::Event;
use hango_domain::journal::CallState;
use hango_domain::model::StreamEvent;
use hango_domain::run::{ChangeKind, RunStatus};
use hango_ports::tool::Idempotency;
use serde_json::json;

use crate::support::{Does, Say, World, asks, says, settings, texts};

/// The names of events.
fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind.name()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_run_of_text_alone_is_one_call_and_one_write_behind_its_claim() {
    let world = World::new().await;
    world.provider.then(says("It is noon."));

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!(texts(&record.messages), ["What time is it?", "It is noon."]);
    assert_eq!(
        names(&record.events),
        [
            "run.queued",
            "run.started",
            "message.completed",
            "turn.started",
            "message.completed",
            "turn.completed",
            "run.succeeded",
        ]
    );
    assert_eq!(world.kinds_written(), [ChangeKind::Finish]);
    assert_eq!((record.run.iterations, record.run.usage), (1, USAGE));
    assert_eq!(record.run.stop_reason, Some(StopReason::EndTurn));
    assert_eq!(record.run.final_message_id, Some(record.messages[1].id));
}

#[tokio::test(start_paused = true)]
async fn o30_what_a_provider_does_not_count_is_guessed_and_marked_as_that() {
    let world = World::new().await;
    let mut silent = says("It is noon.");
    silent.retain(|say| !matches!(say, Say::Event(StreamEvent::Usage(_))));
    world.provider.then(silent);

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    let usage = record.run.usage;
    assert!(usage.estimated && usage.input_tokens > 0, "{usage:?}");
    assert_eq!(usage.output_tokens, 3);
    assert_eq!(record.messages[1].usage, Some(usage));
}

#[tokio::test(start_paused = true)]
async fn a_tool_turn_is_two_writes_and_the_next_call_sees_its_results() {
    let mut world = World::new().await;
    let tool = world.tool("clock", Idempotency::Safe, Does::Returns);
    let script = &world.provider;
    script.then(asks(&[("c1", "clock", json!({"zone": "utc"}))]));
    script.then(says("It is noon."));

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    let said = [
        "What time is it?",
        "clock? c1",
        "c1: clock did c1",
        "It is noon.",
    ];
    assert_eq!(texts(&record.messages), said);
    assert_eq!(
        names(&record.events),
        [
            "run.queued",
            "run.started",
            "message.completed",
            "turn.started",
            "message.completed",
            "tool.started",
            "tool.completed",
            "message.completed",
            "turn.completed",
            "turn.started",
            "message.completed",
            "turn.completed",
            "run.succeeded",
        ]
    );
    let [call] = &record.calls[..] else {
        panic!("one call is on record: {:?}", record.calls);
    };
    assert_eq!((call.state, call.executions), (CallState::Finished, 1));
    assert_eq!(tool.executions()[0].asked.input, call.input);
    let key = &tool.executions()[0].asked.idempotency_key;
    assert_eq!(*key, call.idempotency_key());
    let turn = [ChangeKind::Answer, ChangeKind::CompleteTurn];
    assert_eq!(
        world.kinds_written(),
        [turn[0], turn[1], ChangeKind::Finish]
    );
    let sent = &world.provider.calls()[1].asked.messages;
    assert_eq!(texts(sent), said[..3]);
    assert_eq!(
        (record.run.iterations, record.run.usage),
        (2, USAGE + USAGE)
    );
}

#[tokio::test(start_paused = true)]
async fn watchers_are_told_of_every_write_as_it_is_stored() {
    let mut world = World::new().await;
    world.tool("clock", Idempotency::Safe, Does::Returns);
    let script = &world.provider;
    script.then(asks(&[
        ("c1", "clock", json!({})),
        ("c2", "clock", json!({})),
    ]));
    script.then(says("It is noon."));

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    let told = world.watching.durable(run.id);
    assert!(told.len() >= record.events.len() - 4, "{told:?}");
    assert!(record.events.ends_with(&told), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn d55_a_tool_that_panics_is_an_error_result_and_the_run_goes_on() {
    let mut world = World::new().await;
    world.tool("bomb", Idempotency::Safe, Does::Panics);
    let script = &world.provider;
    script.then(asks(&[("c1", "bomb", json!({}))]));
    script.then(says("It does not work."));

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    let result = "c1! the tool panicked: the tool's own words";
    assert_eq!(texts(&record.messages)[2], result);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_not_there_is_an_error_result_and_the_run_goes_on() {
    let world = World::new().await;
    let script = &world.provider;
    script.then(asks(&[("c1", "clock", json!({}))]));
    script.then(says("There is no clock."));

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    let result = "c1! there is no tool \"clock\"";
    assert_eq!(texts(&record.messages)[2], result);
}

#[tokio::test(start_paused = true)]
async fn a_long_result_is_cut_before_it_is_stored() {
    let mut world = World::new().await;
    world.tool("clock", Idempotency::Safe, Does::Returns);
    let script = &world.provider;
    let id = "c".repeat(2000);
    script.then(asks(&[(&id, "clock", json!({}))]));
    script.then(says("That was long."));

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    let kept = record.calls[0].result.as_ref().map(|it| it.for_llm.len());
    assert!(kept.is_some_and(|kept| kept <= 1024), "{kept:?}");
}
