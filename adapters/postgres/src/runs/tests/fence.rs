//! The statement's own fence: it holds without the domain's.
//!
//! Each test decides a change of a run as it is, and then has the statement believe something else of
//! what it was decided upon. Nothing may be written then, of the run or of what belongs to it.

use std::sync::Arc;
use std::time::Duration;

use hango_conformance::{Fixture, ManualClock, Place, owner};
use hango_domain::run::{Change, Lease, Run, RunState, WriteId};
use hango_domain::session::SessionLine;
use hango_test_database::TestDatabase;
use uuid::Uuid;

use crate::error::Error;
use crate::runs::change::decide;
use crate::runs::load::{Loaded, load};
use crate::runs::store;
use crate::runs::writes::Writes;
use crate::{Options, PostgresStore};

/// Decides `change` of the run as it is, and stores it as if the run had been what `believed` makes of
/// it. Whether it was stored.
async fn stored(store: &PostgresStore, change: Change, believed: fn(Run) -> Run) -> bool {
    let run = change.lease().expect("a holder's write").run;
    let clock = store.clock.clone();
    let written = store.pool.run(move |conn| {
        let (clock, change) = (clock.clone(), change.clone());
        Box::pin(async move {
            let Loaded { run, line, now, .. } =
                load(conn, &clock, run).await?.expect("it is there");
            let mut honest = Writes::new(now);
            let (applied, _) =
                decide(&mut honest, &run, line, change.clone()).expect("it is legal");
            let mut writes = Writes::new(now);
            writes.add(&believed(run), &applied, change, line);
            store::store(conn, &writes).await
        })
    });
    let written: Result<store::Stored, Error> = written.await;
    written.expect("the statement works").has(run)
}

/// A store that holds a run.
pub(crate) async fn running() -> (Arc<PostgresStore>, Fixture, Place, Lease, TestDatabase) {
    let database = TestDatabase::new().await;
    let clock = Arc::new(ManualClock::default());
    let options = Options {
        clock: Some(clock.clone()),
        ..Options::new(database.url())
    };
    let store = Arc::new(PostgresStore::open(options).expect("the URL is sound"));
    store.migrate().await.expect("the schema is brought up");
    let fixture = Fixture::new(store.stores(), clock);
    let (place, lease) = fixture.running().await;
    (store, fixture, place, lease, database)
}

/// Believing that of a run's past changes nothing, before its first answer and behind it.
async fn is_refused(believed: fn(Run) -> Run) {
    let (store, fixture, place, lease, _guard) = running().await;
    for change in [
        Change::Retry(fixture.retry(lease, 1)),
        Change::GiveBack(fixture.give_back(lease, Duration::ZERO)),
        Change::Finish(fixture.finish(lease, 1)),
        Change::Answer(fixture.answer(lease, 1, 2, 1)),
    ] {
        let before = fixture.on_record(&place, lease.run).await;
        assert!(
            !stored(&store, change.clone(), believed).await,
            "{change:?}"
        );
        let after = fixture.on_record(&place, lease.run).await;
        assert_eq!(after, before, "{change:?}");
    }

    let answer = Change::Answer(fixture.answer(lease, 1, 2, 1));
    assert!(stored(&store, answer, |run| run).await);
    let answered = fixture.on_record(&place, lease.run).await;
    for change in [
        Change::Record(fixture.record(lease, &answered.calls[0], None)),
        Change::CompleteTurn(fixture.boundary(lease, 1, &answered.calls)),
    ] {
        assert!(
            !stored(&store, change.clone(), believed).await,
            "{change:?}"
        );
        let after = fixture.on_record(&place, lease.run).await;
        assert_eq!(after, answered, "{change:?}");
    }
    let boundary = Change::CompleteTurn(fixture.boundary(lease, 1, &answered.calls));
    assert!(stored(&store, boundary, |run| run).await);
}

#[tokio::test]
async fn nothing_is_written_for_another_owner() {
    is_refused(|run| Run {
        state: RunState::Running {
            owner: owner(2),
            expires_at: run.created_at,
        },
        ..run
    })
    .await;
}

#[tokio::test]
async fn nothing_is_written_for_another_attempt() {
    is_refused(|run| Run { attempt: 2, ..run }).await;
}

#[tokio::test]
async fn nothing_is_written_behind_the_end_whatever_else_is_believed() {
    let (store, fixture, place, _, _guard) = running().await;
    let run = fixture.run(&place).await;
    fixture
        .cancel(&place.owner, run.id)
        .await
        .expect("it waits");
    let ended = fixture.on_record(&place, run.id).await;
    let believed = Run {
        state: RunState::Queued,
        ..ended.run.clone()
    };
    let change = Change::RequestCancel { closing: None };
    let mut writes = Writes::new(fixture.now());
    decide(&mut writes, &believed, SessionLine::default(), change).expect("it is legal");
    let writes = Arc::new(writes);

    let written = store.pool.run(move |conn| {
        let writes = Arc::clone(&writes);
        Box::pin(async move { store::store(conn, &writes).await })
    });

    let written: Result<store::Stored, Error> = written.await;
    assert!(!written.expect("the statement works").has(run.id));
    assert_eq!(fixture.on_record(&place, run.id).await, ended);
}

#[tokio::test]
async fn nothing_is_written_behind_another_event() {
    is_refused(|mut run| {
        run.progress.last_event -= 1;
        run
    })
    .await;
}

#[tokio::test]
async fn nothing_is_written_behind_another_write() {
    is_refused(|mut run| {
        run.progress.last_write = Some(WriteId(Uuid::from_u128(7)));
        run
    })
    .await;
}

#[tokio::test]
async fn nothing_is_written_by_who_does_not_know_of_a_cancel() {
    let (store, fixture, place, lease, _guard) = running().await;
    fixture
        .cancel(&place.owner, lease.run)
        .await
        .expect("it runs");
    let before = fixture.on_record(&place, lease.run).await;
    let end = Change::Finish(fixture.finish(lease, 1));

    let unaware = stored(&store, end.clone(), |run| Run {
        cancel_requested_at: None,
        ..run
    });

    assert!(!unaware.await);
    assert_eq!(fixture.on_record(&place, lease.run).await, before);
    assert!(stored(&store, end, |run| run).await);
}
