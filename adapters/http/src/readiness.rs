//! Whether this process takes work: it has started, its store answers, and it is not draining.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hango_ports::store::StoreHealth;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::Api;
use crate::problem::Problem;

/// How long the store may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(2);

/// The check that fails while the process starts.
pub(crate) const STARTING: &str = "starting";

/// Whether this process is ready.
pub struct Readiness {
    store: Arc<dyn StoreHealth>,
    started: AtomicBool,
    draining: CancellationToken,
}

impl Readiness {
    /// Not ready before the process has started, then for as long as the store answers, until the
    /// process drains.
    #[must_use]
    pub fn new(store: Arc<dyn StoreHealth>) -> Self {
        Self {
            store,
            started: AtomicBool::new(false),
            draining: CancellationToken::new(),
        }
    }

    /// Notes that the process has started: the store is what this build needs, and takes calls.
    pub fn start(&self) {
        self.started.store(true, Ordering::SeqCst);
    }

    /// Whether calls can be answered: the store may be asked for more than its health.
    pub(crate) fn has_started(&self) -> bool {
        self.started.load(Ordering::SeqCst)
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
            Ok(Ok(())) => (!self.has_started()).then_some(STARTING),
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

/// Answers calls with a problem as long as the process starts: nothing is asked of a store that may not
/// be there, or not be up to date.
pub(crate) async fn unless_starting(
    State(api): State<Api>,
    request: Request,
    next: Next,
) -> Response {
    if api.readiness.has_started() {
        next.run(request).await
    } else {
        Problem::not_ready(STARTING).into_response()
    }
}
