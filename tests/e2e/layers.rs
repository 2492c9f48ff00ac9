//! What the layers keep of a run, through `kill -9`: the plan, and how often each call was made.

use serde_json::{Value, json};

use super::support::api::{list, text};
use super::support::gate::Gate;
use super::support::history;
use super::support::home::Home;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::tools::{Called, Response};
use super::support::until::{until, until_true};
use super::support::world::World;

/// The system prompt of a request; empty if there is none.
fn prompt(ask: &Ask) -> String {
    let first = &ask.messages[0];
    if first["role"] == "system" {
        text(&first["content"])
    } else {
        String::new()
    }
}

/// The lists that the run's watchers were told of.
async fn updates(world: &World, run: &str) -> Vec<Value> {
    let events = world.home.store().events(run).await;
    let updates = events.into_iter().map(|event| event.kind);
    updates
        .filter(|kind| kind["type"] == "todos.updated")
        .map(|kind| kind["todos"].clone())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_and_counts_of_a_run_survive_a_kill_in_a_tool_and_one_in_the_model() {
    let plan = json!([{"content": "look", "status": "completed"},
                      {"content": "think", "status": "in_progress"}]);
    let written = plan.clone();
    let held = Gate::closed();
    let model = move |ask: &Ask| match (ask.turn, ask.time) {
        (1, _) => Reply::calls([("safe", json!({"n": 1}))]),
        (2, _) => Reply::calls([
            ("write_todos", json!({"todos": written})),
            ("safe", json!({"n": 1})),
            ("keyed", json!({"n": 2})),
        ]),
        (3, 1) => Reply::text("never said").held_after(1, &held),
        (3, _) => Reply::calls([("safe", json!({"n": 1.0}))]),
        _ => Reply::text("all done"),
    };
    let gate = Gate::closed();
    let tools = move |called: &Called| match (called.tool.as_str(), called.time) {
        ("keyed", 1) => Response::text("first").held(&gate),
        _ => Response::text("done"),
    };
    let mut world = World::with_tools(&[], model, tools).await;
    let run = world.start_run("one").await;
    // The plan and the second of two equal calls are on record, the last call of the batch is open.
    let recorded = async |world: &World| {
        let calls = world.api.tool_calls(&run.id).await;
        calls
            .iter()
            .filter(|call| call["state"] == "finished")
            .count()
    };
    until("all but one are on record", async || {
        (recorded(&world).await == 3).then_some(())
    })
    .await;
    until_true("the last one works", || world.tools.calls().len() == 3).await;
    assert_eq!(world.api.run(&run.id).await["todos"], json!([]));

    world.kill();
    world.restart().await;
    until_true("the next turn is asked for", || {
        world.provider.times("one").len() == 3
    })
    .await;
    assert_eq!(world.api.run(&run.id).await["todos"], plan);
    world.kill();
    world.restart().await;

    history::all_ended(&world, "succeeded").await;
    assert_eq!(world.api.run(&run.id).await["todos"], plan);
    assert_eq!(updates(&world, &run.id).await, [plan]);
    let asked = world.provider.asked_for("one");
    let prompts: Vec<String> = asked.iter().map(|asked| prompt(&asked.ask)).collect();
    let planned =
        "Your todo list, as write_todos left it:\n- [completed] look\n- [in_progress] think";
    assert_eq!(prompts, ["", "", planned, planned, planned]);
    let third = &asked[3].ids[0];
    assert_eq!(
        world.provider.told_of(third).as_deref(),
        Some(
            "this exact call was already made 2 times; use the previous result or change approach"
        )
    );
    let safe = world.tools.calls().into_iter();
    assert_eq!(safe.filter(|called| called.tool == "safe").count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_servers_threshold_is_shown_and_holds() {
    let model = |ask: &Ask| match ask.turn {
        1 | 2 => Reply::calls([("safe", json!({"n": 1}))]),
        _ => Reply::text("all done"),
    };
    let settings = [("HANGO_REPEAT_CALL_THRESHOLD", "2")];
    let world = World::start(&settings, model).await;
    let agent = world.api.get("/v1/agents/agent").await.expect(200);
    let layers =
        json!({"todo": {"enabled": true}, "repeat_call": {"enabled": true, "threshold": 2}});
    assert_eq!(agent["middleware"], layers);

    world.start_run("one").await;
    history::all_ended(&world, "succeeded").await;

    assert_eq!(world.tools.calls().len(), 1);
    let tools = list(&world.api.get("/v1/tools").await.expect(200));
    let names: Vec<_> = tools.iter().map(|tool| text(&tool["name"])).collect();
    assert_eq!(
        names,
        [
            "get_time",
            "http_fetch",
            "safe",
            "keyed",
            "unsafe",
            "write_todos"
        ]
    );
}

#[test]
fn a_tool_that_bears_a_layers_tools_name_is_refused_at_the_start() {
    let home = Home::of_server();
    home.write_config(
        "[[tools.http]]\nname = 'write_todos'\ndescription = 'mine'\nurl = 'http://h/'\n\
         idempotency = 'safe'\n",
    );

    let ended = home.run(&["serve"]);

    assert_eq!(ended.status, Some(2), "{}", ended.err);
    let said =
        r#"tools.http.write_todos: "write_todos" is the name of a tool that hango has built in"#;
    assert!(ended.err.contains(said), "{}", ended.err);
    assert!(!home.file().exists());
}
