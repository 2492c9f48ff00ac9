//! What people and models said, where that is asked for.

use serde_json::Value;

use crate::support::{CANARY, World, asks, attribute, says};

#[tokio::test(start_paused = true)]
async fn content_is_told_where_it_is_asked_for_as_json() {
    let world = World::new().await.telling_content();
    world
        .provider
        .then(asks("call_1", "well"))
        .then(says("done"));
    let run = world.fixture.run(&world.place).await;

    let trace = world.trace_of(run.id).await;

    let chat = trace.all("chat model-x")[1];
    let tool = trace.one("execute_tool well");
    let root = trace.one("invoke_agent Support bot");
    for (span, key, held) in [
        (chat, "gen_ai.system_instructions", CANARY),
        (chat, "gen_ai.input.messages", "tool_call_response"),
        (chat, "gen_ai.output.messages", "done"),
        (chat, "gen_ai.tool.definitions", "Answers well."),
        (tool, "gen_ai.tool.call.arguments", CANARY),
        (tool, "gen_ai.tool.call.result", CANARY),
        (root, "gen_ai.input.messages", "user"),
        (root, "gen_ai.output.messages", "done"),
    ] {
        let text = attribute(span, key).unwrap_or_default();
        assert!(text.contains(held), "{key}: {text}");
        assert!(text.parse::<Value>().is_ok(), "{key}: {text}");
    }
}
