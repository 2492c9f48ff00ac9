//! The SQLite file from outside: what is in it, and its lock, which freezes hango before a commit.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};

async fn open(path: &Path, read_only: bool) -> SqliteConnection {
    SqliteConnectOptions::new()
        .filename(path)
        .read_only(read_only)
        .busy_timeout(Duration::from_secs(10))
        .connect()
        .await
        .expect("the store can be opened")
}

/// The lock of a store's file. While it is held nobody commits.
pub(crate) struct WriteLock(SqliteConnection);

impl WriteLock {
    /// Takes it.
    pub(crate) async fn take(path: &Path) -> Self {
        let mut connection = open(path, false).await;
        control(&mut connection, "begin immediate").await;
        Self(connection)
    }

    /// Gives it back; nothing was changed.
    pub(crate) async fn release(mut self) {
        control(&mut self.0, "rollback").await;
        self.0.close().await.expect("the store can be closed");
    }
}

async fn control(connection: &mut SqliteConnection, statement: &'static str) {
    let done = sqlx::query(statement).execute(connection).await;
    done.expect("the store answers");
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

/// Reads a run's row.
pub(crate) async fn run_row(path: &Path, run: &str) -> RunRow {
    let mut connection = open(path, true).await;
    let row = sqlx::query(
        "select state, owner_id, lease_expires_at is not null as leased, resume_turn, tries \
         from runs where id = ?",
    )
    .bind(run)
    .fetch_one(&mut connection)
    .await
    .expect("the run is there");
    let row = RunRow {
        state: row.get("state"),
        owner: row.get("owner_id"),
        leased: row.get("leased"),
        resume_turn: row.get("resume_turn"),
        tries: row.get("tries"),
    };
    connection.close().await.expect("the store can be closed");
    row
}

/// Takes a run back as the sweep of another process would whose clock runs ahead.
pub(crate) async fn take_back(path: &Path, run: &str) {
    let mut connection = open(path, false).await;
    control(&mut connection, "begin immediate").await;
    for statement in [
        "update runs set state = 'queued', owner_id = null, lease_expires_at = null, \
             last_event = last_event + 1, stalled_attempts = stalled_attempts + 1 where id = ?",
        "update sessions set running_run = null where running_run = ?",
        "insert into events (run_id, n, turn, attempt, at, version, kind) \
         select id, last_event, begun_turn, attempt, started_at, 1, \
             '{\"type\":\"run.requeued\",\"reason\":\"lease_expired\"}' from runs where id = ?",
    ] {
        let done = sqlx::query(statement)
            .bind(run)
            .execute(&mut connection)
            .await;
        assert_eq!(done.expect("the store answers").rows_affected(), 1);
    }
    control(&mut connection, "commit").await;
    connection.close().await.expect("the store can be closed");
}

/// Reads a run's events.
pub(crate) async fn events(path: &Path, run: &str) -> Vec<EventRow> {
    let mut connection = open(path, true).await;
    let rows = sqlx::query("select n, attempt, kind from events where run_id = ? order by n")
        .bind(run)
        .fetch_all(&mut connection)
        .await
        .expect("the events can be read");
    connection.close().await.expect("the store can be closed");
    let event = |row: &sqlx::sqlite::SqliteRow| EventRow {
        n: row.get("n"),
        attempt: row.get("attempt"),
        kind: serde_json::from_str(row.get("kind")).expect("kinds are JSON"),
    };
    rows.iter().map(event).collect()
}

/// Counts the rows of a table.
pub(crate) async fn count(path: &Path, table: &str) -> i64 {
    let mut connection = open(path, true).await;
    let statement = match table {
        "tenants" => "select count(*) from tenants",
        "agents" => "select count(*) from agents",
        "sessions" => "select count(*) from sessions",
        "runs" => "select count(*) from runs",
        other => panic!("nobody counts {other}"),
    };
    let count = sqlx::query_scalar(statement)
        .fetch_one(&mut connection)
        .await
        .expect("the rows can be counted");
    connection.close().await.expect("the store can be closed");
    count
}
