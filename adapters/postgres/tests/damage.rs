//! Stored values of runs that cannot be read: each is named, and harms nobody but its own run.

use std::sync::Arc;
use std::time::Duration;

use hango_conformance::{Fixture, ManualClock, TTL, no_limits, owner};
use hango_domain::RunId;
use hango_domain::queue::ClaimLimits;
use hango_domain::run::{Change, RunStatus};
use hango_ports::StoreFailure;
use hango_ports::page::PageRequest;
use hango_ports::run_store::{ReclaimRequest, RunFilter, RunStoreError};
use hango_postgres::{Options, PostgresStore};
use hango_test_database::TestDatabase;

async fn fixture() -> (Fixture, TestDatabase) {
    let database = TestDatabase::new().await;
    let clock = Arc::new(ManualClock::default());
    let options = Options {
        clock: Some(clock.clone()),
        ..Options::new(database.url())
    };
    let store = PostgresStore::open(options).expect("the URL is one of PostgreSQL");
    let store = Arc::new(store);
    store.migrate().await.expect("the schema is brought up");
    (Fixture::new(store.stores(), clock), database)
}

/// Puts what no store would write into one place.
async fn damage(database: &TestDatabase, change: String) {
    let done = database.execute(&change).await;
    done.expect("the database can be written");
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

#[tokio::test(flavor = "multi_thread")]
async fn what_an_executor_cannot_read_is_its_runs_alone_and_the_run_can_be_ended() {
    for (table, name, value, key) in [
        ("agent_snapshots", "snapshot", "{}", "agent_id"),
        ("runs", "input", "7", "id"),
        ("runs", "usage", "[]", "id"),
        ("runs", "metadata", "[]", "id"),
        ("tool_calls", "input", "7", "run_id"),
        ("messages", "content", "{}", "run_id"),
    ] {
        let (fixture, database) = fixture().await;
        let (place, lease, _) = fixture.answered(2, 1).await;
        fixture
            .written(Change::GiveBack(fixture.give_back(lease, Duration::ZERO)))
            .await;
        let other_place = fixture.place().await;
        let other = fixture.run(&other_place).await;
        let run = lease.run;
        let row = match key {
            "agent_id" => place.agent.id.0,
            _ => run.0,
        };
        damage(
            &database,
            format!("update {table} set {name} = '{value}' where {key} = '{row}'"),
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

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_is_told_the_table_the_column_and_the_row() {
    let (fixture, database) = fixture().await;
    let place = fixture.place().await;
    let run = fixture.run(&place).await;
    damage(
        &database,
        format!("update runs set metadata = '7' where id = '{}'", run.id),
    )
    .await;

    let found = fixture.stores.runs.find(place.seen(), run.id).await;

    let Err(RunStoreError::Failure(failure)) = found else {
        panic!("the run cannot be read");
    };
    let expected = Some(("runs", "metadata", run.id.to_string()));
    assert_eq!(column(Err::<(), _>(failure)), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_read_at_all_keeps_nobody_from_being_claimed_or_taken_back() {
    let (fixture, database) = fixture().await;
    let (_, damaged) = fixture.running().await;
    let (_, sound) = fixture.running().await;
    let queued_place = fixture.place().await;
    let unreadable = fixture.run(&queued_place).await;
    let waiting_place = fixture.place().await;
    let waiting = fixture.run(&waiting_place).await;
    for run in [damaged.run, unreadable.id] {
        damage(
            &database,
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
    let taken = fixture.stores.runs.reclaim(request).await;
    let taken = taken.expect("the sweep works");
    let taken: Vec<RunId> = taken.iter().map(|taken| taken.previous.run).collect();
    assert_eq!(taken, [sound.run, waiting.id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_cannot_be_read_take_nobodys_place_in_a_claim_or_a_sweep_of_one() {
    let (fixture, database) = fixture().await;
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
            &database,
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

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_journal_cannot_be_read_ends_all_the_same() {
    let (fixture, database) = fixture().await;
    let (place, lease, _) = fixture.answered(2, 1).await;
    let run = lease.run;
    fixture
        .cancel(&place.owner, run)
        .await
        .expect("the run is there");
    damage(
        &database,
        format!("update tool_calls set input = '7' where run_id = '{run}'"),
    )
    .await;
    fixture.clock.advance(TTL);

    assert_eq!(fixture.sweep().await, [run]);

    let found = fixture.stores.runs.find(place.seen(), run).await;
    let status = found.expect("reads work").map(|run| run.state.status());
    assert_eq!(status, Some(RunStatus::Cancelled));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_goes_on_without_the_runs_that_cannot_be_read() {
    let (fixture, database) = fixture().await;
    let place = fixture.place().await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(fixture.run(&place).await.id);
    }
    for (run, change) in [(1, "metadata = '7'"), (2, "trace_id = 'nowhere'")] {
        let change = format!("update runs set {change} where id = '{}'", runs[run]);
        damage(&database, change).await;
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
