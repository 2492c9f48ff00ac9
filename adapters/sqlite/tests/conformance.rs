//! The SQLite store does what every store must.

use std::sync::Arc;

use hango_conformance::ManualClock;
use hango_ports::Stores;
use hango_sqlite::{Options, SqliteStore};
use tempfile::TempDir;

async fn empty_stores(clock: Arc<ManualClock>) -> (Stores, TempDir) {
    let dir = tempfile::tempdir().expect("there is room for a directory");
    let options = Options::new(clock, true);
    let store = SqliteStore::open(dir.path().join("hango.db"), options).await;
    let store = Arc::new(store.expect("a new database is made"));
    store.migrate().await.expect("the schema is brought up");
    (store.stores(), dir)
}

hango_conformance::store_tests!(empty_stores);
