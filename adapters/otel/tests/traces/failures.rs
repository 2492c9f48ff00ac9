//! What goes wrong, and how that is told: by classes of few, and red only where somebody has to look.

use hango_domain::model::{FailureCause, ModelFailure, ModelFailureKind};
use opentelemetry::trace::Status;
use opentelemetry_sdk::trace::SpanData;

use crate::support::{CANARY, World, asks, attribute, of, says};

/// The class of a span's failure, on its status and its attribute alike.
fn failed(span: &SpanData) -> Option<String> {
    let class = attribute(span, "error.type");
    let status = match &span.status {
        Status::Error { description } => Some(description.to_string()),
        Status::Unset | Status::Ok => None,
    };
    assert_eq!(status, class, "{}", span.name);
    class
}

fn class(class: &str) -> String {
    class.to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_fails_is_red_and_its_run_is_not() {
    let world = World::new().await;
    world
        .provider
        .then(asks("call_1", "badly"))
        .then(says("done"));
    let run = world.fixture.run(&world.place).await;

    let trace = world.trace_of(run.id).await;

    let tool = trace.one("execute_tool badly");
    assert_eq!(failed(tool), Some(class("tool_error")));
    assert_eq!(attribute(tool, "hango.tool.executed"), Some(class("true")));
    assert_eq!(failed(trace.all("chain turn")[0]), None);
    assert_eq!(failed(trace.one("invoke_agent Support bot")), None);
    assert!(!format!("{:?}", trace.0).contains(CANARY));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_nobody_has_and_one_that_takes_too_long_are_told_apart() {
    let world = World::new().await;
    let script = [
        asks("call_1", "nobody"),
        asks("call_2", "slowly"),
        says("done"),
    ];
    for answer in script {
        world.provider.then(answer);
    }
    let run = world.fixture.run(&world.place).await;

    let trace = world.trace_of(run.id).await;

    let unknown = trace.one("execute_tool nobody");
    assert_eq!(failed(unknown), Some(class("unknown_tool")));
    assert_eq!(
        attribute(unknown, "hango.tool.executed"),
        Some(class("false"))
    );
    let slow = trace.one("execute_tool slowly");
    assert_eq!(failed(slow), Some(class("timeout")));
    assert!(slow.end_time > slow.start_time);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_refuses_fails_call_turn_and_run() {
    let world = World::new().await;
    let refused = ModelFailure::new(ModelFailureKind::Auth, CANARY);
    let refused = refused.caused_by(FailureCause::Status(401));
    world.provider.then(vec![Err(refused)]);
    let run = world.fixture.run(&world.place).await;

    let trace = world.trace_of(run.id).await;

    assert_eq!(failed(trace.one("chat model-x")), Some(class("401")));
    assert_eq!(failed(trace.one("chain turn")), Some(class("401")));
    let root = trace.one("invoke_agent Support bot");
    assert_eq!(failed(root), Some(class("provider_auth")));
    assert_eq!(attribute(root, "hango.run.state"), Some(class("failed")));
    assert!(!format!("{:?}", trace.0).contains(CANARY));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_tried_again_is_told_as_often_as_it_was_made() {
    let world = World::new().await;
    let busy = ModelFailure::new(ModelFailureKind::Unavailable, "busy");
    let busy = busy.caused_by(FailureCause::Status(529));
    world.provider.then(vec![Err(busy)]).then(says("done"));
    let run = world.fixture.run(&world.place).await;

    let trace = world.trace_of(run.id).await;

    let chats = trace.all("chat model-x");
    let classes: Vec<_> = chats.into_iter().map(failed).collect();
    assert_eq!(classes, [Some(class("529")), None]);
    assert_eq!(failed(trace.one("chain turn")), None);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_in_a_call_is_not_red_but_the_call_says_why() {
    let world = World::new().await;
    let run = world.fixture.run(&world.place).await;
    let engine = world.start();
    while world
        .fixture
        .on_record(&world.place, run.id)
        .await
        .run
        .attempt
        == 0
    {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;

    let asked = world.fixture.cancel(&world.place.owner, run.id).await;
    asked.expect("it has not ended");
    world.signals.cancel_requested(run.id);
    world.ended(run.id).await;
    engine.drain(std::time::Duration::from_mins(1)).await;
    let trace = world.exported();

    assert_eq!(failed(trace.one("chat model-x")), Some(class("cancelled")));
    assert_eq!(failed(trace.one("chain turn")), None);
    let root = trace.one("invoke_agent Support bot");
    assert_eq!(failed(root), None);
    assert_eq!(attribute(root, "hango.run.state"), Some(class("cancelled")));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_made_too_often_is_blocked_and_its_turn_says_so() {
    let world = World::new().await;
    for id in ["call_1", "call_2", "call_3"] {
        world.provider.then(asks(id, "well"));
    }
    world.provider.then(says("done"));
    let run = world.fixture.run(&world.place).await;

    let trace = world.trace_of(run.id).await;

    let calls = trace.all("execute_tool well");
    let told: Vec<_> = calls
        .iter()
        .map(|call| (attribute(call, "hango.tool.executed"), failed(call)))
        .collect();
    let made = (Some(class("true")), None);
    let blocked = (Some(class("false")), Some(class("repeat_blocked")));
    assert_eq!(told, [made.clone(), made, blocked]);
    let turn = trace.all("chain turn")[2];
    let event = turn.events.iter().next().expect("it has one");
    assert_eq!(event.name, "middleware.repeat_call_blocked");
    for (key, expected) in [
        ("hango.middleware.name", "repeat_call"),
        ("gen_ai.tool.name", "well"),
    ] {
        let value = of(&event.attributes, key).map(ToString::to_string);
        assert_eq!(value.as_deref(), Some(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_agent_may_not_make_is_not_executed() {
    let world = World::with(|agent| agent.tools = vec!["badly".to_owned()]).await;
    world
        .provider
        .then(asks("call_1", "well"))
        .then(says("done"));
    let run = world.fixture.run(&world.place).await;

    let trace = world.trace_of(run.id).await;

    let call = trace.one("execute_tool well");
    assert_eq!(failed(call), Some(class("not_allowed")));
    assert_eq!(attribute(call, "hango.tool.executed"), Some(class("false")));
}
