//! Which queued runs are claimed next.
//!
//! Every store follows this rule; the in-memory one calls it, others say it in SQL, and the
//! conformance suite compares them. Order within a session, then fairness between tenants: who has
//! fewer runs running comes first, so that a tenant with ten thousand queued runs delays another's
//! first by no more than one round, however few places are free at once.

mod census;
mod set_aside;

use std::collections::{BTreeMap, BTreeSet};

pub use census::{Census, Counted, Counts, census};
pub use set_aside::SetAside;

use crate::{RunId, SessionId, TenantId, Timestamp};

/// A run that has not ended, as far as the queue is concerned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pending {
    /// The run.
    pub run: RunId,
    /// Its tenant.
    pub tenant: TenantId,
    /// Whether that tenant may work.
    pub tenant_active: bool,
    /// Its session.
    pub session: SessionId,
    /// Its place in the session.
    pub session_no: u64,
    /// Whether it is running; else it is queued.
    pub running: bool,
    /// Before this nobody claims it.
    pub available_at: Option<Timestamp>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// The format of its memory.
    pub memory_version: u32,
}

/// What limits a claim.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClaimLimits {
    /// The most runs to claim.
    pub runs: u32,
    /// The most runs that one tenant may have running; 0 for any number.
    pub running_per_tenant: u32,
    /// The newest memory format that the claimer can read.
    pub memory_version: u32,
}

/// The runs to claim at `now`, in order.
///
/// A run is eligible when it is the first of its session that has not ended, waits in the queue, is
/// available, can be read, and its tenant is active and below its cap. Tenants take turns, each
/// with its oldest eligible run, beginning with those that have the fewest running.
#[must_use]
pub fn eligible(pending: &[Pending], limits: ClaimLimits, now: Timestamp) -> Vec<RunId> {
    let mut heads: BTreeMap<SessionId, &Pending> = BTreeMap::new();
    let mut running: BTreeMap<TenantId, u32> = BTreeMap::new();
    for run in pending {
        let head = heads.entry(run.session).or_insert(run);
        if run.session_no < head.session_no {
            *head = run;
        }
        if run.running {
            *running.entry(run.tenant).or_default() += 1;
        }
    }
    let busy: BTreeSet<SessionId> = pending
        .iter()
        .filter(|run| run.running)
        .map(|run| run.session)
        .collect();

    let mut waiting: BTreeMap<TenantId, Vec<&Pending>> = BTreeMap::new();
    for head in heads.into_values() {
        let due = head.available_at.is_none_or(|at| at <= now);
        let readable = head.memory_version <= limits.memory_version;
        if !busy.contains(&head.session) && head.tenant_active && due && readable {
            waiting.entry(head.tenant).or_default().push(head);
        }
    }

    let mut ranked = Vec::new();
    for (tenant, mut heads) in waiting {
        heads.sort_by_key(|head| (head.created_at, head.run));
        let running = running.get(&tenant).copied().unwrap_or(0);
        let room = match limits.running_per_tenant {
            0 => usize::MAX,
            cap => cap.saturating_sub(running) as usize,
        };
        // How many the tenant has running once that one is.
        let rounds = running + 1..;
        ranked.extend(rounds.zip(heads).take(room));
    }
    ranked.sort_by_key(|(round, head)| (*round, head.created_at, head.run));
    ranked
        .into_iter()
        .take(limits.runs as usize)
        .map(|(_, head)| head.run)
        .collect()
}

#[cfg(test)]
mod tests;
