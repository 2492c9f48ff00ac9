//! Runs: the port's reads and the holder's writes. Taking runs in is in [`accept`], handing them out
//! and taking them back in [`claim`] and [`leases`], what is around them in [`around`], removing what is old in [`prune`].

mod accept;
mod around;
mod claim;
mod leases;
mod prune;

use std::time::Duration;

use async_trait::async_trait;
use hango_domain::access::Visibility;
use hango_domain::event::Event;
use hango_domain::journal::ToolCall;
use hango_domain::queue::census;
use hango_domain::run::{
    Answer, Boundary, Change, End, GiveBack, Lease, Record, Repair, Resume, Retry, Run,
};
use hango_domain::{OwnerId, RunId};
use hango_ports::audit_store::NewAudit;
use hango_ports::idempotency::IdempotencyKey;
use hango_ports::page::{Page, PageRequest, Position};
use hango_ports::run_store::{
    Accepted, Cancelled, Census, ClaimRequest, Claims, Held, MAX_LIFE, NewRun, PruneRequest,
    Pruned, ReclaimRequest, Reclaimed, Renewal, RunFilter, RunStore, RunStoreError, Situation,
    Story, Written, is_of_life,
};
use serde_json::json;

use crate::MemoryStore;
use crate::pages::page;
use crate::session_row::RunRow;
use crate::state::State;

#[async_trait]
impl RunStore for MemoryStore {
    async fn accept(
        &self,
        new: NewRun,
        audit: NewAudit,
        once: Option<IdempotencyKey>,
    ) -> Result<Accepted, RunStoreError> {
        let mut state = self.lock();
        let now = self.clock.now();
        state.begin(once.as_ref(), now)?;
        let accepted = state.accept(new, audit, now)?;
        state.answer(once.as_ref(), json!(accepted.run), now);
        Ok(accepted)
    }

    async fn find(&self, seen: Visibility, run: RunId) -> Result<Option<Run>, RunStoreError> {
        Ok(self.lock().run(seen, run).map(|row| row.run.clone()))
    }

    async fn list(
        &self,
        seen: Visibility,
        filter: RunFilter,
        request: PageRequest,
    ) -> Result<Page<Run>, RunStoreError> {
        let state = self.lock();
        let asked = |run: &&Run| {
            (filter.states.is_empty() || filter.states.contains(&run.state.status()))
                && filter.session.is_none_or(|it| run.session_id == it)
                && filter.agent.is_none_or(|it| run.agent_id == it)
                && state.session(seen, run.session_id).is_some()
        };
        let rows = state.runs().filter(asked).cloned().collect();
        Ok(page(rows, request, |run| Position {
            at: run.created_at,
            id: run.id.0,
        }))
    }

    async fn tool_calls(
        &self,
        seen: Visibility,
        run: RunId,
    ) -> Result<Option<Vec<ToolCall>>, RunStoreError> {
        let state = self.lock();
        Ok(state.run(seen, run).map(|row| {
            let mut calls = row.journal.clone();
            calls.sort_by_key(|call| (call.turn, call.position));
            calls
        }))
    }

    async fn events(
        &self,
        seen: Visibility,
        run: RunId,
        after: u64,
        limit: u32,
    ) -> Result<Option<Vec<Event>>, RunStoreError> {
        let state = self.lock();
        Ok(state.run(seen, run).map(|row| {
            let behind = row.events.iter().filter(|event| event.n > after);
            behind.take(limit as usize).cloned().collect()
        }))
    }

    async fn story(&self, run: RunId) -> Result<Option<Story>, RunStoreError> {
        let state = self.lock();
        let row = state.session_of(run).and_then(|row| row.runs.get(&run));
        Ok(row.map(|row| {
            let life = row.events.iter().filter(|event| is_of_life(&event.kind));
            let passed_over = life.clone().count().saturating_sub(MAX_LIFE);
            Story {
                run: row.run.clone(),
                agent: row.agent.clone(),
                life: life.skip(passed_over).cloned().collect(),
                tool_calls: u32::try_from(row.journal.len()).unwrap_or(u32::MAX),
            }
        }))
    }

    async fn situation(
        &self,
        seen: Visibility,
        run: RunId,
    ) -> Result<Option<Situation>, RunStoreError> {
        Ok(self.lock().situation(seen, run, self.clock.now()))
    }

    async fn census(&self, most_tenants: u32) -> Result<Census, RunStoreError> {
        let counted = self.lock().counted();
        Ok(census(&counted, most_tenants, self.clock.now()))
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims, RunStoreError> {
        Ok(self.lock().claim(request, self.clock.now()))
    }

    async fn renew(
        &self,
        owner: OwnerId,
        held: Vec<Held>,
        ttl: Duration,
    ) -> Result<Renewal, RunStoreError> {
        Ok(self.lock().renew(owner, &held, ttl, self.clock.now()))
    }

    async fn cancels(&self, owner: OwnerId) -> Result<Vec<Lease>, RunStoreError> {
        let state = self.lock();
        let asked = state
            .runs()
            .filter(|run| run.cancel_requested_at.is_some())
            .filter_map(Run::lease)
            .filter(|lease| lease.owner == owner);
        Ok(asked.collect())
    }

    async fn repair(&self, change: Repair) -> Result<Written, RunStoreError> {
        self.write(change.lease, Change::Repair(change))
    }

    async fn answer(&self, change: Answer) -> Result<Written, RunStoreError> {
        self.write(change.lease, Change::Answer(change))
    }

    async fn resume(&self, change: Resume) -> Result<Written, RunStoreError> {
        self.write(change.lease, Change::Resume(change))
    }

    async fn record(&self, change: Record) -> Result<Written, RunStoreError> {
        self.write(change.lease, Change::Record(change))
    }

    async fn complete_turn(&self, change: Boundary) -> Result<Written, RunStoreError> {
        self.write(change.lease, Change::CompleteTurn(change))
    }

    async fn retry(&self, change: Retry) -> Result<Written, RunStoreError> {
        self.write(change.lease, Change::Retry(change))
    }

    async fn give_back(&self, change: GiveBack) -> Result<Written, RunStoreError> {
        self.write(change.lease, Change::GiveBack(change))
    }

    async fn finish(&self, change: End) -> Result<Written, RunStoreError> {
        self.write(change.lease, Change::Finish(change))
    }

    async fn request_cancel(
        &self,
        seen: Visibility,
        run: RunId,
        audit: NewAudit,
    ) -> Result<Cancelled, RunStoreError> {
        let mut state = self.lock();
        let now = self.clock.now();
        let before = state.run(seen, run).map(|row| row.run.clone());
        let before = before.ok_or(RunStoreError::NotFound)?;
        let change = Change::RequestCancel { closing: None };
        before
            .clone()
            .apply(&change, now)
            .map_err(RunStoreError::Refused)?;
        if before.cancel_requested_at.is_none() {
            state.note(audit, now)?;
        }
        let row = state.session_of_mut(run).ok_or(RunStoreError::NotFound)?;
        let applied = row
            .change(run, change, now)
            .ok_or(RunStoreError::NotFound)?
            .map_err(RunStoreError::Refused)?;
        Ok(Cancelled {
            run: applied.run,
            events: applied.events,
        })
    }

    async fn reclaim(&self, request: ReclaimRequest) -> Result<Vec<Reclaimed>, RunStoreError> {
        Ok(self.lock().reclaim(request, self.clock.now()))
    }

    async fn prune(&self, request: PruneRequest) -> Result<Pruned, RunStoreError> {
        Ok(self.lock().prune(request, self.clock.now()))
    }
}

impl MemoryStore {
    /// A change on a run's behalf, by whoever says that he holds it.
    fn write(&self, lease: Lease, change: Change) -> Result<Written, RunStoreError> {
        let mut state = self.lock();
        let row = state
            .session_of_mut(lease.run)
            .ok_or(RunStoreError::NotFound)?;
        let changed = row.change(lease.run, change, self.clock.now());
        let session = row.session.clone();
        let applied = changed
            .ok_or(RunStoreError::NotFound)?
            .map_err(RunStoreError::Refused)?;
        Ok(Written {
            status: applied.run.state.status(),
            standing: state.standing(&session, &applied.run),
            events: applied.events,
        })
    }
}

impl State {
    /// The run, if it is there for the caller.
    fn run(&self, seen: Visibility, run: RunId) -> Option<&RunRow> {
        self.session_of_seen(seen, run)?.runs.get(&run)
    }
}
