//! What does not answer: it is dropped at its limit, its connection closed, its slot free; and a provider
//! that asks for rest gets it without a run that waits in a slot.

use serde_json::{Value, json};

use super::support::api::text;
use super::support::gate::Gate;
use super::support::history;
use super::support::provider::{Ask, Asked};
use super::support::reply::Reply;
use super::support::tools::{Called, Response};
use super::support::until::{until, until_true};
use super::support::world::{Accepted, World};

/// A second run shows that the slot of the first is free.
const ONE_SLOT: (&str, &str) = ("HANGO_RUN_WORKERS", "1");

/// Starts a run that nothing holds up, and waits for it.
async fn another_run_succeeds(world: &World) {
    let run = world.start_run("next").await;
    let ended = world.api.ended(&run.id).await;
    assert_eq!(ended["state"], "succeeded", "{ended:#}");
}

/// Waits until whoever asked for `run` has gone away.
async fn is_left_alone(world: &World, run: &Accepted) {
    until_true("the provider's connection is closed", || {
        let asked = world.provider.asked_for(&run.input);
        !asked.is_empty() && asked.iter().all(Asked::is_dropped)
    })
    .await;
}

/// The run's error, once it has failed.
async fn error_of(world: &World, run: &Accepted) -> Value {
    let ended = world.api.ended(&run.id).await;
    assert_eq!(ended["state"], "failed", "{ended:#}");
    ended["error"].clone()
}

/// Runs named `next` are answered; the answer of others is held once so many pieces are sent.
fn held_after(pieces: usize) -> impl Fn(&Ask) -> Reply + Send + Sync + 'static {
    let gate = Gate::closed();
    move |ask| match ask.run.as_str() {
        "next" => Reply::text("all done"),
        _ => Reply::text("this is never whole").held_after(pieces, &gate),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_never_begins_to_answer_is_left_at_its_limit() {
    let settings = [
        ONE_SLOT,
        ("HANGO_PROVIDER_FIRST_BYTE_TIMEOUT", "500ms"),
        ("HANGO_PROVIDER_MAX_RETRIES", "1"),
    ];
    let world = World::start(&settings, held_after(0)).await;
    let run = world.start_run("one").await;

    let error = error_of(&world, &run).await;

    assert_eq!(error["code"], "provider_unavailable", "{error:#}");
    assert_eq!(world.provider.times("one"), [2]);
    is_left_alone(&world, &run).await;
    another_run_succeeds(&world).await;
    history::check(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_falls_silent_is_left_at_its_limit_and_what_it_said_is_kept() {
    let settings = [
        ONE_SLOT,
        ("HANGO_PROVIDER_IDLE_TIMEOUT", "500ms"),
        ("HANGO_PROVIDER_MAX_RETRIES", "0"),
    ];
    let world = World::start(&settings, held_after(3)).await;
    let run = world.start_run("one").await;

    let error = error_of(&world, &run).await;

    assert_eq!(error["code"], "provider_unavailable", "{error:#}");
    is_left_alone(&world, &run).await;
    let messages = world.api.messages(&run.session).await;
    let last = messages.last().expect("what it said is kept");
    assert_eq!(last["partial"], true, "{last:#}");
    assert_eq!(last["content"][0]["text"], "this is ", "{last:#}");
    another_run_succeeds(&world).await;
    history::check(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_time_is_over_leaves_its_provider() {
    let settings = [ONE_SLOT, ("HANGO_RUN_DEADLINE", "1s")];
    let world = World::start(&settings, held_after(3)).await;
    let run = world.start_run("one").await;

    let error = error_of(&world, &run).await;

    assert_eq!(error["code"], "deadline_exceeded", "{error:#}");
    is_left_alone(&world, &run).await;
    another_run_succeeds(&world).await;
    history::check(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_never_answers_is_left_at_its_limit_and_the_run_goes_on() {
    let model = |ask: &Ask| match (ask.run.as_str(), ask.turn) {
        ("one", 1) => Reply::calls([("unsafe", json!({"n": 1}))]),
        _ => Reply::text("all done"),
    };
    let gate = Gate::closed();
    let tools = move |_: &Called| Response::text("never said").held(&gate);
    let settings = [ONE_SLOT, ("HANGO_TOOL_TIMEOUT", "500ms")];
    let world = World::with_tools(&settings, model, tools).await;
    let run = world.start_run("one").await;

    history::all_ended(&world, "succeeded").await;

    until_true("the tool's connection is closed", || {
        let calls = world.tools.calls_of(&run.id);
        calls.len() == 1 && calls[0].answered == Some(false)
    })
    .await;
    let called = &world.tools.calls_of(&run.id)[0];
    let told = world.provider.told_of(&called.call).unwrap_or_default();
    let was_left = history::LEFT.iter().any(|left| told.starts_with(left));
    assert!(was_left, "{told:?}");
    another_run_succeeds(&world).await;
    history::check(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_provider_rests_its_runs_hold_no_slot_and_nobody_asks_it() {
    let model = |ask: &Ask| match ask.run.as_str() {
        "one" | "two" => Reply::busy_for(30),
        _ => Reply::text("all done"),
    };
    let world = World::start(&[ONE_SLOT], model).await;
    let other = json!({"slug": "other", "provider": "anthropic", "model": "test"});
    world.api.post("/v1/agents", &other).await.expect(201);
    let busy = [world.start_run("one").await, world.start_run("two").await];

    let rests = |run: Value| (run["state"] == "queued" && run["attempt"] == 1).then_some(());
    for run in &busy {
        until("the run is given back", async || {
            rests(world.api.run(&run.id).await)
        })
        .await;
    }
    for input in ["three", "four", "five"] {
        let session = json!({"agent": "other"});
        let session = world.api.post("/v1/sessions", &session).await;
        let session = text(&session.expect(201)["id"]);
        let run = world.start_run_in(&session, input).await;
        assert_eq!(world.api.ended(&run.id).await["state"], "succeeded");
    }

    // The second was not even asked for: the provider had said when it wants to be asked again.
    let times = busy.each_ref().map(|run| world.provider.times(&run.input));
    assert_eq!(times, [vec![1], vec![]]);
    for run in &busy {
        let now = world.api.run(&run.id).await;
        assert_eq!(
            (&now["state"], &now["attempt"]),
            (&json!("queued"), &json!(1))
        );
        world.api.cancel(&run.id).await;
    }
    history::check(&world).await;
}
