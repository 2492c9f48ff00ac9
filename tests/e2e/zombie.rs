//! A process that is stopped for longer than its leases last, and wakes: it must begin nothing for the
//! claims that it had, and write nothing for them once they were taken back.

use std::time::Duration;

use serde_json::json;

use super::support::api::text;
use super::support::gate::Gate;
use super::support::history;
use super::support::messages;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::store::{Kind, on_both_stores};
use super::support::tools::{Called, Response};
use super::support::until::{until, until_true};
use super::support::world::{Plan, World};

on_both_stores! {
    an_answer_that_arrives_after_the_lease_ran_out_is_not_acted_upon_by_its_attempt
    a_result_that_arrives_after_the_lease_ran_out_is_kept_or_the_call_open_but_never_both
    a_process_that_wakes_begins_nothing_even_if_the_store_does_not_tell_it_that_it_lost_its_lease
    an_attempt_whose_run_was_taken_back_writes_nothing_although_it_trusts_its_lease
}

const RUNS: usize = 8;

const LEASE: Duration = Duration::from_secs(2);

const SHORT_LEASES: [(&str, &str); 3] = [
    ("HANGO_RUN_LEASE_TTL", "2s"),
    ("HANGO_RUN_HEARTBEAT_INTERVAL", "600ms"),
    ("HANGO_RUN_RECLAIM_INTERVAL", "500ms"),
];

const LONG_LEASES: [(&str, &str); 2] = [
    ("HANGO_RUN_LEASE_TTL", "90s"),
    ("HANGO_RUN_HEARTBEAT_INTERVAL", "30s"),
];

/// Stops the process for half as long again as a lease; `meanwhile` is done at once.
async fn asleep(world: &mut World, meanwhile: impl FnOnce()) {
    world.hango().stop();
    meanwhile();
    // Time itself is what is tested.
    tokio::time::sleep(LEASE + LEASE / 2).await;
    world.hango().cont();
}

async fn start_runs(world: &World) {
    for n in 0..RUNS {
        world.start_run(&format!("run {n}")).await;
    }
}

async fn an_answer_that_arrives_after_the_lease_ran_out_is_not_acted_upon_by_its_attempt(
    kind: Kind,
) {
    let gate = Gate::closed();
    let held = gate.clone();
    let model = move |ask: &Ask| match (ask.turn, ask.time) {
        (1, 1) => Reply::calls([("unsafe", json!({"n": 1}))]).held_before_end(&held),
        (1, _) => Reply::calls([("unsafe", json!({"n": 2}))]),
        (_, _) => Reply::text("all done"),
    };
    let mut world = Plan::on(kind, &SHORT_LEASES).await.start(model).await;
    start_runs(&world).await;
    until_true("every answer is on its way", || {
        world
            .provider
            .asked()
            .iter()
            .filter(|asked| asked.sent() > 0)
            .count()
            == RUNS
    })
    .await;

    asleep(&mut world, || gate.open()).await;

    history::all_ended(&world, "succeeded").await;
    for run in world.accepted() {
        let asked = world.provider.asked_for(&run.input);
        let kept = messages::calls(&world.api.messages(&run.session).await);
        // The old attempt may still have kept its answer, as long as nobody had taken the run back.
        match world.provider.times(&run.input)[..] {
            [1, 1] => assert_eq!(kept, asked[0].ids),
            [2, 1] => assert_eq!(kept, asked[1].ids),
            ref other => panic!("{other:?}"),
        }
        assert_eq!(world.api.run(&run.id).await["attempt"], 2);
    }
    for called in world.tools.calls() {
        assert_eq!(
            called.input,
            json!({"n": 2}),
            "the old attempt began a call"
        );
    }
}

async fn a_result_that_arrives_after_the_lease_ran_out_is_kept_or_the_call_open_but_never_both(
    kind: Kind,
) {
    let model = |ask: &Ask| match ask.turn {
        1 => Reply::calls([("safe", json!({"n": 1})), ("unsafe", json!({"n": 2}))]),
        _ => Reply::text("all done"),
    };
    let gate = Gate::closed();
    let held = gate.clone();
    let tools = move |called: &Called| match called.time {
        1 => Response::text("first").held(&held),
        _ => Response::text("again"),
    };
    let mut world = Plan::on(kind, &SHORT_LEASES)
        .await
        .with_tools(model, tools)
        .await;
    start_runs(&world).await;
    until_true("every tool works", || world.tools.calls().len() == 2 * RUNS).await;

    asleep(&mut world, || gate.open()).await;

    history::all_ended(&world, "succeeded").await;
    for run in world.accepted() {
        assert_eq!(world.provider.times(&run.input), [1, 1]);
        for call in world.api.tool_calls(&run.id).await {
            let told = world.provider.told_of(&text(&call["tool_use_id"]));
            let told = told.expect("the model is told of every call");
            let seen = world.tools.times()[&text(&call["idempotency_key"])];
            let outcome = (text(&call["name"]), told, seen, text(&call["state"]));
            let (name, told, seen, state) = &outcome;
            match (name.as_str(), told.as_str(), seen, state.as_str()) {
                ("safe" | "unsafe", "first", 1, "finished")
                | ("safe", "again", 2, "finished")
                | ("unsafe", "interrupted, outcome unknown", 1, "in_doubt") => {}
                _ => panic!("{outcome:?}"),
            }
        }
        assert_eq!(world.api.run(&run.id).await["attempt"], 2);
    }
}

async fn a_process_that_wakes_begins_nothing_even_if_the_store_does_not_tell_it_that_it_lost_its_lease(
    kind: Kind,
) {
    let model = |ask: &Ask| match ask.time {
        1 => Reply::busy_for(2),
        _ => Reply::text("all done"),
    };
    let mut world = Plan::on(kind, &SHORT_LEASES).await.start(model).await;
    let run = world.start_run("one").await;
    let store = world.home.store().clone();
    until(
        "it waits for its next try, which needs no write before",
        async || (store.run_row(&run.id).await.tries == 1).then_some(()),
    )
    .await;

    let lock = world.freeze_commits().await;
    asleep(&mut world, || {}).await;
    tokio::time::sleep(LEASE / 2).await;
    assert_eq!(
        world.provider.asked().len(),
        1,
        "the old attempt asked again"
    );
    lock.release().await;

    history::all_ended(&world, "succeeded").await;
    assert_eq!(world.provider.times("one"), [2]);
    assert_eq!(world.api.run(&run.id).await["attempt"], 2);
}

async fn an_attempt_whose_run_was_taken_back_writes_nothing_although_it_trusts_its_lease(
    kind: Kind,
) {
    let gate = Gate::closed();
    let held = gate.clone();
    let model = move |ask: &Ask| match (ask.turn, ask.time) {
        (1, 1) => Reply::calls([("unsafe", json!({"n": 1}))]).held_before_end(&held),
        (1, _) => Reply::calls([("unsafe", json!({"n": 2}))]),
        (_, _) => Reply::text("all done"),
    };
    let mut world = Plan::on(kind, &LONG_LEASES).await.start(model).await;
    start_runs(&world).await;
    until_true("every answer is on its way", || {
        let asked = world.provider.asked();
        asked.iter().filter(|asked| asked.sent() > 0).count() == RUNS
    })
    .await;

    // Stopped where it has no transaction open.
    let lock = world.freeze_commits().await;
    world.hango().stop();
    lock.release().await;
    for run in world.accepted() {
        world.home.store().take_back(&run.id).await;
    }
    gate.open();
    world.hango().cont();

    history::all_ended(&world, "succeeded").await;
    for run in world.accepted() {
        let asked = world.provider.asked_for(&run.input);
        assert_eq!(world.provider.times(&run.input), [2, 1]);
        let kept = messages::calls(&world.api.messages(&run.session).await);
        assert_eq!(kept, asked[1].ids, "the old attempt's answer was stored");
        assert_eq!(world.api.run(&run.id).await["attempt"], 2);
        assert_eq!(world.tools.calls_of(&run.id).len(), 1);
    }
}
