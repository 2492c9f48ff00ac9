//! Changes by clients, whose answer is lost with its connection: they are asked for again, and made once.

use std::sync::Arc;

use hango_conformance::{Fixture, ManualClock};
use hango_domain::access::Scope;
use hango_ports::audit_store::AuditFilter;
use hango_ports::page::PageRequest;
use hango_ports::run_store::RunFilter;
use hango_test_database::TestDatabase;

use crate::testing::Proxy;
use crate::{Options, PostgresStore};

const ALL: PageRequest = PageRequest {
    limit: 100,
    after: None,
};

/// A store behind a way that can lose an answer.
async fn store() -> (Fixture, Proxy, TestDatabase) {
    let database = TestDatabase::new().await;
    let proxy = Proxy::before(database.url()).await;
    let clock = Arc::new(ManualClock::default());
    let options = Options {
        clock: Some(clock.clone()),
        ..Options::new(proxy.url(database.url()))
    };
    let store = Arc::new(PostgresStore::open(options).expect("the URL is sound"));
    store.migrate().await.expect("the schema is brought up");
    (Fixture::new(store.stores(), clock), proxy, database)
}

/// How many audit rows there are of what somebody did.
async fn noted(fixture: &Fixture, by: &Scope, action: &str) -> usize {
    let filter = AuditFilter {
        action: Some(action.to_owned()),
        ..AuditFilter::default()
    };
    let rows = fixture.stores.audit.list(by.tenant, filter, ALL).await;
    rows.expect("reads work").items.len()
}

#[tokio::test]
async fn a_run_whose_acceptance_was_not_heard_is_accepted_once() {
    let (fixture, proxy, _guard) = store().await;
    let place = fixture.place().await;
    // The connection has prepared the statement.
    let earlier = fixture.run(&place).await;
    let new = fixture.new_run(&place.owner, place.session.id);
    let audit = fixture.audit(&place.owner, "run.create", new.id.0);

    proxy.lose();
    let accepted = fixture.stores.runs.accept(new.clone(), audit, None).await;

    assert!(!proxy.loses());
    assert_eq!(accepted.expect("it is repeated").run.id, new.id);
    let filter = RunFilter::default();
    let runs = fixture.stores.runs.list(place.seen(), filter, ALL).await;
    let runs = runs.expect("reads work").items;
    let runs: Vec<_> = runs.iter().map(|run| run.id).collect();
    assert_eq!(runs, [new.id, earlier.id]);
    assert_eq!(noted(&fixture, &place.owner, "run.create").await, 2);
}

#[tokio::test]
async fn a_cancel_that_was_not_heard_is_asked_for_once() {
    let (fixture, proxy, _guard) = store().await;
    let (earlier_place, earlier) = fixture.running().await;
    let asked = fixture.cancel(&earlier_place.owner, earlier.run).await;
    asked.expect("it runs");
    let (place, lease) = fixture.running().await;

    proxy.lose();
    let asked = fixture.cancel(&place.owner, lease.run).await;

    assert!(!proxy.loses());
    let asked = asked.expect("it is repeated");
    assert_eq!(asked, fixture.on_record(&place, lease.run).await.run);
    assert_eq!(asked.cancel_requested_at, Some(fixture.now()));
    assert_eq!(noted(&fixture, &place.owner, "run.cancel").await, 1);
}
