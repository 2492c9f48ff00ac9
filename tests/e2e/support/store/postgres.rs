//! A PostgreSQL database from outside, and locks of its tables.

use serde_json::Value;
use sqlx::{Connection, PgConnection, Row};

use super::{EventRow, RunRow};

async fn open(url: &str) -> PgConnection {
    let opened = PgConnection::connect(url).await;
    opened.expect("the store can be opened")
}

async fn control(connection: &mut PgConnection, statement: &'static str) {
    let done = sqlx::raw_sql(statement).execute(connection).await;
    done.expect("the store answers");
}

async fn close(connection: PgConnection) {
    connection.close().await.expect("the store can be closed");
}

/// Takes locks that every change of a run or a session waits for.
pub(super) async fn freeze(url: &str) -> PgConnection {
    let mut connection = open(url).await;
    control(
        &mut connection,
        "begin; lock table sessions, runs in exclusive mode",
    )
    .await;
    connection
}

/// Gives them back; nothing was changed.
pub(super) async fn thaw(mut connection: PgConnection) {
    control(&mut connection, "rollback").await;
    close(connection).await;
}

/// Ends whoever waits for them, then gives them back.
pub(super) async fn thaw_for_the_living(mut connection: PgConnection) {
    control(
        &mut connection,
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity \
         where pg_backend_pid() = any (pg_blocking_pids(pid))",
    )
    .await;
    thaw(connection).await;
}

/// Reads a run's row.
pub(super) async fn run_row(url: &str, run: &str) -> RunRow {
    let mut connection = open(url).await;
    let row = sqlx::query(
        "select state, owner_id::text, lease_expires_at is not null as leased, \
             resume_turn::bigint, tries::bigint \
         from runs where id = $1::uuid",
    )
    .bind(run)
    .fetch_one(&mut connection)
    .await
    .expect("the run is there");
    close(connection).await;
    RunRow {
        state: row.get("state"),
        owner: row.get("owner_id"),
        leased: row.get("leased"),
        resume_turn: row.get("resume_turn"),
        tries: row.get("tries"),
    }
}

/// Takes a run back as the sweep of another process would whose clock runs ahead.
pub(super) async fn take_back(url: &str, run: &str) {
    let mut connection = open(url).await;
    control(&mut connection, "begin").await;
    for statement in [
        "update sessions set running_run = null where running_run = $1::uuid",
        "update runs set state = 'queued', owner_id = null, lease_expires_at = null, \
             last_event = last_event + 1, stalled_attempts = stalled_attempts + 1 \
         where id = $1::uuid",
        "insert into events (run_id, n, attempt, at, version, told) \
         select id, last_event, attempt, started_at, 1, json_build_array(json_build_object( \
             'turn', begun_turn, 'type', 'run.requeued', 'reason', 'lease_expired')) \
         from runs where id = $1::uuid",
    ] {
        let done = sqlx::query(statement).bind(run).execute(&mut connection);
        let done = done.await.expect("the store answers");
        assert_eq!(done.rows_affected(), 1);
    }
    control(&mut connection, "commit").await;
    close(connection).await;
}

/// Asks for a running run's end.
pub(super) async fn ask_for_end(url: &str, run: &str) {
    let mut connection = open(url).await;
    let done = sqlx::query(
        "update runs set cancel_requested_at = now() where id = $1::uuid and state = 'running'",
    )
    .bind(run)
    .execute(&mut connection)
    .await;
    assert_eq!(done.expect("the store answers").rows_affected(), 1);
    close(connection).await;
}

/// Lets a session's runs look as if all of them had happened an hour earlier.
pub(super) async fn age_runs(url: &str, session: &str) {
    let mut connection = open(url).await;
    let done = sqlx::query(
        "update runs set created_at = created_at - interval '1 hour', \
             started_at = started_at - interval '1 hour', \
             finished_at = finished_at - interval '1 hour' \
         where session_id = $1::uuid",
    )
    .bind(session)
    .execute(&mut connection)
    .await;
    assert_ne!(done.expect("the store answers").rows_affected(), 0);
    close(connection).await;
}

/// Lets a session look as if nobody had changed it, or said anything in it, for an hour.
pub(super) async fn age_session(url: &str, session: &str) {
    let mut connection = open(url).await;
    for statement in [
        "update messages set created_at = created_at - interval '1 hour' \
         where session_id = $1::uuid",
        "update sessions set created_at = created_at - interval '1 hour', \
             updated_at = updated_at - interval '1 hour' where id = $1::uuid",
    ] {
        let done = sqlx::query(statement)
            .bind(session)
            .execute(&mut connection);
        assert_ne!(done.await.expect("the store answers").rows_affected(), 0);
    }
    close(connection).await;
}

/// Reads a run's events: each row has those of one write, the last of which has the row's number.
pub(super) async fn events(url: &str, run: &str) -> Vec<EventRow> {
    let mut connection = open(url).await;
    let rows = sqlx::query(
        "select n, attempt::bigint, told::text from events where run_id = $1::uuid order by n",
    )
    .bind(run)
    .fetch_all(&mut connection)
    .await
    .expect("the events can be read");
    close(connection).await;
    let mut events = Vec::new();
    for row in rows {
        let told: Vec<Value> = serde_json::from_str(row.get("told")).expect("they are JSON");
        let (last, attempt): (i64, i64) = (row.get("n"), row.get("attempt"));
        let first = last + 1 - i64::try_from(told.len()).expect("they are few");
        events.extend((first..).zip(told).map(|(n, told)| EventRow {
            n,
            attempt,
            kind: told,
        }));
    }
    events
}

/// Counts the rows of a table.
pub(super) async fn count(url: &str, table: &str) -> i64 {
    let mut connection = open(url).await;
    let count = sqlx::query_scalar(super::counting(table))
        .fetch_one(&mut connection)
        .await
        .expect("the rows can be counted");
    close(connection).await;
    count
}

/// How many runs each process is executing.
pub(super) async fn running(url: &str) -> Vec<i64> {
    let mut connection = open(url).await;
    let running = sqlx::query_scalar(
        "select count(*) from runs where state = 'running' group by owner_id order by 1",
    )
    .fetch_all(&mut connection)
    .await
    .expect("the rows can be counted");
    close(connection).await;
    running
}

/// How many connections servers have to the database.
pub(super) async fn connections(url: &str) -> i64 {
    let mut connection = open(url).await;
    let connections = sqlx::query_scalar(
        "select count(*) from pg_stat_activity \
         where datname = current_database() and application_name = 'hango'",
    )
    .fetch_one(&mut connection)
    .await
    .expect("the server knows");
    close(connection).await;
    connections
}
