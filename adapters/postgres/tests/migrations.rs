//! The schema goes up, down and up again, whoever else does the same and whoever dies in between.

use std::time::{Duration, Instant};

use futures::future::join_all;
use hango_postgres::{MigrateError, Migration, Options, PostgresStore, migrations};
use hango_test_database::TestDatabase;
use sqlx::{Connection, PgConnection};
use tokio::time::timeout;

/// The longest that anything may take, on a busy machine.
const BOUND: Duration = Duration::from_mins(1);

fn open(database: &TestDatabase) -> PostgresStore {
    PostgresStore::open(Options::new(database.url())).expect("the URL is one of PostgreSQL")
}

async fn empty() -> (PostgresStore, TestDatabase) {
    let database = TestDatabase::new().await;
    (open(&database), database)
}

async fn connect(database: &TestDatabase) -> PgConnection {
    let connected = PgConnection::connect(database.url()).await;
    connected.expect("the database is there")
}

/// Everything that the schema consists of, but the driver's notes.
async fn schema(database: &TestDatabase) -> Vec<String> {
    let mut conn = connect(database).await;
    sqlx::query_scalar(
        "select format('column %s.%s %s %s %s', table_name, column_name, data_type, is_nullable,
                column_default)
         from information_schema.columns
         where table_schema = 'public' and table_name not like '\\_sqlx%'
         union all
         select indexdef from pg_indexes
         where schemaname = 'public' and tablename not like '\\_sqlx%'
         union all
         select format('constraint %s %s', conname, pg_get_constraintdef(oid)) from pg_constraint
         where connamespace = 'public'::regnamespace and conname not like '\\_sqlx%'
         union all
         select format('function %s', proname) from pg_proc
         where pronamespace = 'public'::regnamespace
         union all
         select format('options %s %s', relname, reloptions) from pg_class
         where relnamespace = 'public'::regnamespace and relname not like '\\_sqlx%'
         order by 1",
    )
    .fetch_all(&mut conn)
    .await
    .expect("reads work")
}

/// Waits until some backend of the database is in the situation that `condition` says.
async fn wait_until(database: &TestDatabase, condition: &'static str) {
    let mut conn = connect(database).await;
    let late = Instant::now() + BOUND;
    loop {
        let found: bool = sqlx::query_scalar(sqlx::AssertSqlSafe(format!(
            "select exists (select from pg_stat_activity
             where datname = current_database() and pid <> pg_backend_pid() and {condition})"
        )))
        .fetch_one(&mut conn)
        .await
        .expect("reads work");
        if found {
            return;
        }
        assert!(Instant::now() < late, "it never came to {condition}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_new_database_is_brought_up_once() {
    let (store, _database) = empty().await;
    let pending = store.pending().await.expect("reads work");
    assert_eq!(pending, migrations());
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
    let (store, database) = empty().await;
    let applied = store.migrate().await.expect("the schema is brought up");
    let before = schema(&database).await;

    for steps in 1..=applied.len() {
        let undone = store.migrate_down(steps).await;
        let expected: Vec<_> = applied.iter().rev().take(steps).cloned().collect();
        assert_eq!(undone.expect("there is a way down"), expected);

        let again = store.migrate().await.expect("there is a way up");
        assert_eq!(again.len(), steps);
        assert_eq!(schema(&database).await, before);
    }
    let down = store.migrate_down(applied.len()).await;
    down.expect("there is a way down");
    assert!(schema(&database).await.is_empty());
}

#[tokio::test]
async fn processes_that_start_at_once_bring_it_up_once() {
    let database = TestDatabase::new().await;
    let processes: Vec<_> = (0..4).map(|_| open(&database)).collect();

    let applied = join_all(processes.iter().map(PostgresStore::migrate)).await;

    let applied: Vec<Vec<Migration>> = applied
        .into_iter()
        .map(|applied| applied.expect("each of them gets there"))
        .collect();
    let who_did: Vec<_> = applied.iter().filter(|steps| !steps.is_empty()).collect();
    assert_eq!(who_did, [&migrations()]);
}

#[tokio::test]
async fn whoever_dies_in_a_step_leaves_those_before_it_and_no_lock() {
    let (store, database) = empty().await;
    // What the third step makes is in the way of nobody, and somebody looks at it while it is made.
    let mut other = connect(&database).await;
    store.migrate().await.expect("the schema is brought up");
    let whole = schema(&database).await;
    let steps = migrations().len() - 2;
    let down = store.migrate_down(steps).await;
    down.expect("there is a way down");
    let mut held = other.begin().await.expect("transactions begin");
    sqlx::query("create table audit_events (id int)")
        .execute(&mut *held)
        .await
        .expect("a table can be made");

    let dying = open(&database);
    let dying = tokio::spawn(async move { dying.migrate().await });
    wait_until(&database, "wait_event_type = 'Lock'").await;
    database
        .execute(
            "select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and wait_event_type = 'Lock'",
        )
        .await
        .expect("backends can be told to go");
    let died = dying.await.expect("it does not panic");
    assert!(matches!(died, Err(MigrateError::Failed(_))), "{died:?}");
    assert_eq!(store.schema_version().await.ok(), Some(Some(2)));
    held.rollback().await.expect("it can be undone");

    let others = [open(&database), open(&database)];
    for applied in join_all(others.iter().map(PostgresStore::migrate)).await {
        applied.expect("the next one goes on from there");
    }
    assert_eq!(schema(&database).await, whole);
}

#[tokio::test]
async fn a_step_does_not_wait_for_a_long_transaction() {
    let (store, database) = empty().await;
    store.migrate().await.expect("the schema is brought up");
    let mut other = connect(&database).await;
    let mut long = other.begin().await.expect("transactions begin");
    sqlx::query("select from audit_events")
        .execute(&mut *long)
        .await
        .expect("reads work");

    let refused = timeout(BOUND, store.migrate_down(1)).await;
    let refused = refused.expect("it gives up");

    assert!(
        matches!(refused, Err(MigrateError::Busy { .. })),
        "{refused:?}"
    );
    long.rollback().await.expect("it can be undone");
    store.migrate_down(1).await.expect("nobody is in the way");
}

#[tokio::test]
async fn an_older_build_works_on_a_newer_schema_and_leaves_it_alone() {
    let (store, database) = empty().await;
    store.migrate().await.expect("the schema is brought up");
    let from_the_future = "insert into _sqlx_migrations
            (version, description, success, checksum, execution_time)
         values (999, 'from the future', true, '\\x00', 0)";
    database
        .execute(from_the_future)
        .await
        .expect("it is noted");

    assert_eq!(store.migrate().await.ok(), Some(Vec::new()));
    assert_eq!(store.pending().await.ok(), Some(Vec::new()));
    assert_eq!(store.schema_version().await.ok(), Some(Some(999)));
    assert!(matches!(
        store.migrate_down(1).await,
        Err(MigrateError::Newer { version: 999 })
    ));

    // One that goes back before it does not know what it would have to build upon.
    let lacking = "delete from _sqlx_migrations where version = 5";
    database.execute(lacking).await.expect("it is forgotten");
    assert!(matches!(
        store.migrate().await,
        Err(MigrateError::Newer { version: 999 })
    ));
}

#[tokio::test]
async fn a_step_of_another_form_is_refused() {
    let (store, database) = empty().await;
    store.migrate().await.expect("the schema is brought up");
    let changed = "update _sqlx_migrations set checksum = '\\x00' where version = 2";
    database.execute(changed).await.expect("it is changed");

    assert!(matches!(
        store.migrate().await,
        Err(MigrateError::Changed { version: 2 })
    ));
}
