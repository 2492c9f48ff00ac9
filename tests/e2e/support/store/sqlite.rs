//! The SQLite file from outside, and its lock.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};

use super::{EventRow, RunRow};

async fn open(path: &Path, read_only: bool) -> SqliteConnection {
    SqliteConnectOptions::new()
        .filename(path)
        .read_only(read_only)
        .busy_timeout(Duration::from_secs(10))
        .connect()
        .await
        .expect("the store can be opened")
}

/// Takes the file's lock.
pub(super) async fn freeze(path: &Path) -> SqliteConnection {
    let mut connection = open(path, false).await;
    control(&mut connection, "begin immediate").await;
    connection
}

/// Gives it back; nothing was changed.
pub(super) async fn thaw(mut connection: SqliteConnection) {
    control(&mut connection, "rollback").await;
    connection.close().await.expect("the store can be closed");
}

async fn control(connection: &mut SqliteConnection, statement: &'static str) {
    let done = sqlx::query(statement).execute(connection).await;
    done.expect("the store answers");
}

/// Reads a run's row.
pub(super) async fn run_row(path: &Path, run: &str) -> RunRow {
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
pub(super) async fn take_back(path: &Path, run: &str) {
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
pub(super) async fn events(path: &Path, run: &str) -> Vec<EventRow> {
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
pub(super) async fn count(path: &Path, table: &str) -> i64 {
    let mut connection = open(path, true).await;
    let count = sqlx::query_scalar(super::counting(table))
        .fetch_one(&mut connection)
        .await
        .expect("the rows can be counted");
    connection.close().await.expect("the store can be closed");
    count
}

/// Asks for a running run's end.
pub(super) async fn ask_for_end(path: &Path, run: &str) {
    let mut connection = open(path, false).await;
    let done = sqlx::query(
        "update runs set cancel_requested_at = started_at where id = ? and state = 'running'",
    )
    .bind(run)
    .execute(&mut connection)
    .await;
    assert_eq!(done.expect("the store answers").rows_affected(), 1);
    connection.close().await.expect("the store can be closed");
}

/// Lets a session's runs look as if all of them had happened an hour earlier.
pub(super) async fn age_runs(path: &Path, session: &str) {
    let mut connection = open(path, false).await;
    let done = sqlx::query(
        "update runs set created_at = created_at - 3600000000, \
             started_at = started_at - 3600000000, finished_at = finished_at - 3600000000 \
         where session_id = ?",
    )
    .bind(session)
    .execute(&mut connection)
    .await;
    assert_ne!(done.expect("the store answers").rows_affected(), 0);
    connection.close().await.expect("the store can be closed");
}

/// Lets a session look as if nobody had changed it, or said anything in it, for an hour.
pub(super) async fn age_session(path: &Path, session: &str) {
    let mut connection = open(path, false).await;
    for statement in [
        "update messages set created_at = created_at - 3600000000 where session_id = ?",
        "update sessions set created_at = created_at - 3600000000, \
             updated_at = updated_at - 3600000000 where id = ?",
    ] {
        let done = sqlx::query(statement)
            .bind(session)
            .execute(&mut connection);
        assert_ne!(done.await.expect("the store answers").rows_affected(), 0);
    }
    connection.close().await.expect("the store can be closed");
}

/// How many runs each process is executing.
pub(super) async fn running(path: &Path) -> Vec<i64> {
    let mut connection = open(path, true).await;
    let running = sqlx::query_scalar(
        "select count(*) from runs where state = 'running' group by owner_id order by 1",
    )
    .fetch_all(&mut connection)
    .await
    .expect("the rows can be counted");
    connection.close().await.expect("the store can be closed");
    running
}
