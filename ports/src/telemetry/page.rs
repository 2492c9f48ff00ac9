//! The page that Prometheus reads.

use thiserror::Error;

use crate::store::BoxError;

/// Writes what was counted, in Prometheus' text format, version 0.0.4.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait MetricsPage: Send + Sync {
    /// All of it, as it is now. Costs some CPU, and waits for nothing.
    ///
    /// # Errors
    ///
    /// There is nothing to be read any more; what was counted goes on being counted.
    fn page(&self) -> Result<String, MetricsUnavailable>;
}

/// The page could not be written.
#[derive(Debug, Error)]
#[error("the metrics cannot be written")]
pub struct MetricsUnavailable(#[source] pub BoxError);
