//! Cancelling: what was asked to end ends, and the session goes on with a legal history.

use std::time::{Duration, Instant};

use serde_json::json;

use super::support::gate::Gate;
use super::support::history;
use super::support::messages;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::store::{Kind, on_both_stores};
use super::support::tools::{Called, Response};
use super::support::until::until_true;
use super::support::world::Plan;

on_both_stores! {
    a_run_cancelled_while_the_model_streams_keeps_what_arrived_and_its_session_goes_on
    a_run_cancelled_in_a_tool_leaves_no_open_call_and_its_session_goes_on
    a_run_cancelled_in_the_queue_is_never_begun
    a_cancel_that_was_acknowledged_holds_although_its_process_is_killed
}

/// How soon a cancel must be felt: a pushed one is, a polled one within a poll.
const SOON: Duration = Duration::from_secs(2);

/// Runs named `next…` are answered at once; others stream and are held in their first turn.
fn held_in_stream(gate: &Gate) -> impl Fn(&Ask) -> Reply + Send + Sync + 'static {
    let gate = gate.clone();
    move |ask| {
        if ask.run.starts_with("next") {
            Reply::text("all done")
        } else {
            Reply::text("this is never whole").held_after(3, &gate)
        }
    }
}

async fn a_run_cancelled_while_the_model_streams_keeps_what_arrived_and_its_session_goes_on(
    kind: Kind,
) {
    let world = Plan::on(kind, &[])
        .await
        .start(held_in_stream(&Gate::closed()))
        .await;
    let run = world.start_run("one").await;
    until_true("the answer is on its way", || {
        world.provider.pieces_sent() >= 3
    })
    .await;

    let begun = Instant::now();
    let acknowledged = world.api.cancel(&run.id).await;
    assert!(
        !acknowledged["cancel_requested_at"].is_null(),
        "{acknowledged:#}"
    );
    let ended = world.api.ended(&run.id).await;

    assert_eq!(ended["state"], "cancelled", "{ended:#}");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    until_true("the stream is dropped", || {
        world.provider.asked()[0].is_dropped()
    })
    .await;
    let kept = world.api.messages(&run.session).await;
    assert_eq!(kept[1]["partial"], true, "{kept:#?}");
    assert!("this is never whole".starts_with(&messages::text(&kept[1])));
    let next = world.start_run_in(&run.session, "next").await;
    assert_eq!(world.api.ended(&next.id).await["state"], "succeeded");
    history::check(&world).await;
    assert_eq!(world.provider.times("one"), [1]);
    let again = world
        .api
        .post(&format!("/v1/runs/{}/cancel", run.id), &json!({}))
        .await;
    assert_eq!(again.expect(409)["code"], "run_ended");
}

async fn a_run_cancelled_in_a_tool_leaves_no_open_call_and_its_session_goes_on(kind: Kind) {
    let model = |ask: &Ask| {
        if ask.run == "one" && ask.turn == 1 {
            Reply::calls([("unsafe", json!({"n": 1})), ("safe", json!({"n": 2}))])
        } else {
            Reply::text("all done")
        }
    };
    let gate = Gate::closed();
    let tools = move |called: &Called| match called.tool.as_str() {
        "unsafe" => Response::text("never").held(&gate),
        _ => Response::text("done"),
    };
    let world = Plan::on(kind, &[("HANGO_TOOL_CONCURRENCY", "1")])
        .await
        .with_tools(model, tools)
        .await;
    let run = world.start_run("one").await;
    until_true("the tool works", || world.tools.calls().len() == 1).await;

    let begun = Instant::now();
    world.api.cancel(&run.id).await;
    let ended = world.api.ended(&run.id).await;

    assert_eq!(ended["state"], "cancelled", "{ended:#}");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    until_true("the call is dropped", || {
        world.tools.calls()[0].answered == Some(false)
    })
    .await;
    let next = world.start_run_in(&run.session, "next").await;
    assert_eq!(world.api.ended(&next.id).await["state"], "succeeded");
    history::check(&world).await;
    assert_eq!(world.provider.times("one"), [1], "a cancelled run went on");
    assert_eq!(world.tools.calls().len(), 1, "a cancelled run began a call");
}

async fn a_run_cancelled_in_the_queue_is_never_begun(kind: Kind) {
    let gate = Gate::closed();
    let world = Plan::on(kind, &[]).await.start(held_in_stream(&gate)).await;
    let first = world.start_run("one").await;
    let queued = world.start_run_in(&first.session, "queued").await;
    let next = world.start_run_in(&first.session, "next").await;
    until_true("the first run is asked for", || {
        world.provider.asked().len() == 1
    })
    .await;

    let cancelled = world.api.cancel(&queued.id).await;
    assert_eq!(cancelled["state"], "cancelled", "{cancelled:#}");
    gate.open();

    assert_eq!(world.api.ended(&first.id).await["state"], "succeeded");
    assert_eq!(world.api.ended(&next.id).await["state"], "succeeded");
    history::check(&world).await;
    assert_eq!(world.provider.asked_for("queued").len(), 0);
    let said = world.api.messages(&first.session).await;
    let said: Vec<_> = said.iter().map(messages::text).collect();
    assert_eq!(said, ["one", "this is never whole", "next", "all done"]);
}

async fn a_cancel_that_was_acknowledged_holds_although_its_process_is_killed(kind: Kind) {
    let mut world = Plan::on(kind, &[])
        .await
        .start(held_in_stream(&Gate::closed()))
        .await;
    let run = world.start_run("one").await;
    until_true("the answer is on its way", || {
        world.provider.pieces_sent() >= 3
    })
    .await;
    world.api.cancel(&run.id).await;

    world.kill();
    world.restart().await;

    assert_eq!(world.api.ended(&run.id).await["state"], "cancelled");
    let next = world.start_run_in(&run.session, "next").await;
    assert_eq!(world.api.ended(&next.id).await["state"], "succeeded");
    history::check(&world).await;
    assert_eq!(world.provider.times("one"), [1]);
}
