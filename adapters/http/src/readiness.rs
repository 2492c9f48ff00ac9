//! Whether this process takes work: it is not draining, and its store answers.

use std::sync::Arc;
use std::time::Duration;

use hango_ports::store::StoreHealth;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long the store may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether this process is ready.
pub struct Readiness {
    store: Arc<dyn StoreHealth>,
    draining: CancellationToken,
}

impl Readiness {
    /// Ready for as long as the store answers, until the process drains.
    #[must_use]
    pub fn new(store: Arc<dyn StoreHealth>) -> Self {
        Self {
            store,
            draining: CancellationToken::new(),
        }
    }

    /// Notes that the process drains: it is not ready any more, and nobody is kept waiting.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// Waits until the process drains.
    pub(crate) async fn draining(&self) {
        self.draining.cancelled().await;
    }

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
