//! A database that is not there: yet, for a while, or for this user. The process lives, says so, refuses
//! what it cannot do now, and goes on by itself.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use hango_test_database::{Cluster, Settings, Stop, TestDatabase};
use reqwest::Method;
use serde_json::json;

use super::support::api::{Answer, Api, text};
use super::support::gate::Gate;
use super::support::hango::Hango;
use super::support::history;
use super::support::home::Home;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::store::{Kind, Store};
use super::support::tools::Response;
use super::support::until::{until, until_true};
use super::support::world::{Plan, World};

/// How soon work goes on once the database accepts connections.
const BACK: Duration = Duration::from_secs(2);

/// How long a call waits at most for a database that is away, and what a busy machine takes.
const PATIENCE: Duration = Duration::from_secs(6);

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it is bound").port()
}

fn cluster() -> Cluster {
    Cluster::start(&Settings::default()).expect("there is PostgreSQL")
}

/// A plan on a database of a server of its own.
fn plan_on(cluster: &Cluster) -> Plan<'static> {
    Plan {
        store: Store::Server(cluster.url("postgres")),
        settings: &[],
        arguments: &[],
    }
}

fn is_unavailable(answer: &Answer) {
    assert_eq!(answer.status, 503, "{answer:#?}");
    assert_eq!(answer.body["code"], "unavailable", "{answer:#?}");
    assert_eq!(answer.retry_after.as_deref(), Some("1"), "{answer:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_before_its_database_waits_for_it_and_says_so() {
    let (database, listen) = (free_port(), free_port());
    let url = format!("postgres://hango@127.0.0.1:{database}/postgres");
    let listen = format!("127.0.0.1:{listen}");
    let settings = [("HANGO_LISTEN", listen.as_str())];
    let plan = Plan {
        store: Store::Server(url),
        settings: &settings,
        arguments: &[],
    };
    let model = |_: &Ask| Reply::text("all done");
    let (mut world, arguments) = plan.unstarted(model, |_| Response::text("done")).await;
    let hango = Hango::start(&world.home, &arguments);
    world.api = Api::of(&listen);
    until("it lives", async || {
        let answer = world.api.send(Method::GET, "/healthz", "", String::new());
        answer.await.is_ok_and(|it| it.status == 200).then_some(())
    })
    .await;

    let ready = world.api.get("/readyz").await;
    is_unavailable(&ready);
    assert!(text(&ready.body["detail"]).contains("store"), "{ready:#?}");
    is_unavailable(&world.api.get("/v1/me").await);
    assert_eq!(hango.printed(), "", "it said that it was ready");

    let settings = Settings {
        port: Some(database),
        ..Settings::default()
    };
    let _cluster = Cluster::start(&settings).expect("there is PostgreSQL");
    let begun = Instant::now();
    world.begin(hango).await;
    // A try, and what the first one makes there.
    assert!(begun.elapsed() < BACK + BACK, "{:?}", begun.elapsed());
    world.api.get("/readyz").await.expect(200);
    world.api.create_agent().await;
    world.start_run("one").await;
    history::all_ended(&world, "succeeded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_waits_for_its_database_ends_when_it_is_told_to() {
    let url = format!("postgres://hango@127.0.0.1:{}/postgres", free_port());
    let home = Home::of_server_on(Store::Server(url));
    let mut hango = Hango::start(&home, &["serve"]);
    until_true("it has tried", || hango.logged().contains("tried again")).await;

    hango.term();
    let (status, took) = hango.ended().await;

    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_waiting_helps_ends_a_server_with_a_reason() {
    let database = TestDatabase::new().await;
    let url: url::Url = database.url().parse().expect("it is a URL");
    let (mut nobody, mut nowhere) = (url.clone(), url);
    nobody.set_username("nobody_canary").expect("it has a host");
    nowhere.set_path("/nowhere");

    let mut behind = Home::of_server_on(Store::Server(database.url().to_owned()));
    behind.set("HANGO_AUTO_MIGRATE", "false");
    let homes = [nobody, nowhere].map(|url| Home::of_server_on(Store::Server(url.to_string())));
    let [nobody, nowhere] = homes;
    for (home, reason) in [
        (nobody, "nobody_canary"),
        (nowhere, "nowhere"),
        (behind, "hango migrate"),
    ] {
        let mut hango = Hango::start(&home, &["serve"]);
        let (status, _) = hango.ended().await;

        assert_eq!(status.code(), Some(1), "{reason}");
        until_true("it says why", || hango.logged().contains(reason)).await;
        assert_eq!(hango.printed(), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_go_on_by_themselves_after_the_database_was_restarted_in_their_middle() {
    let cluster = cluster();
    let gate = Gate::closed();
    let held = gate.clone();
    let model = move |ask: &Ask| match ask.turn {
        1 => Reply::calls([("safe", json!({"n": 1}))]).held_before_end(&held),
        _ => Reply::text("all done"),
    };
    let world = plan_on(&cluster).start(model).await;
    for n in 0..5 {
        world.start_run(&format!("run {n}")).await;
    }
    until_true("every run is in its first turn", || {
        world.provider.asked().len() == 5
    })
    .await;

    cluster.stop(Stop::Immediate).expect("it stops");
    let first = world.accepted()[0].clone();
    let begun = Instant::now();
    is_unavailable(&world.api.get(&format!("/v1/runs/{}", first.id)).await);
    let path = format!("/v1/sessions/{}/runs", first.session);
    is_unavailable(&world.api.post(&path, &json!({"input": "refused"})).await);
    is_unavailable(&world.api.get("/readyz").await);
    assert!(begun.elapsed() < 3 * PATIENCE, "{:?}", begun.elapsed());
    world.api.get("/healthz").await.expect(200);
    gate.open();
    cluster.resume().expect("it starts again");

    history::all_ended(&world, "succeeded").await;
    for run in world.accepted() {
        assert!(world.tools.calls_of(&run.id).len() <= 2);
    }
    world.api.get("/readyz").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_database_is_away_ends_when_it_is_told_to_and_loses_nothing() {
    let cluster = cluster();
    let settings = [("HANGO_DRAIN_TIMEOUT", "500ms")];
    let plan = Plan {
        settings: &settings,
        ..plan_on(&cluster)
    };
    let gate = Gate::closed();
    let model = move |ask: &Ask| match ask.time {
        1 => Reply::text("never whole").held_after(2, &gate),
        _ => Reply::text("all done"),
    };
    let mut world = plan.start(model).await;
    world.start_run("one").await;
    until_true("the run is in its turn", || {
        world.provider.asked().len() == 1
    })
    .await;

    cluster.stop(Stop::Immediate).expect("it stops");
    world.hango().term();
    let (status, took) = world.hango().ended().await;

    assert_eq!(status.code(), Some(0));
    // The drain, and what is given for writing that runs are given back.
    assert!(took < Duration::from_secs(10), "{took:?}");
    cluster.resume().expect("it starts again");
    world.restart().await;
    history::all_ended(&world, "succeeded").await;
    assert_eq!(world.provider.times("one"), [2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_claim_comes_soon_after_the_database_is_back() {
    let cluster = cluster();
    // Longer than anybody should have to wait.
    let settings = [("HANGO_RUN_POLL_INTERVAL", "10m")];
    let plan = Plan {
        settings: &settings,
        ..plan_on(&cluster)
    };
    let world = plan.start(|_: &Ask| Reply::text("all done")).await;
    let session = world.api.open_session().await;
    for round in 0..3 {
        cluster.stop(Stop::Immediate).expect("it stops");
        // It has noticed, and waits for its next try.
        is_unavailable(&world.api.get("/readyz").await);
        cluster.resume().expect("it starts again");
        let back = Instant::now();

        let input = format!("run {round}");
        let run = until("a run is accepted", async || {
            let path = format!("/v1/sessions/{session}/runs");
            let answer = world.api.post(&path, &json!({"input": input})).await;
            if answer.status == 202 {
                return Some(answer.body);
            }
            is_unavailable(&answer);
            None
        })
        .await;
        world.accepted_as(&session, text(&run["id"]), &input);
        until_true("it is claimed", || {
            !world.provider.asked_for(&input).is_empty()
        })
        .await;
        assert!(back.elapsed() < BACK, "{:?}", back.elapsed());
        world.api.ended(&text(&run["id"])).await;
    }
    history::all_ended(&world, "succeeded").await;
}

/// Posts runs until it is told to stop; every refusal is one that says to try again.
async fn load(world: &World, stop: &AtomicBool) {
    let session = until("a session is opened", async || {
        let answer = world
            .api
            .post("/v1/sessions", &json!({"agent": "agent"}))
            .await;
        (answer.status == 201).then(|| text(&answer.body["id"]))
    })
    .await;
    let path = format!("/v1/sessions/{session}/runs");
    let mut n = 0;
    while !stop.load(Ordering::SeqCst) {
        let input = format!("run {n} of {session}");
        let answer = world.api.post(&path, &json!({"input": input})).await;
        match answer.status {
            202 => {
                world.accepted_as(&session, text(&answer.body["id"]), &input);
                n += 1;
            }
            429 => {}
            _ => is_unavailable(&answer),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn under_load_a_restarted_database_costs_time_and_no_run() {
    let cluster = cluster();
    let model = |ask: &Ask| match ask.turn {
        1 => Reply::calls([("keyed", json!({"n": 1}))]).paced(Duration::from_millis(5)),
        _ => Reply::text("all done").paced(Duration::from_millis(5)),
    };
    let world = plan_on(&cluster).start(model).await;
    let other = world.join(&[], &[]).await;
    let (cluster, stop) = (Arc::new(cluster), AtomicBool::new(false));
    let clients = join_all((0..4).map(|_| load(&world, &stop)));
    let restarts = async {
        for round in 1..=4 {
            until_true("runs are executed", || world.accepted().len() > 20 * round).await;
            let cluster = Arc::clone(&cluster);
            let restarted = tokio::task::spawn_blocking(move || {
                cluster.stop(Stop::Immediate)?;
                std::thread::sleep(Duration::from_millis(300));
                cluster.resume()
            });
            let restarted = restarted.await.expect("it does not panic");
            restarted.expect("it starts again");
        }
        stop.store(true, Ordering::SeqCst);
    };
    tokio::join!(clients, restarts);

    history::all_ended(&world, "succeeded").await;
    other.api.get("/readyz").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_work_beside_running_servers_and_say_when_the_database_is_away() {
    let plan = Plan::on(Kind::Postgres, &[]).await;
    let world: World = plan.start(|_: &Ask| Reply::text("all done")).await;

    let looked = world.home.run(&["migrate", "--dry-run"]);
    assert_eq!(
        (looked.status, looked.out.as_str()),
        (Some(0), "nothing to do\n")
    );
    assert_eq!(world.home.run(&["migrate"]).out, "nothing to do\n");
    let create = ["admin", "tenant", "create", "--slug", "acme"];
    let create = [
        &create[..],
        &["--owner-email", "owner@acme.example", "--json"],
    ]
    .concat();
    let made = world.home.run(&create);
    assert_eq!(made.status, Some(0), "{}", made.err);
    let made: serde_json::Value = serde_json::from_str(&made.out).expect("it is JSON");
    let acme = world.api.with_key(made["api_key"]["key"].as_str());
    acme.get("/v1/me").await.expect(200);

    let quickstart = world.home.run(&["quickstart", "--once"]);
    assert_eq!(quickstart.status, Some(2), "{quickstart:?}");
    assert!(quickstart.err.contains("hango serve"), "{}", quickstart.err);
    let away = format!("postgres://me:canary@127.0.0.1:{}/hango", free_port());
    let home = Home::of_server_on(Store::Server(away));
    for command in [&["migrate"][..], &["admin", "tenant", "list"], &["config"]] {
        let ended = home.run(command);
        let expected = i32::from(command != ["config"]);
        assert_eq!(ended.status, Some(expected), "{command:?} {ended:?}");
        assert!(!ended.err.contains("canary") && !ended.out.contains("canary"));
    }
}

#[test]
fn half_a_server_on_an_embedded_store_is_refused() {
    let home = Home::of_server();

    for flag in ["--no-api", "--no-workers"] {
        let ended = home.run(&["serve", flag]);

        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.err.contains(flag), "{}", ended.err);
        assert!(!home.file().exists());
    }
}
