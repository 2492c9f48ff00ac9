//! Runs on Anthropic's protocol: thoughts come back to whom they belong, through a crash and through a
//! change of the provider.

use serde_json::{Value, json};

use super::support::api::text;
use super::support::gate::Gate;
use super::support::history;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::tools::Response;
use super::support::until::until_true;
use super::support::world::World;

/// The world's agent asks that provider from now on.
async fn ask_at(world: &World, provider: &str) {
    let change = json!({"provider": provider});
    let changed = world.api.patch("/v1/agents/agent", &change).await;
    assert_eq!(changed.expect(200)["provider"], provider);
}

/// The kinds of the blocks of a session's answers.
async fn kinds(world: &World, session: &str) -> Vec<Vec<String>> {
    let messages = world.api.messages(session).await.into_iter();
    let answers = messages.filter(|message| message["role"] == "assistant");
    let kinds = |message: Value| {
        let blocks = message["content"].as_array().cloned().unwrap_or_default();
        blocks.iter().map(|block| text(&block["type"])).collect()
    };
    answers.map(kinds).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_thinks_and_calls_tools_survives_a_kill_in_its_last_answer() {
    let held = Gate::closed();
    let model = move |ask: &Ask| match (ask.turn, ask.time) {
        (1, _) => Reply::calls([("safe", json!({"n": 1})), ("keyed", json!({"n": 2}))]),
        (2, _) => Reply::calls([("unsafe", json!({}))]),
        (3, 1) => Reply::text("never said").held_after(1, &held),
        _ => Reply::text("all done"),
    };
    let mut world = World::with_tools(&[], model, |_| Response::text("done")).await;
    ask_at(&world, "anthropic").await;
    let run = world.start_run("one").await;
    until_true("the last turn is asked for", || {
        world.provider.times("one").len() == 3
    })
    .await;

    world.kill();
    world.restart().await;

    history::all_ended(&world, "succeeded").await;
    assert_eq!(world.provider.times("one"), [1, 1, 2]);
    assert_eq!(
        kinds(&world, &run.session).await,
        [
            &["thinking", "tool_use", "tool_use"][..],
            &["thinking", "tool_use"],
            &["text"],
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_changes_its_provider_in_the_middle_of_a_session() {
    let model = |ask: &Ask| match ask.turn {
        1 => Reply::calls([("safe", json!({"of": ask.run}))]),
        _ => Reply::text("all done"),
    };
    let world = World::start(&[], model).await;
    let session = world.api.open_session().await;

    for (run, provider) in [
        ("one", "anthropic"),
        ("two", "openai"),
        ("three", "anthropic"),
    ] {
        ask_at(&world, provider).await;
        world.start_run_in(&session, run).await;
        // Every request was one that a strict provider takes.
        history::all_ended(&world, "succeeded").await;
    }

    let (thinks, calls, says) = (vec!["thinking", "tool_use"], vec!["tool_use"], vec!["text"]);
    assert_eq!(
        kinds(&world, &session).await,
        [&thinks, &says, &calls, &says, &thinks, &says].map(Clone::clone)
    );
}
