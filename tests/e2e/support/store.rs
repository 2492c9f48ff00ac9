//! The store from outside: what is in it, and a lock that freezes hango before a commit.

mod postgres;
mod sqlite;

use std::path::PathBuf;
use std::sync::Arc;

use hango_test_database::TestDatabase;
use serde_json::Value;
use sqlx::{PgConnection, SqliteConnection};

/// A kind of store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A file, which belongs to one process.
    Sqlite,
    /// A database, for any number of processes.
    Postgres,
}

/// Makes a test of each of these functions on each kind of store.
macro_rules! on_both_stores {
    ($($name:ident)*) => {
        mod sqlite {
            use crate::support::store::Kind;
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(Kind::Sqlite).await;
            })*
        }

        mod postgres {
            use crate::support::store::Kind;
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(Kind::Postgres).await;
            })*
        }
    };
}
pub(crate) use on_both_stores;

/// A store; its clones are the same one.
#[derive(Clone)]
pub(crate) enum Store {
    /// A file.
    Sqlite(PathBuf),
    /// A database of this test's own.
    Postgres(Arc<TestDatabase>),
    /// A database of a server that the test stops and starts.
    Server(String),
}

/// Where a run's row stands.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct RunRow {
    /// The state.
    pub(crate) state: String,
    /// Who has it.
    pub(crate) owner: Option<String>,
    /// Whether there is a lease.
    pub(crate) leased: bool,
    /// How many turns are complete.
    pub(crate) resume_turn: i64,
    /// How many tries of the turn's model call have failed.
    pub(crate) tries: i64,
}

/// An event of a run.
#[derive(Debug)]
pub(crate) struct EventRow {
    /// Its number.
    pub(crate) n: i64,
    /// The attempt that wrote it.
    pub(crate) attempt: i64,
    /// Its kind and what it tells.
    pub(crate) kind: Value,
}

/// While it is held nobody commits a change of a run.
pub(crate) enum Frozen {
    /// By the file's lock.
    Sqlite(SqliteConnection),
    /// By the tables' locks.
    Postgres(PgConnection),
}

impl Frozen {
    /// Lets everybody commit again; nothing was changed.
    pub(crate) async fn release(self) {
        match self {
            Self::Sqlite(connection) => sqlite::thaw(connection).await,
            Self::Postgres(connection) => postgres::thaw(connection).await,
        }
    }

    /// Lets everybody commit again who still lives. What a process that is gone had asked a server for is
    /// not done, as it would not be had the machine failed with it.
    pub(crate) async fn release_to_the_living(self) {
        match self {
            Self::Sqlite(connection) => sqlite::thaw(connection).await,
            Self::Postgres(connection) => postgres::thaw_for_the_living(connection).await,
        }
    }
}

/// What `$function` of the store's kind says.
macro_rules! of_its_kind {
    ($store:expr, $function:ident $(, $argument:expr)*) => {
        match $store {
            Store::Sqlite(file) => sqlite::$function(file $(, $argument)*).await,
            Store::Postgres(database) => postgres::$function(database.url() $(, $argument)*).await,
            Store::Server(url) => postgres::$function(url $(, $argument)*).await,
        }
    };
}

impl Store {
    /// Its URL, as hango wants to be told.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Sqlite(file) => format!("sqlite://{}", file.display()),
            Self::Postgres(database) => database.url().to_owned(),
            Self::Server(url) => url.clone(),
        }
    }

    /// Freezes everybody before the next commit of a change of a run.
    pub(crate) async fn freeze(&self) -> Frozen {
        match self {
            Self::Sqlite(file) => Frozen::Sqlite(sqlite::freeze(file).await),
            Self::Postgres(database) => Frozen::Postgres(postgres::freeze(database.url()).await),
            Self::Server(url) => Frozen::Postgres(postgres::freeze(url).await),
        }
    }

    /// Reads a run's row.
    pub(crate) async fn run_row(&self, run: &str) -> RunRow {
        of_its_kind!(self, run_row, run)
    }

    /// Takes a run back as the sweep of another process would whose clock runs ahead.
    pub(crate) async fn take_back(&self, run: &str) {
        of_its_kind!(self, take_back, run);
    }

    /// Asks for a running run's end as another process would whose hint was lost.
    pub(crate) async fn ask_for_end(&self, run: &str) {
        of_its_kind!(self, ask_for_end, run);
    }

    /// Lets a session's runs look as if all of them had happened an hour earlier.
    pub(crate) async fn age_runs(&self, session: &str) {
        of_its_kind!(self, age_runs, session);
    }

    /// Lets a session look as if nobody had changed it, or said anything in it, for an hour.
    pub(crate) async fn age_session(&self, session: &str) {
        of_its_kind!(self, age_session, session);
    }

    /// Reads a run's events.
    pub(crate) async fn events(&self, run: &str) -> Vec<EventRow> {
        of_its_kind!(self, events, run)
    }

    /// Counts the rows of a table.
    pub(crate) async fn count(&self, table: &str) -> i64 {
        of_its_kind!(self, count, table)
    }

    /// How many connections all servers together have; `None` where they have none but files.
    pub(crate) async fn connections(&self) -> Option<i64> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(database) => Some(postgres::connections(database.url()).await),
            Self::Server(url) => Some(postgres::connections(url).await),
        }
    }

    /// How many runs each process is executing.
    pub(crate) async fn running(&self) -> Vec<i64> {
        of_its_kind!(self, running)
    }
}

/// The statement that counts a table's rows.
fn counting(table: &str) -> &'static str {
    match table {
        "tenants" => "select count(*) from tenants",
        "agents" => "select count(*) from agents",
        "sessions" => "select count(*) from sessions",
        "runs" => "select count(*) from runs",
        "audit_events" => "select count(*) from audit_events",
        other => panic!("nobody counts {other}"),
    }
}
