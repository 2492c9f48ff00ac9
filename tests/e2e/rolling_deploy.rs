//! A deploy under load: a newer build's migration is there, the replicas are restarted one after the
//! other, and nobody notices. Then what only a newer build can read.
//!
//! There is one build here, so it plays the older one: what the newer one would have left is put into the
//! database by hand.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::support::api::{Answer, Api, has_ended, text};
use super::support::gate::Gate;
use super::support::hango::Hango;
use super::support::history;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::store::{Kind, Store};
use super::support::tools::Response;
use super::support::until::{until, until_true};
use super::support::world::{Plan, World};

/// Clients that work at once.
const CLIENTS: usize = 6;

/// Runs that have to end between two restarts.
const BETWEEN: usize = 10;

/// A migration as the next build would leave it: a column that it may do without, a table, and the note.
const NEWER: &str = "
    begin;
    alter table runs add column priority int;
    create table parked (run_id uuid primary key references runs);
    insert into _sqlx_migrations (version, description, success, checksum, execution_time)
        values (999, 'from the future', true, '\\x00', 0);
    commit;";

/// The fleet's addresses, as a balancer has them, and what its clients came to.
struct Fleet {
    replicas: Mutex<Vec<Api>>,
    next: AtomicUsize,
    ended: AtomicUsize,
    stop: AtomicBool,
}

impl Fleet {
    fn of(replicas: Vec<Api>) -> Self {
        Self {
            replicas: Mutex::new(replicas),
            next: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        }
    }

    /// The replica whose turn it is.
    fn pick(&self) -> Api {
        let replicas = self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        replicas[turn % replicas.len()].clone()
    }

    fn replace(&self, index: usize, api: Api) {
        let mut replicas = self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        replicas[index] = api;
    }

    /// Asks one after the other until one answers who is not on its way out.
    async fn ask(&self, method: Method, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        until("a replica answers", async || {
            let api = self.pick();
            let answered = api.send(method.clone(), path, "application/json", body.clone());
            answered.await.ok().filter(|answer| answer.status != 503)
        })
        .await
    }

    /// A client: one run after the other, each waited for.
    async fn work(&self, world: &World, client: usize) {
        for n in 0.. {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let agent = json!({"agent": "agent"});
            let session = self.ask(Method::POST, "/v1/sessions", &agent).await;
            let session = text(&session.expect(201)["id"]);
            let input = format!("client {client}, run {n}");
            let path = format!("/v1/sessions/{session}/runs");
            let run = self
                .ask(Method::POST, &path, &json!({"input": input}))
                .await;
            let run = world.accepted_as(&session, text(&run.expect(202)["id"]), &input);
            let path = format!("/v1/runs/{}?wait_ms=2000", run.id);
            until("the run ends", async || {
                let answer = self.ask(Method::GET, &path, &Value::Null).await;
                Some(answer.expect(200)).filter(has_ended)
            })
            .await;
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until more runs have ended.
    async fn has_worked(&self) {
        let before = self.ended.load(Ordering::Relaxed);
        until_true("runs end", || {
            self.ended.load(Ordering::Relaxed) >= before + BETWEEN
        })
        .await;
    }
}

/// Two turns with a tool between them.
fn model(ask: &Ask) -> Reply {
    match ask.turn {
        1 => Reply::calls([("unsafe", json!({"n": 1}))]),
        _ => Reply::text("all done"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_are_restarted_on_a_newer_schema_one_by_one_and_no_client_notices() {
    let plan = Plan::on(Kind::Postgres, &[]).await;
    let Store::Postgres(database) = plan.store.clone() else {
        panic!("it is one of PostgreSQL")
    };
    let (mut world, _) = plan.unstarted(model, |_| Response::text("done")).await;
    world.tools.open();
    let homes: Vec<_> = (0..3).map(|_| world.home.another()).collect();
    let mut processes: Vec<_> = homes
        .iter()
        .map(|home| Hango::start(home, &["serve"]))
        .collect();
    let mut replicas = Vec::new();
    for process in &mut processes {
        replicas.push(Api::of(&process.address().await));
    }
    world.api = replicas[0].clone();
    world.api.create_agent().await;
    let fleet = Fleet::of(replicas);

    let deploy = async {
        fleet.has_worked().await;
        database.execute(NEWER).await.expect("it only adds");
        for (index, home) in homes.iter().enumerate() {
            fleet.has_worked().await;
            processes[index].term();
            let (status, _) = processes[index].ended().await;
            assert_eq!(status.code(), Some(0));
            processes[index] = Hango::start(home, &["serve"]);
            let address = processes[index].address().await;
            let log = processes[index].logged();
            assert!(log.contains("a newer build made the schema"), "{log}");
            assert!(log.contains("999"), "{log}");
            fleet.replace(index, Api::of(&address));
        }
        fleet.has_worked().await;
        fleet.stop.store(true, Ordering::Relaxed);
    };
    let clients = join_all((0..CLIENTS).map(|client| fleet.work(&world, client)));
    tokio::join!(deploy, clients);

    world.api = fleet.pick();
    history::all_ended(&world, "succeeded").await;
    for run in world.accepted() {
        assert_eq!(world.tools.calls_of(&run.id).len(), 1);
    }
    // Administration works beside it, and taking steps back is not for a build that does not know them.
    let listed = homes[0].run(&["admin", "tenant", "list"]);
    assert_eq!(listed.status, Some(0), "{}", listed.err);
    assert!(listed.err.contains("999"), "{}", listed.err);
    let down = homes[0].run(&["migrate", "--down", "1"]);
    assert_eq!(down.status, Some(1), "{}", down.err);
    assert!(down.err.contains("use a newer one"), "{}", down.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_only_a_newer_build_can_read_waits_for_it_unharmed() {
    let gate = Gate::closed();
    let held = gate.clone();
    let model = move |_: &Ask| Reply::text("all done").held_before_end(&held);
    let plan = Plan::on(Kind::Postgres, &[]).await;
    let Store::Postgres(database) = plan.store.clone() else {
        panic!("it is one of PostgreSQL")
    };
    let world = plan.start(model).await;
    let first = world.start_run("the first of its session").await;
    let newer = world.start_run_in(&first.session, "a newer build's").await;
    let version = async |change: &str| {
        let id = &newer.id;
        let update =
            format!("update runs set state_version = state_version {change} where id = '{id}'");
        database.execute(&update).await.expect("it is there");
    };
    version("+ 1").await;

    gate.open();
    world.api.ended(&first.id).await;
    // What is accepted behind it is claimed, in rounds that pass it over.
    for n in 0..3 {
        let other = world.start_run(&format!("run {n}")).await;
        world.api.ended(&other.id).await;
    }

    let waiting = world.api.run(&newer.id).await;
    assert_eq!(waiting["state"], "queued", "{waiting:#}");
    assert_eq!(world.provider.times(&newer.input), Vec::<usize>::new());
    version("- 1").await;
    history::all_ended(&world, "succeeded").await;
}
