//! Several processes on one database: whoever has room executes, what one gives up another goes on with,
//! and hints make it quick. Where the poll is long, what happened soon did so because of a hint.

use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;

use super::support::gate::Gate;
use super::support::history;
use super::support::messages;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::store::Kind;
use super::support::tools::Response;
use super::support::until::{until, until_true};
use super::support::world::{Plan, Replica, World};

/// A poll that no test waits for.
const NO_POLL: (&str, &str) = ("HANGO_RUN_POLL_INTERVAL", "10m");

/// The poll of somebody who sets none.
const USUAL_POLL: (&str, &str) = ("HANGO_RUN_POLL_INTERVAL", "1s");

/// How long a run may stand still between two processes that can reach each other.
const SOON: Duration = Duration::from_secs(1);

/// A lease that nobody may have to wait for.
const LONG_LEASE: (&str, &str) = ("HANGO_RUN_LEASE_TTL", "90s");

/// Lease, sweep and what a busy machine takes.
const RECOVERED: Duration = Duration::from_secs(9);

/// A turn with a tool whose call is held before its end, then an answer.
fn first_answer_held(gate: &Gate) -> impl Fn(&Ask) -> Reply + Send + Sync + 'static {
    let gate = gate.clone();
    move |ask| match (ask.turn, ask.time) {
        (1, 1) => Reply::calls([("unsafe", json!({"n": 1}))]).held_before_end(&gate),
        (1, _) => Reply::calls([("unsafe", json!({"n": 2}))]),
        (_, _) => Reply::text("all done"),
    }
}

/// When a turn of a run was asked for, and the time that this took from `begun` on.
async fn asked_after(world: &World, run: &str, turns: usize, begun: Instant) -> Duration {
    let asked = until("the model is asked", async || {
        let asked = world.provider.asked_for(run);
        asked.get(turns - 1).map(|asked| asked.at)
    })
    .await;
    asked.saturating_duration_since(begun)
}

/// Every answer of the first turn is on its way.
async fn streaming(world: &World, runs: usize) {
    until_true("every answer is on its way", || {
        let asked = world.provider.asked();
        asked.iter().filter(|asked| asked.sent() > 0).count() == runs
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_replica_has_no_room_for_the_others_execute_at_once() {
    let gate = Gate::closed();
    let held = gate.clone();
    let model = move |_: &Ask| Reply::text("all done").held_before_end(&held);
    let settings = [NO_POLL, ("HANGO_RUN_WORKERS", "4")];
    let world = Plan::on(Kind::Postgres, &settings).await.start(model).await;
    let _others = [world.join(&[], &[]).await, world.join(&[], &[]).await];

    let begun = Instant::now();
    for n in 0..12 {
        world.start_run(&format!("run {n}")).await;
    }
    until_true("every run is asked for", || {
        world.provider.asked().len() == 12
    })
    .await;

    assert!(begun.elapsed() < 2 * SOON, "{:?}", begun.elapsed());
    assert_eq!(world.home.store().running().await, [4, 4, 4]);
    gate.open();
    history::all_ended(&world, "succeeded").await;
    for run in world.accepted() {
        assert_eq!(world.provider.times(&run.input), [1]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_with_the_api_alone_has_its_runs_executed_by_one_with_the_engine_alone() {
    let settings = [NO_POLL];
    let plan = Plan::on(Kind::Postgres, &settings).await;
    let model = |ask: &Ask| match ask.turn {
        1 => Reply::calls([("keyed", json!({"n": 1}))]),
        _ => Reply::text("all done"),
    };
    let world = plan.with_arguments(&["--no-workers"]).start(model).await;
    let run = world.start_run("before anybody executes").await;
    assert_eq!(world.api.run(&run.id).await["state"], "queued");

    let engine = world.join(&["--no-api"], &[]).await;
    world.api.ended(&run.id).await;
    for n in 0..20 {
        let input = format!("run {n}");
        let begun = Instant::now();
        let run = world.start_run(&input).await;
        let took = asked_after(&world, &input, 1, begun).await;
        assert!(took < SOON, "{took:?}");
        world.api.ended(&run.id).await;
    }

    engine.api.get("/healthz").await.expect(200);
    engine.api.get("/readyz").await.expect(200);
    engine.api.get("/v1/me").await.expect(404);
    history::all_ended(&world, "succeeded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_waits_at_a_process_without_workers_hears_of_the_end_soon() {
    let gate = Gate::closed();
    let held = gate.clone();
    let model = move |_: &Ask| Reply::text("all done").held_before_end(&held);
    let plan = Plan::on(Kind::Postgres, &[]).await;
    let world = plan.with_arguments(&["--no-workers"]).start(model).await;
    let _engine = world.join(&["--no-api"], &[]).await;
    for n in 0..5 {
        world.start_run(&format!("run {n}")).await;
    }
    streaming(&world, 5).await;

    let heard = join_all(world.accepted().into_iter().map(async |run| {
        let path = format!("/v1/runs/{}?wait_ms=20000", run.id);
        let ended = world.api.get(&path).await.expect(200);
        assert_eq!(ended["state"], "succeeded", "{ended:#}");
        Instant::now()
    }));
    let ended = async {
        // Behind the time in which a caller's run is read more often, and a look once a second is far.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        gate.open();
        Instant::now()
    };
    let (heard, ended) = tokio::join!(heard, ended);

    // The quickest one's, so that it is not the machine's business that is measured.
    let late = heard.into_iter().min().map(|heard| heard - ended);
    assert!(late < Some(Duration::from_millis(500)), "{late:?}");
    history::all_ended(&world, "succeeded").await;
}

/// A run that is executed by another process than the one that is asked about it.
async fn executed_elsewhere(poll: (&str, &str)) -> (World, Replica, String) {
    let settings = [poll];
    let plan = Plan::on(Kind::Postgres, &settings).await;
    let never = Gate::closed();
    let model = move |_: &Ask| Reply::text("this is never whole").held_after(3, &never);
    let world = plan.with_arguments(&["--no-workers"]).start(model).await;
    let engine = world.join(&[], &[]).await;
    let run = world.start_run("one").await;
    until_true("the answer is on its way", || {
        world.provider.pieces_sent() >= 3
    })
    .await;
    (world, engine, run.id)
}

/// The run ends soon after `begun`, with what had arrived of its answer.
async fn ends_cancelled(world: &World, run: &str, begun: Instant) {
    until_true("the answer is given up", || {
        world.provider.asked_for("one")[0].is_dropped()
    })
    .await;
    // One poll, and what a busy machine takes.
    assert!(begun.elapsed() < 2 * SOON, "{:?}", begun.elapsed());
    assert_eq!(world.api.ended(run).await["state"], "cancelled");
    history::check(world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_reaches_another_processs_run_at_once() {
    let (world, _engine, run) = executed_elsewhere(NO_POLL).await;

    let begun = Instant::now();
    world.api.cancel(&run).await;

    ends_cancelled(&world, &run, begun).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_whose_hint_is_lost_is_found_by_the_poll() {
    let (world, _engine, run) = executed_elsewhere(USUAL_POLL).await;

    let begun = Instant::now();
    world.home.store().ask_for_end(&run).await;

    ends_cancelled(&world, &run, begun).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_told_to_end_hands_its_runs_over_at_their_boundaries() {
    let gate = Gate::closed();
    let settings = [NO_POLL, LONG_LEASE];
    let plan = Plan::on(Kind::Postgres, &settings).await;
    let slow = |_: &_| Response::text("done").after(Duration::from_millis(100));
    let mut world = plan.with_tools(first_answer_held(&gate), slow).await;
    for n in 0..5 {
        world.start_run(&format!("run {n}")).await;
    }
    streaming(&world, 5).await;
    let other = world.join(&[], &[]).await;

    world.hango().term();
    until("it is not ready any more", async || {
        (world.api.get("/readyz").await.status == 503).then_some(())
    })
    .await;
    // What it still accepts is not its own to execute.
    let begun = Instant::now();
    let late = world.start_run("accepted while draining").await;
    let took = asked_after(&world, &late.input, 1, begun).await;
    assert!(took < SOON, "{took:?}");
    gate.open();
    let opened = Instant::now();
    for run in world.accepted() {
        // The answer's end, the tool, the boundary, and the next turn elsewhere.
        let took = asked_after(&world, &run.input, 2, opened).await;
        assert!(took < 2 * SOON, "{took:?}");
    }
    let (status, _) = world.hango().ended().await;

    assert_eq!(status.code(), Some(0));
    world.api = other.api.clone();
    history::all_ended(&world, "succeeded").await;
    for run in world.accepted() {
        assert_eq!(world.provider.times(&run.input), [1, 1]);
        assert_eq!(world.tools.calls_of(&run.id).len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_starts_leaves_what_a_living_one_executes_alone() {
    let gate = Gate::closed();
    let plan = Plan::on(Kind::Postgres, &[]).await;
    let world = plan.start(first_answer_held(&gate)).await;
    for n in 0..5 {
        world.start_run(&format!("run {n}")).await;
    }
    streaming(&world, 5).await;

    let _other = world.join(&[], &[]).await;
    // Time itself is what is tested: longer than a lease, and several sweeps.
    tokio::time::sleep(Duration::from_secs(6)).await;
    gate.open();

    history::all_ended(&world, "succeeded").await;
    for run in world.accepted() {
        assert_eq!(world.provider.times(&run.input), [1, 1]);
        assert_eq!(world.api.run(&run.id).await["attempt"], 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_killed_has_its_runs_gone_on_with_when_their_leases_end() {
    let gate = Gate::closed();
    let settings = [NO_POLL];
    let plan = Plan::on(Kind::Postgres, &settings).await;
    let mut world = plan.start(first_answer_held(&gate)).await;
    for n in 0..5 {
        world.start_run(&format!("run {n}")).await;
    }
    let queued_behind = world.accepted()[0].session.clone();
    world.start_run_in(&queued_behind, "behind it").await;
    streaming(&world, 5).await;
    let other = world.join(&[], &[]).await;

    let killed = Instant::now();
    world.kill();
    world.api = other.api.clone();
    gate.open();
    for run in &world.accepted()[..5] {
        let took = asked_after(&world, &run.input, 2, killed).await;
        assert!(took < RECOVERED, "{took:?}");
    }

    history::all_ended(&world, "succeeded").await;
    for run in &world.accepted()[..5] {
        assert_eq!(world.provider.times(&run.input), [2, 1]);
        assert_eq!(world.api.run(&run.id).await["attempt"], 2);
    }
    assert_eq!(world.provider.times("behind it"), [1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stood_still_for_longer_than_its_leases_writes_nothing_when_it_wakes() {
    let gate = Gate::closed();
    let plan = Plan::on(Kind::Postgres, &[]).await;
    let mut world = plan.start(first_answer_held(&gate)).await;
    for n in 0..5 {
        world.start_run(&format!("run {n}")).await;
    }
    streaming(&world, 5).await;
    let other = world.join(&[], &[]).await;

    world.hango().stop();
    for run in world.accepted() {
        assert_eq!(other.api.ended(&run.id).await["state"], "succeeded");
    }
    let before: Vec<_> = histories(&world, &other).await;
    gate.open();
    world.hango().cont();
    until("it answers again", async || {
        (world.api.get("/readyz").await.status == 200).then_some(())
    })
    .await;
    until_true("its own answers have arrived, or were given up", || {
        let asked = world.provider.asked();
        let first = asked.iter().take(5);
        first.filter(|asked| asked.ended_at().is_some()).count() == 5
    })
    .await;
    world.start_run("another").await;

    history::all_ended(&world, "succeeded").await;
    assert_eq!(histories(&world, &other).await[..5], before);
    for run in &world.accepted()[..5] {
        let asked = world.provider.asked_for(&run.input);
        let kept = messages::calls(&world.api.messages(&run.session).await);
        assert_eq!(kept, asked[1].ids, "the old attempt's answer was stored");
        assert_eq!(world.tools.calls_of(&run.id).len(), 1);
    }
}

/// Every run and its session's messages, as the other process has them.
async fn histories(
    world: &World,
    other: &Replica,
) -> Vec<(serde_json::Value, Vec<serde_json::Value>)> {
    let mut histories = Vec::new();
    for run in world.accepted() {
        let messages = other.api.messages(&run.session).await;
        histories.push((other.api.run(&run.id).await, messages));
    }
    histories
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_start_at_once_on_an_empty_database_make_its_schema_together() {
    let plan = Plan::on(Kind::Postgres, &[]).await;
    let model = |_: &Ask| Reply::text("all done");
    let (mut world, _) = plan.unstarted(model, |_| Response::text("done")).await;
    let (first, second, third) = tokio::join!(
        world.join(&[], &[]),
        world.join(&[], &[]),
        world.join(&["--no-workers"], &[])
    );
    world.api = third.api.clone();
    world.api.create_agent().await;
    for n in 0..5 {
        world.start_run(&format!("run {n}")).await;
    }

    history::all_ended(&world, "succeeded").await;
    for replica in [&first, &second, &third] {
        replica.api.get("/readyz").await.expect(200);
    }
}
