//! Hints between the processes of one store: faster than the poll, never instead of it.

use async_trait::async_trait;
use hango_domain::RunId;

/// What another process may want to know at once.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Hint {
    /// Something can be claimed.
    Queued,
    /// A run's end was asked for.
    CancelRequested(RunId),
    /// Hints may have been lost: whatever a hint could have been about has to be looked for.
    Missed,
}

/// Carries hints to other processes and from them. Hints may be lost, repeated or merged.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait WakeUp: Send + Sync {
    /// Tells the other processes; never waits.
    fn announce(&self, hint: Hint);

    /// Waits for a hint of another process.
    async fn next(&self) -> Hint;
}

/// The wake-up of a store that one process has for itself: there is nobody to tell, and nobody tells.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

#[async_trait]
impl WakeUp for Alone {
    fn announce(&self, _hint: Hint) {}

    async fn next(&self) -> Hint {
        std::future::pending().await
    }
}
