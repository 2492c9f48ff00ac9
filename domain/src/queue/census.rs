//! What waits and what runs, counted, for whoever watches the whole: the same from every process.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use super::Pending;
use crate::{TenantId, Timestamp};

/// A run that has not ended, as far as a census is concerned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Counted {
    /// What the queue knows of it.
    pub pending: Pending,
    /// When it told its last event: that of a queued run says since when it is queued.
    pub told_at: Timestamp,
    /// When the run before it in its session ended; `None` where it has not, or there is none.
    pub freed_at: Option<Timestamp>,
    /// Since when its tenant's status is what it is.
    pub tenant_since: Timestamp,
    /// When it was claimed first.
    pub started_at: Option<Timestamp>,
}

impl Counted {
    /// Since when the run could be claimed, if it can be.
    fn claimable_since(&self) -> Timestamp {
        let since = self.told_at.max(self.tenant_since);
        let others = [self.pending.available_at, self.freed_at];
        others.into_iter().flatten().fold(since, Timestamp::max)
    }
}

/// How many runs there are of each state that is not an end.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Runs that wait.
    pub queued: u64,
    /// Runs that are held.
    pub running: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.queued += other.queued;
        self.running += other.running;
    }

    const fn all(self) -> u64 {
        self.queued + self.running
    }
}

/// The runs of [`MAIN_LANE`](crate::run::MAIN_LANE), which all are in, that have not ended.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Census {
    /// The tenants that have the most of them, the most first.
    pub tenants: Vec<(TenantId, Counts)>,
    /// Those of all other tenants.
    pub others: Counts,
    /// For how long a run could be claimed, the longest; `None` if none can be. Caps of tenants, and formats
    /// that only some processes read, do not count: who waits for those waits.
    pub claimable_for: Option<Duration>,
    /// How long ago the first of those that are running was claimed first; `None` if none is.
    pub running_for: Option<Duration>,
}

impl Census {
    /// The runs of all tenants.
    #[must_use]
    pub fn total(&self) -> Counts {
        let mut total = self.others;
        for (_, counts) in &self.tenants {
            total.add(*counts);
        }
        total
    }
}

/// Counts the runs at `now`. No more than `most_tenants` are named.
///
/// A run can be claimed when it is the first of its session that has not ended, waits in the queue, is
/// available, and its tenant is active.
#[must_use]
pub fn census(runs: &[Counted], most_tenants: u32, now: Timestamp) -> Census {
    let mut tenants: BTreeMap<TenantId, Counts> = BTreeMap::new();
    for Counted { pending, .. } in runs {
        tenants.entry(pending.tenant).or_default().add(Counts {
            queued: u64::from(!pending.running),
            running: u64::from(pending.running),
        });
    }
    let mut tenants: Vec<_> = tenants.into_iter().collect();
    // Those with equally many stay in the order of their ids.
    tenants.sort_by_key(|(_, counts)| Reverse(counts.all()));
    let named = tenants.len().min(most_tenants as usize);
    let mut others = Counts::default();
    for (_, counts) in tenants.split_off(named) {
        others.add(counts);
    }

    let can_be_claimed = |run: &&Counted| {
        let Pending {
            session,
            session_no,
            ..
        } = run.pending;
        let stands_before = |other: &Counted| {
            other.pending.session == session
                && (other.pending.running || other.pending.session_no < session_no)
        };
        run.pending.tenant_active
            && run.pending.available_at.is_none_or(|at| at <= now)
            && !run.pending.running
            && !runs.iter().any(stands_before)
    };
    let claimable = runs.iter().filter(can_be_claimed);
    let claimable = claimable.map(Counted::claimable_since).min();
    let running = runs.iter().filter(|run| run.pending.running);
    let running = running.filter_map(|run| run.started_at).min();
    Census {
        tenants,
        others,
        claimable_for: claimable.map(|since| now.since(since)),
        running_for: running.map(|since| now.since(since)),
    }
}
