//! What runs cost, summed up: which runs count, for whom, and what counts as more.

use crate::conversation::Usage;
use crate::run::{Run, RunStatus};
use crate::{AgentId, UserId};

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

    /// All tokens, by which sums are told apart where there are too many.
    #[must_use]
    pub fn tokens(&self) -> u128 {
        let tokens =
            |usage: &Usage| u128::from(usage.input_tokens) + u128::from(usage.output_tokens);
        tokens(&self.usage) + tokens(&self.discarded)
    }
}
