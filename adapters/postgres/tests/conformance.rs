//! The PostgreSQL store does what every store must.

use std::sync::Arc;

use hango_conformance::ManualClock;
use hango_ports::Stores;
use hango_postgres::{Options, PostgresStore};
use hango_test_database::TestDatabase;

async fn empty_stores(clock: Arc<ManualClock>) -> (Stores, TestDatabase) {
    let database = TestDatabase::new().await;
    let options = Options {
        clock: Some(clock),
        ..Options::new(database.url())
    };
    let store = PostgresStore::open(options).expect("the URL is one of PostgreSQL");
    let store = Arc::new(store);
    store.migrate().await.expect("the schema is brought up");
    (store.stores(), database)
}

hango_conformance::store_tests!(empty_stores);
