//! `kill -9` around model calls: what was not committed is asked again, what was is not.

use std::time::Instant;

use serde_json::json;

use super::support::api::text;
use super::support::gate::Gate;
use super::support::history;
use super::support::messages;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::store::{Kind, on_both_stores};
use super::support::until::until_true;
use super::support::world::Plan;

on_both_stores! {
    a_process_killed_while_the_model_streams_asks_for_that_turn_again_and_no_other
    a_process_killed_before_the_end_was_committed_ends_the_run_once
    runs_accepted_before_anything_was_done_for_them_are_executed_after_a_crash
    an_input_is_a_message_once_however_often_its_first_turn_is_begun
}

/// How soon a run goes on after a start: on an embedded store that waits for no lease, which is 90 seconds
/// long there.
const AT_ONCE: std::time::Duration = std::time::Duration::from_secs(10);

/// A turn with a tool, then an answer, whose first try is held before its end.
fn second_answer_held(gate: &Gate) -> impl Fn(&Ask) -> Reply + Send + Sync + 'static {
    let gate = gate.clone();
    move |ask| match (ask.turn, ask.time) {
        (1, _) => Reply::calls([("unsafe", json!({"n": 1}))]),
        (_, 1) => Reply::text("this is the first try").held_before_end(&gate),
        (_, _) => Reply::text("this is the second try"),
    }
}

async fn a_process_killed_while_the_model_streams_asks_for_that_turn_again_and_no_other(
    kind: Kind,
) {
    let mut world = Plan::on(kind, &[])
        .await
        .start(second_answer_held(&Gate::closed()))
        .await;
    let run = world.start_run("one").await;
    until_true("the second answer is on its way", || {
        let asked = world.provider.asked_for("one");
        asked.len() == 2 && asked[1].sent() > 3
    })
    .await;

    world.kill();
    let begun = Instant::now();
    world.restart().await;

    history::all_ended(&world, "succeeded").await;
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    assert_eq!(world.provider.times("one"), [1, 2]);
    assert_eq!(world.tools.calls().len(), 1);
    let messages = world.api.messages(&run.session).await;
    let last = messages.last().expect("there are messages");
    assert_eq!(messages::text(last), "this is the second try");
    assert!(messages.iter().all(|message| message["partial"] == false));
    assert_eq!(world.api.run(&run.id).await["attempt"], 2);
}

async fn a_process_killed_before_the_end_was_committed_ends_the_run_once(kind: Kind) {
    let gate = Gate::closed();
    let mut world = Plan::on(kind, &[])
        .await
        .start(second_answer_held(&gate))
        .await;
    let run = world.start_run("one").await;
    until_true("the second answer is on its way", || {
        world.provider.asked_for("one").len() == 2
    })
    .await;
    let lock = world.freeze_commits().await;
    gate.open();
    until_true("the second answer is whole", || {
        world.provider.asked_for("one")[1].is_whole()
    })
    .await;

    world.kill();
    lock.release_to_the_living().await;
    world.restart().await;

    history::all_ended(&world, "succeeded").await;
    assert_eq!(world.provider.times("one"), [1, 2]);
    assert_eq!(world.tools.calls().len(), 1);
    let messages = world.api.messages(&run.session).await;
    assert_eq!(messages.len(), 4, "{messages:#?}");
    assert_eq!(messages::text(&messages[3]), "this is the second try");
}

async fn runs_accepted_before_anything_was_done_for_them_are_executed_after_a_crash(kind: Kind) {
    let gate = Gate::closed();
    let held = gate.clone();
    let mut world = Plan::on(kind, &[("HANGO_RUN_WORKERS", "1")])
        .await
        .start(move |ask| match (ask.run.as_str(), ask.time) {
            ("first", 1) => Reply::text("never whole").held_after(1, &held),
            _ => Reply::text("done"),
        })
        .await;
    let first = world.start_run("first").await;
    until_true("the only worker is busy", || {
        world.provider.asked_for("first").len() == 1
    })
    .await;
    world.start_run_in(&first.session, "behind it").await;
    for n in 0..3 {
        world.start_run(&format!("elsewhere {n}")).await;
    }
    let last = world.start_run("last").await;

    world.kill();
    world.restart().await;

    history::all_ended(&world, "succeeded").await;
    assert_eq!(world.provider.times("first"), [2]);
    for run in &world.accepted()[1..] {
        assert_eq!(world.provider.times(&run.input), [1], "{run:?}");
        assert_eq!(world.api.run(&run.id).await["attempt"], 1);
    }
    let messages = world.api.messages(&last.session).await;
    assert_eq!(messages.len(), 2, "{messages:#?}");
}

async fn an_input_is_a_message_once_however_often_its_first_turn_is_begun(kind: Kind) {
    let gate = Gate::closed();
    let mut world = Plan::on(kind, &[])
        .await
        .start(move |ask| match ask.time {
            1 | 2 => Reply::text("never whole").held_after(2, &gate),
            _ => Reply::text("done"),
        })
        .await;
    let run = world.start_run("one").await;
    for time in 1..=2 {
        until_true("the turn is begun", || {
            world.provider.asked_for("one").len() == time
        })
        .await;
        world.kill();
        world.restart().await;
    }

    history::all_ended(&world, "succeeded").await;
    assert_eq!(world.provider.times("one"), [3]);
    let messages = world.api.messages(&run.session).await;
    let said: Vec<_> = messages.iter().map(messages::text).collect();
    assert_eq!(said, ["one", "done"]);
    let run = world.api.run(&run.id).await;
    assert_eq!(text(&run["final_message_id"]), text(&messages[1]["id"]));
}
