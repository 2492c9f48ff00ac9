//! Handing runs out.

use hango_domain::queue::{Pending, eligible};
use hango_domain::run::Change;
use hango_domain::{RunId, Timestamp};
use hango_ports::run_store::{ClaimRequest, Claimed, Claims, RunContext};

use crate::state::State;

impl State {
    /// Claims what [`eligible`] names.
    pub(crate) fn claim(&mut self, request: ClaimRequest, now: Timestamp) -> Claims {
        let mut pending = self.pending();
        if let Some(only) = request.only {
            leave_only(&mut pending, only);
        }
        let mut selected = eligible(&pending, request.limits, now);
        selected.retain(|run| request.only.is_none_or(|only| only == *run));
        let won: Vec<_> = selected
            .iter()
            .filter_map(|run| self.claim_one(*run, request, now))
            .collect();
        Claims::of(&request, selected.len(), won.len(), won)
    }

    fn claim_one(&mut self, id: RunId, request: ClaimRequest, now: Timestamp) -> Option<Claimed> {
        let change = Change::Claim {
            owner: request.owner,
            ttl: request.ttl,
        };
        let applied = self.session_of_mut(id)?.change(id, change, now)?.ok()?;
        let session = self.session_of(id)?;
        let row = session.runs.get(&id)?;
        Some(Claimed {
            lease: row.run.lease()?,
            run: row.run.clone(),
            elapsed: now.since(row.run.started_at?),
            standing: self.standing(&session.session, &row.run),
            events: applied.events,
            context: Ok(RunContext {
                agent: row.agent.clone(),
                history: session.messages.clone(),
                calls: row.open_calls(),
            }),
        })
    }
}

/// Leaves out what waits in other sessions than that of `only`: it stands behind nobody but the earlier
/// runs of its session and its tenant's cap.
fn leave_only(pending: &mut Vec<Pending>, only: RunId) {
    let session = pending.iter().find(|it| it.run == only);
    let session = session.map(|it| it.session);
    pending.retain(|it| it.running || Some(it.session) == session);
}
