//! SIGTERM: runs go back at their boundaries, and the next process goes on at once.

use std::time::{Duration, Instant};

use serde_json::json;

use super::support::gate::Gate;
use super::support::history;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::store::RunRow;
use super::support::store::{Kind, on_both_stores};
use super::support::tools::Response;
use super::support::until::{until, until_true};
use super::support::world::Plan;

on_both_stores! {
    ten_runs_in_flight_are_given_back_at_their_boundaries_and_go_on_at_the_next_start
    a_turn_longer_than_the_drain_is_broken_off_and_begun_anew_at_the_next_start
    a_second_signal_ends_the_process_at_once_which_is_only_a_crash
    a_process_told_to_end_while_runs_begin_and_end_leaves_none_to_wait_for
}

const RUNS: usize = 10;

/// Nobody may have to wait for one.
const LONG_LEASE: (&str, &str) = ("HANGO_RUN_LEASE_TTL", "90s");

fn given_back(resume_turn: i64) -> RunRow {
    RunRow {
        state: "queued".to_owned(),
        owner: None,
        leased: false,
        resume_turn,
        tries: 0,
    }
}

async fn ten_runs_in_flight_are_given_back_at_their_boundaries_and_go_on_at_the_next_start(
    kind: Kind,
) {
    let gate = Gate::closed();
    let held = gate.clone();
    let model = move |ask: &Ask| match ask.turn {
        1 => Reply::calls([("unsafe", json!({"n": 1}))]).held_before_end(&held),
        2 => Reply::calls([("unsafe", json!({"n": 2}))]),
        _ => Reply::text("all done"),
    };
    let slow = |_: &_| Response::text("done").after(Duration::from_millis(100));
    let settings = [("HANGO_DRAIN_TIMEOUT", "20s"), LONG_LEASE];
    let mut world = Plan::on(kind, &settings)
        .await
        .with_tools(model, slow)
        .await;
    for n in 0..RUNS {
        world.start_run(&format!("run {n}")).await;
    }
    until_true("every run is in its first turn", || {
        world.provider.asked().len() == RUNS
    })
    .await;

    world.hango().term();
    until("it is not ready any more", async || {
        (world.api.get("/readyz").await.status == 503).then_some(())
    })
    .await;
    world.api.get("/healthz").await.expect(200);
    let late = world.start_run("accepted while draining").await;
    gate.open();
    let (status, took) = world.hango().ended().await;

    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(5), "{took:?}");
    let store = world.home.store();
    for run in world.accepted() {
        let turns = i64::from(run.id != late.id);
        assert_eq!(store.run_row(&run.id).await, given_back(turns));
    }

    world.restart().await;
    let listening = Instant::now();
    until_true("every run goes on", || {
        world.provider.asked().len() > 2 * RUNS
    })
    .await;
    assert!(
        listening.elapsed() < Duration::from_secs(2),
        "{:?}",
        listening.elapsed()
    );
    history::all_ended(&world, "succeeded").await;
    for run in &world.accepted()[..RUNS] {
        assert_eq!(world.provider.times(&run.input), [1, 1, 1]);
        assert_eq!(world.tools.calls_of(&run.id).len(), 2);
    }
}

async fn a_turn_longer_than_the_drain_is_broken_off_and_begun_anew_at_the_next_start(kind: Kind) {
    let gate = Gate::closed();
    let model = move |ask: &Ask| match ask.time {
        1 => Reply::text("never whole").held_after(2, &gate),
        _ => Reply::text("all done"),
    };
    let mut world = Plan::on(kind, &[("HANGO_DRAIN_TIMEOUT", "500ms"), LONG_LEASE])
        .await
        .start(model)
        .await;
    let run = world.start_run("one").await;
    until_true("the run is in its turn", || {
        world.provider.asked().len() == 1
    })
    .await;

    world.hango().term();
    let (status, took) = world.hango().ended().await;

    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(4), "{took:?}");
    let row = world.home.store().run_row(&run.id).await;
    assert_eq!(row, given_back(0));
    assert!(world.provider.asked()[0].is_dropped());
    world.restart().await;
    history::all_ended(&world, "succeeded").await;
    assert_eq!(world.provider.times("one"), [2]);
}

async fn a_second_signal_ends_the_process_at_once_which_is_only_a_crash(kind: Kind) {
    let gate = Gate::closed();
    let model = move |ask: &Ask| match ask.time {
        1 => Reply::text("never whole").held_after(2, &gate),
        _ => Reply::text("all done"),
    };
    let mut world = Plan::on(kind, &[]).await.start(model).await;
    world.start_run("one").await;
    until_true("the run is in its turn", || {
        world.provider.asked().len() == 1
    })
    .await;
    world.hango().term();
    until("it is not ready any more", async || {
        (world.api.get("/readyz").await.status == 503).then_some(())
    })
    .await;

    world.hango().term();
    let (status, took) = world.hango().ended().await;

    assert_ne!(status.code(), Some(0));
    assert!(took < Duration::from_secs(1), "{took:?}");
    world.restart().await;
    history::all_ended(&world, "succeeded").await;
    assert_eq!(world.provider.times("one"), [2]);
}

async fn a_process_told_to_end_while_runs_begin_and_end_leaves_none_to_wait_for(kind: Kind) {
    let model = |ask: &Ask| match ask.turn {
        1 => Reply::calls([("keyed", json!({"n": 1}))]).paced(Duration::from_millis(5)),
        _ => Reply::text("all done").paced(Duration::from_millis(5)),
    };
    let mut world = Plan::on(kind, &[("HANGO_RUN_WORKERS", "4"), LONG_LEASE])
        .await
        .start(model)
        .await;
    for round in 0..6 {
        for n in 0..8 {
            world.start_run(&format!("round {round}, run {n}")).await;
        }
        // Each round is told at another moment of its runs' lives.
        until_true("some runs have begun", || {
            world.provider.asked().len() > 15 * round
        })
        .await;
        world.hango().term();
        let (status, _) = world.hango().ended().await;

        assert_eq!(status.code(), Some(0));
        for run in world.accepted() {
            let row = world.home.store().run_row(&run.id).await;
            assert!(!row.leased && row.state != "running", "{row:?}");
        }
        world.restart().await;
    }

    history::all_ended(&world, "succeeded").await;
    for run in world.accepted() {
        assert_eq!(world.provider.times(&run.input), [1, 1]);
        assert_eq!(world.tools.calls_of(&run.id).len(), 1);
    }
}
