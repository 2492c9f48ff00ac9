//! What runs cost: sums over those that have ended, read from the runs themselves, so that a run which
//! is removed takes its part with it.

use async_trait::async_trait;
use hango_domain::conversation::Usage;
use hango_domain::run::{Run, RunStatus};
use hango_domain::{AgentId, TenantId, Timestamp, UserId};

use crate::store::StoreFailure;

/// What each row is the sum of.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum UsageGroup {
    /// The runs of one agent, all its versions.
    Agent,
    /// The runs that one user created.
    User,
    /// The runs that were created on one day, UTC.
    Day,
}

impl UsageGroup {
    /// The word of the HTTP contract and of the stores.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::User => "user",
            Self::Day => "day",
        }
    }
}

/// Whose sum a row is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum UsageKey {
    /// An agent's.
    Agent(AgentId),
    /// A user's.
    User(UserId),
    /// A day's: how many days it is after that of the Unix epoch.
    Day(i64),
}

impl UsageKey {
    /// The group of `group` that `run` belongs to.
    #[must_use]
    pub const fn of(group: UsageGroup, run: &Run) -> Self {
        match group {
            UsageGroup::Agent => Self::Agent(run.agent_id),
            UsageGroup::User => Self::User(run.created_by),
            UsageGroup::Day => Self::Day(run.created_at.as_micros().div_euclid(DAY)),
        }
    }
}

/// Microseconds of a day.
const DAY: i64 = 24 * 60 * 60 * 1_000_000;

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

/// A sum over runs that have ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UsageSum {
    /// Whose; `None` where all is one sum.
    pub key: Option<UsageKey>,
    /// Runs that ended well.
    pub succeeded: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Runs that were cancelled.
    pub cancelled: u64,
    /// What their answers cost.
    pub usage: Usage,
    /// What their tries cost whose answers were not kept.
    pub discarded: Usage,
}

impl UsageSum {
    /// Counts a run in; nothing of one that has not ended.
    pub fn count(&mut self, run: &Run) {
        match run.state.status() {
            RunStatus::Queued | RunStatus::Running => return,
            RunStatus::Succeeded => self.succeeded += 1,
            RunStatus::Failed => self.failed += 1,
            RunStatus::Cancelled => self.cancelled += 1,
        }
        self.usage += run.usage;
        self.discarded += run.usage_discarded;
    }
}

/// Sums up what runs cost.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait UsageStore: Send + Sync {
    /// The sums over a tenant's runs that have ended, those with the most tokens first, so that what is
    /// left out for the limit is the least; the sum of nothing is no row. A sum of tokens that is too large
    /// for its type is the largest that is not.
    async fn sum(&self, tenant: TenantId, query: UsageQuery)
    -> Result<Vec<UsageSum>, StoreFailure>;
}
