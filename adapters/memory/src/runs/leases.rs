//! Keeping runs, and taking them from those who fell silent.

use std::time::Duration;

use hango_domain::run::{Change, Lease, Reclaim, Run, RunState};
use hango_domain::{OwnerId, RunId, Timestamp};
use hango_ports::run_store::{Held, ReclaimRequest, Reclaimed, Renewal, Standing};

use crate::state::State;

impl State {
    /// Renews what is in force of `held`, and finds what the owner forgot.
    pub(crate) fn renew(
        &mut self,
        owner: OwnerId,
        held: &[Held],
        ttl: Duration,
        now: Timestamp,
    ) -> Renewal {
        let mut renewal = Renewal {
            orphans: self.forgotten(owner, held),
            ..Renewal::default()
        };
        for held in held {
            let lease = Lease {
                run: held.run,
                owner,
                attempt: held.attempt,
            };
            match self.renew_one(lease, ttl, now) {
                Some(standing) => renewal.renewed.push((*held, standing)),
                None => renewal.lost.push(*held),
            }
        }
        renewal
    }

    fn renew_one(&mut self, lease: Lease, ttl: Duration, now: Timestamp) -> Option<Standing> {
        let row = self.session_of_mut(lease.run)?;
        let applied = row
            .change(lease.run, Change::Renew { lease, ttl }, now)?
            .ok()?;
        let session = row.session.clone();
        Some(self.standing(&session, &applied.run))
    }

    fn forgotten(&self, owner: OwnerId, held: &[Held]) -> Vec<Lease> {
        let leases = self.runs().filter_map(Run::lease);
        leases
            .filter(|lease| lease.owner == owner)
            .filter(|lease| {
                !held.contains(&Held {
                    run: lease.run,
                    attempt: lease.attempt,
                })
            })
            .collect()
    }

    /// Takes runs back, the longest silent first.
    pub(crate) fn reclaim(&mut self, request: ReclaimRequest, now: Timestamp) -> Vec<Reclaimed> {
        self.longest_silent_first()
            .into_iter()
            .filter_map(|run| self.reclaim_one(run, request, now))
            .take(request.limit as usize)
            .collect()
    }

    fn longest_silent_first(&self) -> Vec<RunId> {
        let mut held: Vec<(Timestamp, RunId)> = self
            .runs()
            .filter_map(|run| match run.state {
                RunState::Running { expires_at, .. } => Some((expires_at, run.id)),
                RunState::Queued
                | RunState::Succeeded { .. }
                | RunState::Failed { .. }
                | RunState::Cancelled { .. } => None,
            })
            .collect();
        held.sort_unstable();
        held.into_iter().map(|(_, run)| run).collect()
    }

    fn reclaim_one(
        &mut self,
        id: RunId,
        request: ReclaimRequest,
        now: Timestamp,
    ) -> Option<Reclaimed> {
        let change = Change::Reclaim(Reclaim {
            max_stalled: request.max_stalled,
            expired_only: request.expired_only,
            closing: None,
        });
        let row = self.session_of_mut(id)?;
        let before = &row.runs.get(&id)?.run;
        let (previous, expired_at) = (before.lease()?, before.lease_expires_at()?);
        let applied = row.change(id, change, now)?.ok()?;
        Some(Reclaimed {
            previous,
            expired_at,
            resume_turn: applied.run.progress.resume_turn,
            status: applied.run.state.status(),
            events: applied.events,
        })
    }
}
