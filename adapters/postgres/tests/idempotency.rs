//! A request waits for the first one with its key, wherever that is served, and not for long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hango_conformance::{Fixture, ManualClock};
use hango_ports::idempotency::Repeated;
use hango_ports::run_store::RunStoreError;
use hango_postgres::{Options, PostgresStore};
use hango_test_database::TestDatabase;
use sqlx::{Connection, PgConnection};
use tokio::time::timeout;

/// A store, and a connection of somebody else to its database.
async fn store_and_other() -> (Fixture, PgConnection, TestDatabase) {
    let database = TestDatabase::new().await;
    let clock = Arc::new(ManualClock::default());
    let options = Options {
        clock: Some(clock.clone()),
        ..Options::new(database.url())
    };
    let store = Arc::new(PostgresStore::open(options).expect("the URL is one of PostgreSQL"));
    store.migrate().await.expect("the schema is brought up");
    let other = PgConnection::connect(database.url()).await;
    let other = other.expect("the server is there");
    (Fixture::new(store.stores(), clock), other, database)
}

#[tokio::test(flavor = "multi_thread")]
async fn d35_a_request_waits_two_seconds_for_the_first_one_with_its_key() {
    let (fixture, mut other, _database) = store_and_other().await;
    let place = fixture.place().await;
    let key = fixture.once(&place.owner, "key");
    let accept = async || {
        let new = fixture.new_run(&place.owner, place.session.id);
        let audit = fixture.audit(&place.owner, "run.create", new.id.0);
        let begun = Instant::now();
        let accepted = fixture.stores.runs.accept(new, audit, Some(key.clone()));
        (accepted.await, begun.elapsed())
    };
    let mut first = other.begin().await.expect("transactions begin");
    sqlx::query(
        "insert into idempotency_keys (tenant_id, user_id, call, key, body, created_at)
         values ($1, $2, $3, $4, $5, now())",
    )
    .bind(key.tenant.0)
    .bind(key.user.0)
    .bind(&key.call)
    .bind(&key.key)
    .bind(key.body.as_slice())
    .execute(&mut *first)
    .await
    .expect("nobody else has it");

    let (waited, took) = accept().await;

    let in_flight = matches!(waited, Err(RunStoreError::Repeated(Repeated::InFlight)));
    assert!(in_flight, "{waited:?}");
    assert!(took >= Duration::from_secs(2), "{took:?}");
    assert!(took < Duration::from_secs(4), "{took:?}");
    first.rollback().await.expect("it can be undone");
    let (accepted, _) = accept().await;
    assert!(accepted.is_ok(), "{accepted:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_key_waits_for_others_as_long_as_one_without() {
    let (fixture, mut other, _database) = store_and_other().await;
    let place = fixture.place().await;
    let mut change = other.begin().await.expect("transactions begin");
    sqlx::query("select from sessions where id = $1 for update")
        .bind(place.session.id.0)
        .execute(&mut *change)
        .await
        .expect("nobody else has it");
    let new = fixture.new_run(&place.owner, place.session.id);
    let audit = fixture.audit(&place.owner, "run.create", new.id.0);
    let key = fixture.once(&place.owner, "key");
    let mut accepted = fixture.stores.runs.accept(new, audit, Some(key));
    // Longer than it would wait for its key.
    let early = timeout(Duration::from_millis(2500), &mut accepted).await;
    assert!(early.is_err(), "{early:?}");

    change.rollback().await.expect("it can be undone");

    let accepted = accepted.await;
    assert!(accepted.is_ok(), "{accepted:?}");
}
