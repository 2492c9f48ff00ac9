//! Writes of a holder whose run another process changed, while he remembers it as it was.

use std::time::Duration;

use futures::future::join;
use hango_conformance::{Fixture, TTL, no_limits, owner};
use hango_domain::RunId;
use hango_domain::access::Scope;
use hango_domain::run::{Answer, Change, End, RunState, RunStatus, TransitionError};
use hango_ports::run_store::{ReclaimRequest, RunStoreError, Written};
use hango_ports::{StoreFailure, Stores};
use sqlx::{AssertSqlSafe, Connection};

use super::{Processes, claim};

#[tokio::test(flavor = "multi_thread")]
async fn a_zombie_writes_nothing_once_another_process_took_its_run() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    let (place, zombie) = fixture.running().await;
    // The zombie's process remembers the run as it holds it; the sweep and the new claim are the
    // other's.
    fixture.clock.advance(TTL);
    let request = ReclaimRequest {
        limit: 10,
        max_stalled: 5,
        expired_only: true,
    };
    let taken = processes.other.runs.reclaim(request).await;
    assert_eq!(taken.expect("the sweep works").len(), 1);
    let claimed = claim(&processes.other, owner(2), no_limits()).await;
    assert_eq!(claimed.len(), 1);
    let before = fixture.on_record(&place, zombie.run).await;

    for change in [
        Change::Answer(fixture.answer(zombie, 1, 2, 1)),
        Change::Retry(fixture.retry(zombie, 1)),
        Change::GiveBack(fixture.give_back(zombie, Duration::ZERO)),
        Change::Finish(fixture.finish(zombie, 1)),
    ] {
        let refused = fixture.write(change.clone()).await;

        let lost = TransitionError::LeaseLost {
            owner: zombie.owner,
            presented: zombie.attempt,
        };
        assert!(
            matches!(&refused, Err(RunStoreError::Refused(rule)) if *rule == lost),
            "{refused:?}"
        );
        assert_eq!(
            fixture.on_record(&place, zombie.run).await,
            before,
            "{change:?}"
        );
    }
}

/// A write that waits for the row decides by what the row is then, not by what it was before.
#[tokio::test(flavor = "multi_thread")]
async fn a_zombie_that_waited_for_its_row_writes_nothing() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    let (place, zombie) = fixture.running().await;
    let mut somebody = processes.somebody().await;
    let mut taking = somebody.begin().await.expect("a transaction begins");
    let taken = sqlx::query(
        "update runs set state = 'queued', owner_id = null, lease_expires_at = null,
             last_event = last_event + 1
         where id = $1",
    )
    .bind(zombie.run.0)
    .execute(&mut *taking)
    .await;
    taken.expect("the row can be written");
    let told = sqlx::query(
        "insert into events select id, last_event, attempt, 1, now(),
             '[{\"turn\": 1, \"type\": \"run.requeued\", \"reason\": \"lease_expired\"}]'
         from runs where id = $1",
    );
    let told = told.bind(zombie.run.0).execute(&mut *taking).await;
    told.expect("a row can be added");

    let end = fixture.finish(zombie, 1);
    let waiting = tokio::spawn({
        let runs = fixture.stores.runs.clone();
        async move { runs.finish(end).await }
    });
    processes.somebody_waits().await;
    taking.commit().await.expect("a transaction ends");

    let refused = waiting.await.expect("it does not panic");
    assert!(
        matches!(refused, Err(RunStoreError::Refused(_))),
        "{refused:?}"
    );
    let record = fixture.on_record(&place, zombie.run).await;
    assert_eq!(record.run.state, RunState::Queued);
    assert_eq!((record.events.len(), record.messages.len()), (5, 1));
}

/// Nobody knows what became of a write whose connection died: it is made again as it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_connection_died_can_be_made_again() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    let (place, lease) = fixture.running().await;
    let mut somebody = processes.somebody().await;
    let mut holding = somebody.begin().await.expect("a transaction begins");
    let lock = sqlx::query("select from runs where id = $1 for update");
    let lock = lock.bind(lease.run.0).execute(&mut *holding).await;
    lock.expect("a row can be locked");
    let end: End = fixture.finish(lease, 1);

    let killing = async {
        processes.somebody_waits().await;
        let killed = "select count(pg_terminate_backend(pid)) from pg_stat_activity
             where datname = current_database() and wait_event_type = 'Lock'";
        assert_eq!(processes.count(killed).await, 1);
    };
    let (unknown, ()) = join(fixture.write(Change::Finish(end.clone())), killing).await;

    let unavailable = RunStoreError::Failure(StoreFailure::Unavailable("".into()));
    let unknown = unknown.expect_err("the connection is gone");
    assert_eq!(unknown.to_string(), unavailable.to_string());
    holding.rollback().await.expect("a transaction ends");
    let written = fixture.written(Change::Finish(end)).await;
    assert_eq!(written.status, RunStatus::Succeeded);
    let record = fixture.on_record(&place, lease.run).await;
    assert_eq!(record.messages.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_by_another_process_is_told_by_the_holders_next_write() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    let (place, lease) = fixture.running().await;
    fixture
        .written(Change::Retry(fixture.retry(lease, 1)))
        .await;
    cancel(&processes.other, fixture, &place.owner, lease.run).await;

    let written = fixture
        .written(Change::Retry(fixture.retry(lease, 1)))
        .await;

    assert!(written.standing.cancel_requested);
    let cancels = fixture.stores.runs.cancels(owner(1)).await;
    assert_eq!(cancels.expect("reads work"), [lease]);
}

/// A holder who records one result after the other: between any reading of his run and a write of it he
/// has written it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_holder_who_writes_all_the_time_does_not_keep_a_cancel_out() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    let (place, lease) = fixture.running().await;
    let writing = format!(
        "do $$
         declare gap timestamptz;
         begin
             for n in 1..2000 loop
                 update runs set last_write = gen_random_uuid()
                 where id = '{}' and cancel_requested_at is null;
                 exit when not found;
                 perform pg_sleep(0.002);
                 commit;
                 gap := clock_timestamp() + interval '300 microseconds';
                 while clock_timestamp() < gap loop end loop;
             end loop;
         end $$",
        lease.run
    );
    let mut somebody = processes.somebody().await;
    let busy = tokio::spawn(async move {
        sqlx::raw_sql(AssertSqlSafe(writing))
            .execute(&mut somebody)
            .await
    });
    let begun = "select count(*) from runs where last_write is not null";
    processes.until(begun).await;

    cancel(&processes.other, fixture, &place.owner, lease.run).await;

    let written = busy.await.expect("it does not panic");
    written.expect("a row can be written");
    let run = fixture.on_record(&place, lease.run).await.run;
    assert_eq!(run.cancel_requested_at, Some(fixture.now()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_behind_another_processs_cancel_is_a_cancelled_one() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    let (place, lease) = fixture.running().await;
    cancel(&processes.other, fixture, &place.owner, lease.run).await;

    let written = fixture
        .written(Change::Finish(fixture.finish(lease, 1)))
        .await;

    assert_eq!(written.status, RunStatus::Cancelled);
    let record = fixture.on_record(&place, lease.run).await;
    assert_eq!(record.run.state, RunState::Cancelled { at: fixture.now() });
    let ends = record.events.iter().filter(|it| it.kind.is_terminal());
    assert_eq!((ends.count(), record.messages.len()), (1, 2));
}

/// A process that did not hear the answer of a write remembers the run as it was before: here the other
/// one made the write.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_answer_was_lost_is_made_once() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    let (place, lease) = fixture.running().await;
    fixture.written(Change::Repair(fixture.repair(lease))).await;
    let answer: Answer = fixture.answer(lease, 1, 2, 1);
    let first = processes.other.runs.answer(answer.clone()).await;
    let first = first.expect("it holds the run");
    let before = fixture.on_record(&place, lease.run).await;

    let again = fixture.written(Change::Answer(answer)).await;

    let expected = Written {
        events: Vec::new(),
        ..first
    };
    assert_eq!(again, expected);
    assert_eq!(fixture.on_record(&place, lease.run).await, before);
    let end: End = fixture.finish(lease, 1);
    let first = processes.other.runs.finish(end.clone()).await;
    let first = first.expect("it holds the run");
    let before = fixture.on_record(&place, lease.run).await;
    let again = fixture.written(Change::Finish(end)).await;
    assert_eq!((again.status, again.events.len()), (first.status, 0));
    assert_eq!(fixture.on_record(&place, lease.run).await, before);
}

async fn cancel(stores: &Stores, fixture: &Fixture, by: &Scope, run: RunId) {
    let seen = hango_domain::access::visibility(by);
    let audit = fixture.audit(by, "run.cancel", run.0);
    let cancelled = stores.runs.request_cancel(seen, run, audit).await;
    cancelled.expect("the run has not ended");
}
