//! Stored values that cannot be read: each is named, and harms nobody but its own run.

use std::sync::Arc;
use std::time::Duration;

use hango_conformance::{Fixture, ManualClock, TTL, no_limits, owner};
use hango_domain::RunId;
use hango_domain::event::EVENT_VERSION;
use hango_domain::queue::ClaimLimits;
use hango_domain::run::{Change, RunStatus};
use hango_ports::StoreFailure;
use hango_ports::page::PageRequest;
use hango_ports::run_store::{ReclaimRequest, RunFilter, RunStoreError};
use hango_sqlite::{Options, SqliteStore};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tempfile::TempDir;

async fn fixture() -> (Fixture, TempDir) {
    let dir = tempfile::tempdir().expect("there is room for a directory");
    let clock = Arc::new(ManualClock::default());
    let options = Options::new(clock.clone(), true);
    let store = SqliteStore::open(dir.path().join("hango.db"), options).await;
    let store = Arc::new(store.expect("a new database is made"));
    store.migrate().await.expect("the schema is brought up");
    (Fixture::new(store.stores(), clock), dir)
}

/// Puts what no store would write into one place.
async fn damage(dir: &TempDir, change: String) {
    let options = SqliteConnectOptions::new()
        .filename(dir.path().join("hango.db"))
        .pragma("ignore_check_constraints", "on");
    let mut conn = options.connect().await.expect("the file can be written");
    let done = sqlx::query(AssertSqlSafe(change)).execute(&mut conn).await;
    assert!(done.expect("the file can be written").rows_affected() > 0);
    conn.close().await.expect("closing works");
}

fn column(
    context: Result<impl Sized, StoreFailure>,
) -> Option<(&'static str, &'static str, String)> {
    match context {
        Err(StoreFailure::Corrupt {
            table, column, row, ..
        }) => Some((table, column, row)),
        Err(_) | Ok(_) => None,
    }
}

#[tokio::test]
async fn what_an_executor_cannot_read_is_its_runs_alone_and_the_run_can_be_ended() {
    for (table, name, value, key) in [
        ("runs", "agent_snapshot", "{}", "id"),
        ("runs", "state_json", "{", "id"),
        ("runs", "input", "7", "id"),
        ("runs", "usage", "[]", "id"),
        ("tool_calls", "input", "7", "run_id"),
        ("messages", "content", "{}", "run_id"),
    ] {
        let (fixture, dir) = fixture().await;
        let (_, lease, _) = fixture.answered(2, 1).await;
        fixture
            .written(Change::GiveBack(fixture.give_back(lease, Duration::ZERO)))
            .await;
        let other_place = fixture.place().await;
        let other = fixture.run(&other_place).await;
        let run = lease.run;
        damage(
            &dir,
            format!("update {table} set {name} = '{value}' where {key} = '{run}'"),
        )
        .await;

        let claimed = fixture.claim_all(owner(2), None, no_limits()).await;

        let mut claimed = claimed.into_iter();
        let (Some(damaged), Some(sound)) = (claimed.next(), claimed.next()) else {
            panic!("both runs are claimed, {table}.{name}");
        };
        assert_eq!((damaged.run.id, sound.run.id), (run, other.id));
        assert!(sound.context.is_ok());
        let named = column(damaged.context);
        assert_eq!(
            named.map(|(table, column, _)| (table, column)),
            Some((table, name))
        );

        let mut end = fixture.finish(damaged.lease, 1);
        end.turn = None;
        let written = fixture.written(Change::Finish(end)).await;
        assert_eq!(written.status, RunStatus::Succeeded);
    }
}

#[tokio::test]
async fn a_reader_is_told_the_table_the_column_and_the_row() {
    let (fixture, dir) = fixture().await;
    let place = fixture.place().await;
    let run = fixture.run(&place).await;
    damage(
        &dir,
        format!("update runs set metadata = '[' where id = '{}'", run.id),
    )
    .await;

    let found = fixture.stores.runs.find(place.seen(), run.id).await;

    let Err(RunStoreError::Failure(failure)) = found else {
        panic!("the run cannot be read");
    };
    let expected = Some(("runs", "metadata", run.id.to_string()));
    assert_eq!(column(Err::<(), _>(failure)), expected);
}

#[tokio::test]
async fn a_row_that_cannot_be_read_at_all_keeps_nobody_from_being_claimed_or_taken_back() {
    let (fixture, dir) = fixture().await;
    let (_, damaged) = fixture.running().await;
    let (_, sound) = fixture.running().await;
    let queued_place = fixture.place().await;
    let unreadable = fixture.run(&queued_place).await;
    let waiting_place = fixture.place().await;
    let waiting = fixture.run(&waiting_place).await;
    for run in [damaged.run, unreadable.id] {
        damage(
            &dir,
            format!("update runs set trace_id = 'nowhere' where id = '{run}'"),
        )
        .await;
    }

    let claimed = fixture.claim_all(owner(2), None, no_limits()).await;
    let claimed: Vec<RunId> = claimed.iter().map(|claimed| claimed.run.id).collect();
    assert_eq!(claimed, [waiting.id]);

    let request = ReclaimRequest {
        limit: 10,
        max_stalled: 5,
        expired_only: false,
    };
    let taken = fixture
        .stores
        .runs
        .reclaim(request)
        .await
        .expect("the sweep works");
    let taken: Vec<RunId> = taken.iter().map(|taken| taken.previous.run).collect();
    assert_eq!(taken, [sound.run, waiting.id]);
}

#[tokio::test]
async fn rows_that_cannot_be_read_take_nobodys_place_in_a_claim_or_a_sweep_of_one() {
    let (fixture, dir) = fixture().await;
    let (_, damaged) = fixture.running().await;
    let (_, sound) = fixture.running().await;
    let mut unreadable = vec![damaged.run];
    for _ in 0..3 {
        let place = fixture.place().await;
        unreadable.push(fixture.run(&place).await.id);
    }
    let place = fixture.place().await;
    let waiting = fixture.run(&place).await;
    for run in unreadable {
        damage(
            &dir,
            format!("update runs set trace_id = 'nowhere' where id = '{run}'"),
        )
        .await;
    }

    let one = ClaimLimits {
        runs: 1,
        ..no_limits()
    };
    let claimed = fixture.claim_all(owner(2), None, one).await;
    let claimed: Vec<RunId> = claimed.iter().map(|claimed| claimed.run.id).collect();
    assert_eq!(claimed, [waiting.id]);

    let request = ReclaimRequest {
        limit: 1,
        max_stalled: 5,
        expired_only: false,
    };
    let mut taken = Vec::new();
    for _ in 0..2 {
        let swept = fixture.stores.runs.reclaim(request).await;
        taken.extend(swept.expect("the sweep works"));
    }
    let taken: Vec<RunId> = taken.iter().map(|taken| taken.previous.run).collect();
    assert_eq!(taken, [sound.run]);
}

#[tokio::test]
async fn a_run_whose_journal_cannot_be_read_ends_all_the_same() {
    let (fixture, dir) = fixture().await;
    let (place, lease, _) = fixture.answered(2, 1).await;
    let run = lease.run;
    fixture
        .cancel(&place.owner, run)
        .await
        .expect("the run is there");
    damage(
        &dir,
        format!("update tool_calls set input = '7' where run_id = '{run}'"),
    )
    .await;
    fixture.clock.advance(TTL);

    assert_eq!(fixture.sweep().await, [run]);

    let found = fixture
        .stores
        .runs
        .find(place.seen(), run)
        .await
        .expect("reads work");
    assert_eq!(
        found.map(|run| run.state.status()),
        Some(RunStatus::Cancelled)
    );
}

#[tokio::test]
async fn what_a_newer_build_told_of_a_run_is_passed_on() {
    let (fixture, dir) = fixture().await;
    let (place, lease) = fixture.running().await;
    let before = fixture.on_record(&place, lease.run).await.events;
    let told = json!({"type": "turn.started", "of": "run"});
    let version = EVENT_VERSION + 1;
    let newer = format!(
        "update events set version = {version}, kind = '{told}' where run_id = '{}' and n = 4",
        lease.run
    );
    damage(&dir, newer).await;

    let events = fixture.on_record(&place, lease.run).await.events;

    assert_eq!(events[..3], before[..3]);
    assert_eq!((events.len(), events[3].n), (4, 4));
    assert_eq!(serde_json::to_value(&events[3].kind).ok(), Some(told));
}

#[tokio::test]
async fn a_list_goes_on_without_the_runs_that_cannot_be_read() {
    let (fixture, dir) = fixture().await;
    let place = fixture.place().await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(fixture.run(&place).await.id);
    }
    for (run, change) in [(1, "metadata = '7'"), (2, "trace_id = 'nowhere'")] {
        let change = format!("update runs set {change} where id = '{}'", runs[run]);
        damage(&dir, change).await;
    }

    let (mut pages, mut after) = (Vec::new(), None);
    loop {
        let request = PageRequest { limit: 2, after };
        let stored = &fixture.stores.runs;
        let page = stored
            .list(place.seen(), RunFilter::default(), request)
            .await;
        let page = page.expect("reads work");
        pages.push(page.items.iter().map(|run| run.id).collect::<Vec<_>>());
        after = page.next;
        if after.is_none() {
            break;
        }
    }

    assert_eq!(pages, [[runs[3]], [runs[0]]]);
}

#[tokio::test]
async fn d47_the_trail_is_never_changed() {
    let (fixture, dir) = fixture().await;
    fixture.tenant().await;
    let options = SqliteConnectOptions::new().filename(dir.path().join("hango.db"));
    let mut conn = options.connect().await.expect("the file can be written");
    for change in [
        "update audit_events set status = 1",
        "delete from audit_events",
    ] {
        let changed = sqlx::query(change).execute(&mut conn).await;

        let refused = changed.expect_err("it is refused").to_string();
        assert!(refused.contains("never changed"), "{change}: {refused}");
    }
    conn.close().await.expect("closing works");
}
