//! Runs of several processes: two stores on one database, and somebody who locks a row for long.

mod claims;
mod clock;
mod leases;
mod line;
mod writes;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hango_conformance::{Fixture, ManualClock, Place, TTL, no_limits};
use hango_domain::queue::ClaimLimits;
use hango_domain::{OwnerId, RunId};
use hango_ports::run_store::{ClaimRequest, Claimed};
use hango_ports::{Clock, Stores};
use hango_postgres::{Options, PostgresStore};
use hango_test_database::TestDatabase;
use sqlx::{Connection, PgConnection};

/// What takes longer does not happen at all.
const BOUND: Duration = Duration::from_secs(30);

/// Two processes on one database, which share a clock.
struct Processes {
    /// The first process.
    fixture: Fixture,
    /// The second one.
    other: Stores,
    both: [Arc<PostgresStore>; 2],
    database: TestDatabase,
}

impl Processes {
    async fn start() -> Self {
        Self::by(Some(Arc::new(ManualClock::default()))).await
    }

    /// Processes that go by `clock`, or by the database's own.
    async fn by(clock: Option<Arc<ManualClock>>) -> Self {
        let database = TestDatabase::new().await;
        let open = || {
            let options = Options {
                clock: clock.clone().map(|clock| clock as Arc<dyn Clock>),
                ..Options::new(database.url())
            };
            Arc::new(PostgresStore::open(options).expect("the URL is one of PostgreSQL"))
        };
        let (first, second) = (open(), open());
        first.migrate().await.expect("the schema is brought up");
        Self {
            fixture: Fixture::new(first.stores(), clock.unwrap_or_default()),
            other: second.stores(),
            both: [first, second],
            database,
        }
    }

    /// Ends both processes: what the server counts of them is counted then.
    async fn end(&self) {
        for store in &self.both {
            store.close().await;
        }
    }

    /// A connection of somebody who is no process of hango.
    async fn somebody(&self) -> PgConnection {
        let conn = PgConnection::connect(self.database.url()).await;
        conn.expect("the server is there")
    }

    /// A number that a statement counts.
    async fn count(&self, statement: &'static str) -> i64 {
        let mut conn = self.somebody().await;
        let counted = sqlx::query_scalar(statement).fetch_one(&mut conn).await;
        counted.expect("the statement works")
    }

    /// Returns when somebody waits for a lock.
    async fn somebody_waits(&self) {
        let waiting = "select count(*) from pg_stat_activity
             where datname = current_database() and wait_event_type = 'Lock'";
        self.until(waiting).await;
    }

    /// Returns when a statement counts something.
    async fn until(&self, statement: &'static str) {
        let until = async {
            while self.count(statement).await == 0 {
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(BOUND, until).await;
        waited.expect("it comes to be");
    }

    /// Runs, each in a session of its own.
    async fn queue(&self, place: &Place, runs: usize) -> BTreeSet<RunId> {
        let mut queued = BTreeSet::new();
        for _ in 0..runs {
            let session = self.fixture.session(&place.owner, place.agent.id).await;
            let new = self.fixture.new_run(&place.owner, session.id);
            queued.insert(self.fixture.accept(new).await.id);
        }
        queued
    }
}

async fn claim(stores: &Stores, owner: OwnerId, limits: ClaimLimits) -> Vec<Claimed> {
    let request = ClaimRequest {
        owner,
        ttl: TTL,
        only: None,
        limits,
    };
    let claimed = stores.runs.claim(request).await;
    claimed.expect("losing a claim is not an error").won
}

fn batches(runs: u32) -> ClaimLimits {
    ClaimLimits {
        runs,
        ..no_limits()
    }
}
