//! Leases, where somebody has a row for a moment or for long, and by whose clock they are measured.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join;
use hango_conformance::{Fixture, ManualClock, TTL, no_limits, owner};
use hango_domain::run::{Change, Lease, RunState};
use hango_ports::run_store::{ClaimRequest, Held};
use hango_postgres::{Options, PostgresStore};
use hango_test_database::TestDatabase;
use sqlx::{Connection, PgConnection};

use super::Processes;

const fn held(lease: Lease) -> Held {
    Held {
        run: lease.run,
        attempt: lease.attempt,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_locked_for_long_keeps_no_other_lease_from_being_renewed() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    let (place, locked) = fixture.running().await;
    let (_, free) = fixture.running().await;
    let mut somebody = processes.somebody().await;
    let mut holding = somebody.begin().await.expect("a transaction begins");
    let lock = sqlx::query("select from runs where id = $1 for update");
    let lock = lock.bind(locked.run.0).execute(&mut *holding).await;
    lock.expect("a row can be locked");
    fixture.clock.almost(TTL);

    let claims = vec![held(locked), held(free)];
    let renewal = fixture
        .stores
        .runs
        .renew(owner(1), claims.clone(), TTL)
        .await;

    let renewal = renewal.expect("a lock is no error");
    let renewed: Vec<Held> = renewal.renewed.iter().map(|(held, _)| *held).collect();
    assert_eq!(renewed, [held(free)]);
    // It is in force still, and nobody knows better.
    assert_eq!((renewal.lost, renewal.orphans), (vec![], vec![]));
    holding.rollback().await.expect("a transaction ends");
    let renewal = fixture.stores.runs.renew(owner(1), claims, TTL).await;
    assert_eq!(renewal.expect("nothing is locked").renewed.len(), 2);
    let run = fixture.on_record(&place, locked.run).await.run;
    let running = RunState::Running {
        owner: owner(1),
        expires_at: fixture.now().plus(TTL),
    };
    assert_eq!(run.state, running);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_renewed_while_its_run_is_being_written() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    let (_, lease) = fixture.running().await;
    let mut somebody = processes.somebody().await;
    let mut writing = somebody.begin().await.expect("a transaction begins");
    let write = sqlx::query("update runs set iterations = iterations where id = $1");
    let write = write.bind(lease.run.0).execute(&mut *writing).await;
    write.expect("a row can be written");

    let renewing = fixture.stores.runs.renew(owner(1), vec![held(lease)], TTL);
    let committing = async {
        processes.somebody_waits().await;
        writing.commit().await.expect("a transaction ends");
    };
    let (renewal, ()) = join(renewing, committing).await;

    let renewal = renewal.expect("the write has ended");
    let renewed: Vec<Held> = renewal.renewed.iter().map(|(held, _)| *held).collect();
    assert_eq!(renewed, [held(lease)]);
}

/// The process remembers the run with the lease that it was claimed with.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_leaves_the_lease_where_the_renewal_put_it() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    let (place, lease) = fixture.running().await;
    fixture.clock.advance(TTL / 2);
    let renewal = fixture.stores.runs.renew(owner(1), vec![held(lease)], TTL);
    assert_eq!(renewal.await.expect("it is in force").renewed.len(), 1);
    let renewed = fixture.on_record(&place, lease.run).await.run.state;

    fixture
        .written(Change::Answer(fixture.answer(lease, 1, 1, 1)))
        .await;

    assert_eq!(
        fixture.on_record(&place, lease.run).await.run.state,
        renewed
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_former_attempt_keeps_nobodys_lease_alive() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    let (place, stale) = fixture.running().await;
    let lease = fixture.taken_over(stale, owner(1)).await;
    let before = fixture.on_record(&place, lease.run).await;
    fixture.clock.advance(TTL / 2);

    // And nobody keeps another's, though he names it.
    for (by, named) in [(owner(1), stale), (owner(2), lease)] {
        let renewal = fixture.stores.runs.renew(by, vec![held(named)], TTL);

        let renewal = renewal.await.expect("losing is no error");
        assert_eq!(renewal.lost, [held(named)]);
        assert_eq!(fixture.on_record(&place, lease.run).await, before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_passes_over_what_is_locked() {
    let processes = Processes::start().await;
    let fixture = &processes.fixture;
    let (_, locked) = fixture.running().await;
    let (_, silent) = fixture.running().await;
    let mut somebody = processes.somebody().await;
    let mut holding = somebody.begin().await.expect("a transaction begins");
    let lock = sqlx::query("select from runs where id = $1 for update");
    let lock = lock.bind(locked.run.0).execute(&mut *holding).await;
    lock.expect("a row can be locked");
    fixture.clock.advance(TTL);

    assert_eq!(fixture.sweep().await, [silent.run]);

    holding.rollback().await.expect("a transaction ends");
    assert_eq!(fixture.sweep().await, [locked.run]);
}

/// The database's own time, where nothing stands in for it.
#[tokio::test(flavor = "multi_thread")]
async fn leases_are_measured_by_the_databases_clock() {
    let database = TestDatabase::new().await;
    let store = PostgresStore::open(Options::new(database.url())).expect("the URL is sound");
    let store = Arc::new(store);
    store.migrate().await.expect("the schema is brought up");
    let fixture = Fixture::new(store.stores(), Arc::new(ManualClock::default()));
    let place = fixture.place().await;
    let run = fixture.run(&place).await;
    let request = |ttl| ClaimRequest {
        owner: owner(1),
        ttl,
        only: Some(run.id),
        limits: no_limits(),
    };
    let runs = &fixture.stores.runs;

    // A lease that has run out when it is given.
    let claimed = runs
        .claim(request(Duration::ZERO))
        .await
        .expect("it waits")
        .won;
    let lease = claimed[0].lease;
    let renewal = runs.renew(owner(1), vec![held(lease)], TTL).await;
    assert_eq!(renewal.expect("losing is no error").lost, [held(lease)]);
    assert_eq!(fixture.sweep().await, [run.id]);
    // One that has not.
    let claimed = runs.claim(request(TTL)).await.expect("it waits").won;
    let lease = claimed[0].lease;
    let renewal = runs.renew(owner(1), vec![held(lease)], TTL).await;
    assert_eq!(renewal.expect("losing is no error").lost, []);
    assert_eq!(fixture.sweep().await, []);
    // A wait is measured by it too.
    let waits = fixture.give_back(lease, Duration::from_mins(1));
    fixture.written(Change::GiveBack(waits)).await;
    assert!(
        runs.claim(request(TTL))
            .await
            .expect("it waits")
            .won
            .is_empty()
    );
    let mut conn = PgConnection::connect(database.url())
        .await
        .expect("it is there");
    let sound: bool = sqlx::query_scalar(
        "select available_at between now() + interval '50 seconds' and now() + interval '60 seconds'
             and started_at between now() - interval '10 seconds' and now()
             and (select max(at) from events where run_id = runs.id) <= now()
         from runs",
    )
    .fetch_one(&mut conn)
    .await
    .expect("the statement works");
    assert!(sound);
}
