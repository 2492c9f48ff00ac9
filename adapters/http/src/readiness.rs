//! Whether this process takes work: it is not draining, and its store answers.

use std::sync::Arc;
use std::time::Duration;

use hango_ports::store::StoreHealth;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long the store may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(2);

/// What decides whether this process is ready.
#[derive(Clone)]
pub struct Readiness {
    /// The store.
    pub store: Arc<dyn StoreHealth>,
    /// Cancelled when the process begins to drain.
    pub draining: CancellationToken,
}

impl Readiness {
    /// The check that fails; `None` when the process is ready.
    pub async fn failing(&self) -> Option<&'static str> {
        if self.draining.is_cancelled() {
            return Some("draining");
        }
        match timeout(PATIENCE, self.store.check()).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the store is not ready");
                Some("store")
            }
            Err(_) => {
                tracing::warn!("the store did not answer in time");
                Some("store")
            }
        }
    }
}
