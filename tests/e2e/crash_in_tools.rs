//! `kill -9` around tool calls: a recorded result is final, an open call is repeated only where its tool
//! says that it may be, and the model is told where nobody knows.

use serde_json::{Value, json};

use super::support::api::text;
use super::support::gate::Gate;
use super::support::history;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::store::{Kind, on_both_stores};
use super::support::tools::{CLASSES, Called, Response};
use super::support::until::{until, until_true};
use super::support::world::{Plan, World};

on_both_stores! {
    a_process_killed_between_an_answer_and_its_tools_does_not_ask_for_the_answer_again
    a_process_killed_in_a_tool_repeats_the_call_only_where_that_is_safe
    a_process_killed_before_the_boundary_was_committed_repeats_the_call_only_where_that_is_safe
    a_process_killed_between_two_calls_of_a_batch_repeats_the_open_one_with_its_key
    a_process_killed_between_two_calls_of_a_batch_leaves_an_unsafe_one_in_doubt
}

const UNKNOWN: &str = "interrupted, outcome unknown";

/// One call of the tool that the run is named after, then an answer.
fn one_call(ask: &Ask) -> Reply {
    if ask.turn == 1 {
        Reply::calls([(ask.run.as_str(), json!({"n": 1}))])
    } else {
        Reply::text("all done")
    }
}

/// Answers at once, except the first time that a key comes.
fn first_time_held(gate: &Gate) -> impl Fn(&Called) -> Response + Send + Sync + 'static {
    let gate = gate.clone();
    move |called| match called.time {
        1 => Response::text("first").held(&gate),
        _ => Response::text("again"),
    }
}

/// One run for each class of tools.
async fn start_one_of_each(world: &World) {
    for class in CLASSES {
        world.start_run(class).await;
    }
}

/// What the journal says of the only call of the run of that class.
async fn call_of(world: &World, class: &str) -> Value {
    let run = world.accepted().into_iter().find(|run| run.input == class);
    let run = run.expect("there is a run of each class");
    let mut calls = world.api.tool_calls(&run.id).await;
    assert_eq!(calls.len(), 1, "{calls:#?}");
    calls.remove(0)
}

/// What came of each class's call: how often the service saw it, how often it began, its state, and
/// what the model was told.
async fn outcomes(world: &World) -> Vec<(&'static str, usize, u64, String, String)> {
    let mut outcomes = Vec::new();
    for class in CLASSES {
        let call = call_of(world, class).await;
        let key = text(&call["idempotency_key"]);
        outcomes.push((
            class,
            world.tools.times().get(&key).copied().unwrap_or_default(),
            call["executions"].as_u64().unwrap_or_default(),
            text(&call["state"]),
            world
                .provider
                .told_of(&text(&call["tool_use_id"]))
                .unwrap_or_default(),
        ));
        assert_eq!(world.provider.times(class), [1, 1], "{class}");
        assert_eq!(call["is_error"], call["state"] == "in_doubt", "{call:#}");
    }
    outcomes
}

fn outcome(
    class: &'static str,
    seen: usize,
    executions: u64,
    state: &str,
    told: &str,
) -> (&'static str, usize, u64, String, String) {
    (class, seen, executions, state.to_owned(), told.to_owned())
}

async fn a_process_killed_between_an_answer_and_its_tools_does_not_ask_for_the_answer_again(
    kind: Kind,
) {
    let mut world = Plan::on(kind, &[])
        .await
        .with_closed_tools(one_call, |_| Response::text("first"))
        .await;
    start_one_of_each(&world).await;
    for class in CLASSES {
        until("the answer is committed", async || {
            let run = world
                .accepted()
                .into_iter()
                .find(|run| run.input == class)?;
            let calls = world.api.tool_calls(&run.id).await;
            calls
                .first()
                .filter(|call| call["state"] == "started")
                .cloned()
        })
        .await;
    }

    world.kill();
    world.tools.open();
    world.restart().await;

    history::all_ended(&world, "succeeded").await;
    assert_eq!(
        outcomes(&world).await,
        [
            outcome("safe", 1, 2, "finished", "first"),
            outcome("keyed", 1, 2, "finished", "first"),
            outcome("unsafe", 0, 1, "in_doubt", UNKNOWN),
        ]
    );
}

async fn a_process_killed_in_a_tool_repeats_the_call_only_where_that_is_safe(kind: Kind) {
    let mut world = Plan::on(kind, &[])
        .await
        .with_tools(one_call, first_time_held(&Gate::closed()))
        .await;
    start_one_of_each(&world).await;
    until_true("every tool works", || world.tools.calls().len() == 3).await;

    world.kill();
    world.restart().await;

    history::all_ended(&world, "succeeded").await;
    assert_eq!(
        outcomes(&world).await,
        [
            outcome("safe", 2, 2, "finished", "again"),
            outcome("keyed", 2, 2, "finished", "again"),
            outcome("unsafe", 1, 1, "in_doubt", UNKNOWN),
        ]
    );
}

async fn a_process_killed_before_the_boundary_was_committed_repeats_the_call_only_where_that_is_safe(
    kind: Kind,
) {
    let gate = Gate::closed();
    let mut world = Plan::on(kind, &[])
        .await
        .with_tools(one_call, first_time_held(&gate))
        .await;
    start_one_of_each(&world).await;
    until_true("every tool works", || world.tools.calls().len() == 3).await;
    let lock = world.freeze_commits().await;
    gate.open();
    until_true("every tool has answered", || {
        let calls = world.tools.calls();
        calls.iter().all(|called| called.answered == Some(true))
    })
    .await;

    world.kill();
    lock.release_to_the_living().await;
    world.restart().await;

    history::all_ended(&world, "succeeded").await;
    assert_eq!(
        outcomes(&world).await,
        [
            outcome("safe", 2, 2, "finished", "again"),
            outcome("keyed", 2, 2, "finished", "again"),
            outcome("unsafe", 1, 1, "in_doubt", UNKNOWN),
        ]
    );
}

/// Three calls, one at a time: the first is recorded, the second is open, the third has not begun.
async fn killed_between_calls(kind: Kind, second: &'static str) -> World {
    let model = move |ask: &Ask| {
        if ask.turn == 1 {
            let calls = [("unsafe", 1), (second, 2), ("unsafe", 3)];
            Reply::calls(calls.map(|(tool, n)| (tool, json!({"n": n}))))
        } else {
            Reply::text("all done")
        }
    };
    let gate = Gate::closed();
    let tools = move |called: &Called| {
        let response = Response::text(format!("{} at {}", called.input["n"], called.time));
        if called.input["n"] == 2 && called.time == 1 {
            response.held(&gate)
        } else {
            response
        }
    };
    let settings = [("HANGO_TOOL_CONCURRENCY", "1")];
    let mut world = Plan::on(kind, &settings)
        .await
        .with_tools(model, tools)
        .await;
    let run = world.start_run("one").await;
    until_true("the second call works", || world.tools.calls().len() == 2).await;
    assert_eq!(
        states(&world, &run.id).await,
        ["finished 1", "started 1", "pending 0"]
    );

    world.kill();
    world.restart().await;

    history::all_ended(&world, "succeeded").await;
    assert_eq!(world.provider.times("one"), [1, 1]);
    world
}

/// The state of each call, and how often it began.
async fn states(world: &World, run: &str) -> Vec<String> {
    let calls = world.api.tool_calls(run).await;
    let state = |call: &Value| format!("{} {}", text(&call["state"]), call["executions"]);
    calls.iter().map(state).collect()
}

/// The call that each request to the services was for.
fn seen(world: &World) -> Vec<Value> {
    let calls = world.tools.calls().into_iter();
    calls.map(|called| called.input["n"].clone()).collect()
}

/// What the model was told of each call.
fn told(world: &World) -> Vec<String> {
    let ids = world.provider.asked_for("one")[0].ids.clone();
    let told = ids.iter().map(|id| world.provider.told_of(id));
    told.map(Option::unwrap_or_default).collect()
}

async fn a_process_killed_between_two_calls_of_a_batch_repeats_the_open_one_with_its_key(
    kind: Kind,
) {
    let world = killed_between_calls(kind, "keyed").await;

    let run = &world.accepted()[0].id;
    assert_eq!(
        states(&world, run).await,
        ["finished 1", "finished 2", "finished 1"]
    );
    assert_eq!(seen(&world), [1, 2, 2, 3]);
    assert_eq!(told(&world), ["1 at 1", "2 at 2", "3 at 1"]);
}

async fn a_process_killed_between_two_calls_of_a_batch_leaves_an_unsafe_one_in_doubt(kind: Kind) {
    let world = killed_between_calls(kind, "unsafe").await;

    let run = &world.accepted()[0].id;
    assert_eq!(
        states(&world, run).await,
        ["finished 1", "in_doubt 1", "finished 1"]
    );
    assert_eq!(seen(&world), [1, 2, 3]);
    assert_eq!(told(&world), ["1 at 1", UNKNOWN, "3 at 1"]);
}
