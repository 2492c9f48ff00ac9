//! Hints between processes over a real database.

use std::time::{Duration, Instant};

use hango_domain::RunId;
use hango_ports::WakeUp;
use hango_ports::wake_up::Hint;
use hango_postgres::{Options, PostgresStore, PostgresWakeUp};
use hango_test_database::{Cluster, Settings, Stop, TestDatabase};
use sqlx::postgres::PgListener;
use tokio::time::timeout;
use uuid::Uuid;

/// The longest that anything may take, on a busy machine.
const BOUND: Duration = Duration::from_secs(30);

/// One process.
struct Process {
    store: PostgresStore,
    wake_up: PostgresWakeUp,
}

impl Process {
    fn start(url: &str, me: u128) -> Self {
        let store = PostgresStore::open(Options::new(url)).expect("nothing is asked yet");
        let wake_up = store.wake_up(Uuid::from_u128(me));
        Self { store, wake_up }
    }

    /// One that hears others from now on.
    async fn listening(url: &str, me: u128) -> Self {
        let process = Self::start(url, me);
        assert_eq!(process.hears().await, Hint::Missed, "it has just begun");
        process
    }

    async fn hears(&self) -> Hint {
        let heard = timeout(BOUND, self.wake_up.next()).await;
        heard.expect("something is heard")
    }

    async fn end(self) {
        self.wake_up.close().await;
        self.store.close().await;
    }
}

fn cancel(run: u128) -> Hint {
    Hint::CancelRequested(RunId(Uuid::from_u128(run)))
}

#[tokio::test]
async fn processes_hear_each_other_and_not_themselves() {
    let database = TestDatabase::new().await;
    let first = Process::listening(database.url(), 1).await;
    let second = Process::listening(database.url(), 2).await;

    first.wake_up.announce(Hint::Queued);
    assert_eq!(second.hears().await, Hint::Queued);
    second.wake_up.announce(cancel(7));

    // Its own came first, and was not heard.
    assert_eq!(first.hears().await, cancel(7));
    first.end().await;
    second.end().await;
}

#[tokio::test]
async fn databases_of_one_server_do_not_hear_each_other() {
    let (here, elsewhere) = (TestDatabase::new().await, TestDatabase::new().await);
    let first = Process::start(here.url(), 1);
    let second = Process::listening(here.url(), 2).await;
    let stranger = Process::start(elsewhere.url(), 3);

    stranger.wake_up.announce(Hint::Queued);
    stranger.end().await;
    first.wake_up.announce(cancel(7));

    assert_eq!(second.hears().await, cancel(7));
}

#[tokio::test]
async fn many_hints_are_few_notifications_and_say_everything() {
    let database = TestDatabase::new().await;
    let process = Process::start(database.url(), 1);
    let mut wire = PgListener::connect(database.url())
        .await
        .expect("it is there");
    wire.listen("hango").await.expect("it listens");

    for run in 0..1000 {
        process.wake_up.announce(Hint::Queued);
        process.wake_up.announce(cancel(run % 50));
    }
    // The last one is sent, and nothing after it.
    process.end().await;
    let end = Process::start(database.url(), 2);
    end.wake_up.announce(Hint::Missed);
    let mut payloads = Vec::new();
    loop {
        let heard = timeout(BOUND, wire.recv()).await.expect("it is sent");
        let payload = heard.expect("the server is there").payload().to_owned();
        if payload.contains("\"missed\":true") {
            break;
        }
        payloads.push(payload);
    }

    assert!((1..10).contains(&payloads.len()), "{payloads:?}");
    let all = payloads.concat();
    assert!(all.contains("\"queued\":true"), "{all}");
    for run in 0..50 {
        assert!(
            all.contains(&Uuid::from_u128(run).to_string()),
            "{run} in {all}"
        );
    }
}

#[tokio::test]
async fn a_listener_whose_connection_is_ended_listens_again_and_says_that_it_missed_something() {
    let database = TestDatabase::new().await;
    let first = Process::start(database.url(), 1);
    let second = Process::listening(database.url(), 2).await;

    let ended = database.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity \
         where datname = current_database() and query ilike 'listen%'",
    );
    ended.await.expect("the server does that");

    assert_eq!(second.hears().await, Hint::Missed);
    first.wake_up.announce(Hint::Queued);
    assert_eq!(second.hears().await, Hint::Queued);
}

#[tokio::test]
async fn a_database_that_is_away_holds_nobody_up_and_is_listened_to_when_it_is_back() {
    let cluster = Cluster::start(&Settings::default()).expect("there is PostgreSQL");
    let url = cluster.url("postgres");
    let first = Process::start(&url, 1);
    let second = Process::listening(&url, 2).await;
    cluster.stop(Stop::Immediate).expect("it stops");

    let begun = Instant::now();
    for run in 0..10_000 {
        first.wake_up.announce(Hint::Queued);
        first.wake_up.announce(cancel(run));
    }
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    let deaf = timeout(Duration::from_millis(500), second.wake_up.next()).await;
    assert!(deaf.is_err(), "{deaf:?}");

    cluster.resume().expect("it starts again");
    assert_eq!(second.hears().await, Hint::Missed);
    // What was not sent while it was away is sent now, or not at all.
    first.wake_up.announce(cancel(77_777));
    while second.hears().await != cancel(77_777) {}
}

#[tokio::test]
async fn a_process_that_ends_without_its_database_does_not_wait_for_it() {
    let process = Process::start("postgres://nobody@127.0.0.1:1/nothing", 1);
    process.wake_up.announce(Hint::Queued);

    let begun = Instant::now();
    process.wake_up.close().await;

    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
}
