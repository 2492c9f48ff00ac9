//! The memory store does what every store must.

use std::sync::Arc;

use hango_conformance::ManualClock;
use hango_memory::MemoryStore;
use hango_ports::Stores;

#[expect(clippy::unused_async, reason = "factories share one signature")]
async fn empty_stores(clock: Arc<ManualClock>) -> (Stores, ()) {
    (Arc::new(MemoryStore::new(clock)).stores(), ())
}

hango_conformance::store_tests!(empty_stores);
