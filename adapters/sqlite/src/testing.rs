//! What the tests of this crate's insides begin with.

use std::sync::Arc;

use hango_conformance::ManualClock;
use tempfile::TempDir;

use crate::{Options, SqliteStore};

/// A database that is as a server has it, in a directory of its own.
pub(crate) async fn store() -> (Arc<SqliteStore>, TempDir) {
    let dir = tempfile::tempdir().expect("there is room for a directory");
    let options = Options::new(Arc::new(ManualClock::default()), true);
    let store = SqliteStore::open(dir.path().join("hango.db"), options).await;
    let store = store.expect("a new database is made");
    store.migrate().await.expect("the schema is brought up");
    (Arc::new(store), dir)
}
