//! The schema goes up, down and up again.

use std::path::Path;
use std::sync::Arc;

use hango_conformance::{Fixture, ManualClock};
use hango_sqlite::{MigrateError, Options, SqliteStore};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, Row};
use tempfile::TempDir;

async fn open(path: &Path, execute: bool) -> SqliteStore {
    let options = Options::new(Arc::new(ManualClock::default()), execute);
    SqliteStore::open(path, options)
        .await
        .expect("the database is opened")
}

async fn empty() -> (SqliteStore, TempDir) {
    let dir = tempfile::tempdir().expect("there is room for a directory");
    (open(&dir.path().join("hango.db"), true).await, dir)
}

/// Everything that the schema consists of, but the driver's notes.
async fn schema(dir: &TempDir) -> Vec<(String, String)> {
    let options = SqliteConnectOptions::new().filename(dir.path().join("hango.db"));
    let mut conn = options.connect().await.expect("the file can be read");
    let rows = sqlx::query(
        "select name, sql from sqlite_schema
         where sql is not null and name not like '_sqlx%' order by name",
    )
    .fetch_all(&mut conn)
    .await
    .expect("reads work");
    conn.close().await.expect("closing works");
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

async fn columns_of_runs(dir: &TempDir) -> Vec<String> {
    let schema = schema(dir).await;
    let runs = schema.into_iter().find(|(name, _)| name == "runs");
    let words = runs.map(|(_, sql)| sql).unwrap_or_default();
    words.split_whitespace().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_new_database_is_brought_up_once() {
    let (store, _dir) = empty().await;
    let pending = store.pending().await.expect("reads work");
    assert_eq!(store.schema_version().await.ok(), Some(None));

    let applied = store.migrate().await.expect("the schema is brought up");

    assert_eq!(applied, pending);
    assert_eq!(store.pending().await.ok(), Some(Vec::new()));
    let last = applied.last().map(|step| step.version);
    assert_eq!(store.schema_version().await.ok(), Some(last));
    assert_eq!(store.migrate().await.ok(), Some(Vec::new()));
}

#[tokio::test]
async fn every_step_can_be_taken_back_and_made_again() {
    let (store, dir) = empty().await;
    let applied = store.migrate().await.expect("the schema is brought up");
    let before = schema(&dir).await;

    for steps in 1..=applied.len() {
        let undone = store
            .migrate_down(steps)
            .await
            .expect("there is a way down");
        let expected: Vec<_> = applied.iter().rev().take(steps).cloned().collect();
        assert_eq!(undone, expected);

        let again = store.migrate().await.expect("there is a way up");
        assert_eq!(again.len(), steps);
        assert_eq!(schema(&dir).await, before);
    }
    store
        .migrate_down(applied.len())
        .await
        .expect("there is a way down");
    assert!(schema(&dir).await.is_empty());
}

#[tokio::test]
async fn three_steps_back_drop_the_runs_memory_and_the_next_one_runs() {
    let (store, dir) = empty().await;
    store.migrate().await.expect("the schema is brought up");
    let store = Arc::new(store);
    let fixture = Fixture::new(store.stores(), Arc::new(ManualClock::default()));
    fixture.running().await;

    store.migrate_down(3).await.expect("there is a way down");
    let columns = columns_of_runs(&dir).await;
    assert!(
        !columns
            .iter()
            .any(|word| word == "state_json" || word == "state_version")
    );
    assert!(columns.iter().any(|word| word == "resume_turn"));

    store.migrate_down(1).await.expect("there is a way down");
    assert!(columns_of_runs(&dir).await.is_empty());
    store.migrate().await.expect("there is a way up");
    fixture.running().await;
}

#[tokio::test]
async fn only_who_holds_the_database_changes_its_schema() {
    let (_holder, dir) = empty().await;
    let tool = open(&dir.path().join("hango.db"), false).await;

    assert!(tool.pending().await.is_ok_and(|steps| !steps.is_empty()));
    assert!(matches!(tool.migrate().await, Err(MigrateError::NotHeld)));
    assert!(matches!(
        tool.migrate_down(1).await,
        Err(MigrateError::NotHeld)
    ));
}

#[tokio::test]
async fn a_schema_of_a_newer_build_is_left_alone() {
    let (store, dir) = empty().await;
    store.migrate().await.expect("the schema is brought up");
    let options = SqliteConnectOptions::new().filename(dir.path().join("hango.db"));
    let mut conn = options.connect().await.expect("the file can be written");
    sqlx::query(
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         values (999, 'from the future', true, x'00', 0)",
    )
    .execute(&mut conn)
    .await
    .expect("the file can be written");

    assert!(matches!(
        store.pending().await,
        Err(MigrateError::Newer { version: 999 })
    ));
    assert!(matches!(
        store.migrate().await,
        Err(MigrateError::Newer { version: 999 })
    ));
}
