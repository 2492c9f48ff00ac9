//! What time it is.

use hango_domain::Timestamp;

/// Tells the time. Stores measure leases with the one they were built with, so that tests move it.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Clock: Send + Sync {
    /// The present moment. Never earlier than a moment it told before, in one process.
    fn now(&self) -> Timestamp;
}
