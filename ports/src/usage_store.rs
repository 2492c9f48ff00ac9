//! What runs cost: sums over those that have ended, read from the runs themselves, so that a run which
//! is removed takes its part with it.

use async_trait::async_trait;
use hango_domain::usage::{UsageGroup, UsageSum};
use hango_domain::{TenantId, Timestamp};

use crate::store::StoreFailure;

/// Which runs are summed up, and how.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UsageQuery {
    /// Only runs that were created at this moment or later.
    pub from: Timestamp,
    /// Only runs that were created before this moment.
    pub to: Timestamp,
    /// A row for each of these; `None` for one row of all.
    pub group: Option<UsageGroup>,
    /// The most rows, at least 1: those that used the most tokens.
    pub limit: u32,
}

/// Sums up what runs cost.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait UsageStore: Send + Sync {
    /// The sums over a tenant's runs that have ended, those with the most [tokens](UsageSum::tokens) first, so that what is
    /// left out for the limit is the least; the sum of nothing is no row. A sum of tokens that is too large
    /// for its type is the largest that is not.
    async fn sum(&self, tenant: TenantId, query: UsageQuery)
    -> Result<Vec<UsageSum>, StoreFailure>;
}
