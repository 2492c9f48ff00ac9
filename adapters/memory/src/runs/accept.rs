//! Taking runs in.

use hango_domain::access::visibility;
use hango_domain::run::{Change, Run, RunStatus};
use hango_domain::session::OnBusy;
use hango_domain::{RunId, Timestamp};
use hango_ports::agent_store::AgentRef;
use hango_ports::audit_store::NewAudit;
use hango_ports::run_store::{Accepted, NewRun, RunStoreError};

use crate::session_row::{RunRow, SessionRow};
use crate::state::State;

impl State {
    /// Adds a run behind the others of its session.
    pub(crate) fn accept(
        &mut self,
        new: NewRun,
        audit: NewAudit,
        now: Timestamp,
    ) -> Result<Accepted, RunStoreError> {
        let seen = visibility(&new.created_by);
        if self.session_of(new.id).is_some() {
            let known = self.run(seen, new.id).ok_or(RunStoreError::NotFound)?;
            return Ok(Accepted {
                run: known.run.clone(),
                interrupted: Vec::new(),
                events: Vec::new(),
            });
        }
        let row = self
            .session(seen, new.session)
            .ok_or(RunStoreError::NotFound)?;
        let agent = self
            .agent(row.session.tenant_id, &AgentRef::Id(row.session.agent_id))
            .ok_or(RunStoreError::NotFound)?;
        if agent.archived_at.is_some() {
            return Err(RunStoreError::AgentArchived);
        }
        let agent = agent.snapshot();
        let (queued, running) = match new.on_busy {
            OnBusy::Interrupt => (row.in_state(RunStatus::Queued), row.line.running_run),
            OnBusy::Enqueue | OnBusy::Reject => (Vec::new(), None),
        };
        let cancelled = queued.iter().fold(row.line, |line, run| {
            line.moved(*run, RunStatus::Queued, RunStatus::Cancelled)
        });
        cancelled.accept(new.on_busy, new.max_pending)?;

        self.note(audit.with_agent(agent.id), now)?;
        // Nothing can be refused any more.
        let row = self
            .session_mut(seen, new.session)
            .ok_or(RunStoreError::NotFound)?;
        let mut events = Vec::new();
        for run in queued.into_iter().chain(running) {
            let cancelled = row.change(run, Change::RequestCancel { closing: None }, now);
            events.extend(cancelled.into_iter().flatten().flat_map(|it| it.events));
        }
        row.line = row.line.accept(new.on_busy, new.max_pending)?;
        let run = new.queued(agent.id, agent.version, row.line.last_run_no, now);
        let run = RunRow::accepted(run, agent);
        let accepted = Accepted {
            run: run.run.clone(),
            interrupted: running.into_iter().collect(),
            events: events.into_iter().chain(run.events.clone()).collect(),
        };
        row.runs.insert(accepted.run.id, run);
        Ok(accepted)
    }
}

impl SessionRow {
    /// Its runs of that status, in their order.
    fn in_state(&self, status: RunStatus) -> Vec<RunId> {
        let mut runs: Vec<&Run> = self.runs.values().map(|row| &row.run).collect();
        runs.retain(|run| run.state.status() == status);
        runs.sort_by_key(|run| run.session_no);
        runs.into_iter().map(|run| run.id).collect()
    }
}
