//! Runs: accepted, read, waited for, and asked to end.

use std::time::Duration;

use hango_domain::access::visibility;
use hango_domain::conversation::Block;
use hango_domain::journal::ToolCall;
use hango_domain::run::{MAIN_LANE, Run, RunStatus};
use hango_domain::session::OnBusy;
use hango_domain::{MessageId, RunId, RunTrace, SessionId};
use hango_ports::agent_store::AgentRef;
use hango_ports::event_sink::LiveEvent;
use hango_ports::page::{Page, PageRequest};
use hango_ports::run_store::{NewRun, RunFilter};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};

use super::sessions::{judge_content, nothing};
use super::{Action, Caller, Input, Traceparent, UseCaseError, UseCases};
use crate::live::{Watch, Watched};

/// How often a waiting caller's run is read again, in case that its end was told elsewhere.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// A run to be accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct RunDraft {
    /// What the caller says.
    pub input: Vec<Block>,
    /// What happens if the session has pending runs.
    pub on_busy: OnBusy,
    /// The caller's own data.
    pub metadata: Map<String, Value>,
}

/// Which runs to read; what is empty or `None` leaves a condition out.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RunQuery {
    /// Only those in one of these states.
    pub states: Vec<RunStatus>,
    /// Only those of this session.
    pub session: Option<SessionId>,
    /// Only those of this agent.
    pub agent: Option<AgentRef>,
}

impl UseCases {
    /// Accepts a run: once this returns it will end, whatever happens to this process.
    pub async fn accept_run(
        &self,
        caller: &Caller,
        session: SessionId,
        draft: Input<RunDraft>,
    ) -> Result<Run, UseCaseError> {
        // Read because the audit row names the agent; which one that is never changes.
        let agent = self.session(caller, session).await?.agent_id;
        let draft = draft
            .judged(|draft, faults| judge_content("/input", &draft.input, faults))
            .accepted()?;
        let new = NewRun {
            id: RunId(self.ids.uuid()),
            session,
            created_by: caller.scope,
            input: draft.input,
            input_message_id: MessageId(self.ids.uuid()),
            metadata: draft.metadata,
            trace: self.reserved_trace(caller),
            on_busy: draft.on_busy,
            max_pending: self.settings.max_queued_runs_per_session,
        };
        let mut audit = self.caller_audit(caller, Action::RunCreate, new.id.0);
        audit.trace_id = Some(new.trace.trace_id);
        audit.detail = Map::from_iter([
            ("agent_id".to_owned(), json!(agent)),
            ("session_id".to_owned(), json!(session)),
            ("lane".to_owned(), json!(MAIN_LANE)),
        ]);
        let accepted = self.stores.runs.accept(new, audit).await?;
        for run in accepted.interrupted {
            self.signals.cancel_requested(run);
        }
        self.signals.queued();
        Ok(accepted.run)
    }

    /// Reads a run; if it has not ended, waits as long as `wait` for that.
    ///
    /// Nothing of the store is held while it waits.
    pub async fn run(
        &self,
        caller: &Caller,
        run: RunId,
        wait: Input<Duration>,
    ) -> Result<Run, UseCaseError> {
        let wait = self.on_run(caller, run, wait).await?;
        let seen = visibility(&caller.scope);
        let deadline = Instant::now() + wait;
        // Watched before it is read, so that an end in between is not missed.
        let mut watch = self.live.watch(run);
        loop {
            let found = self.stores.runs.find(seen, run).await?;
            let found = found.ok_or(UseCaseError::NotFound)?;
            let now = Instant::now();
            if found.state.status().is_terminal() || now >= deadline {
                return Ok(found);
            }
            let next_read = deadline.min(now + READ_AGAIN);
            // Elapsed or not, what counts is what the store says.
            let _ = timeout_at(next_read, ended(&mut watch)).await;
        }
    }

    /// Reads runs, newest first.
    pub async fn runs(
        &self,
        caller: &Caller,
        query: RunQuery,
        page: PageRequest,
    ) -> Result<Page<Run>, UseCaseError> {
        let mut filter = RunFilter {
            states: query.states,
            session: query.session,
            agent: None,
        };
        if let Some(agent) = query.agent {
            filter.agent = self.filtered_agent(caller, agent).await?;
            if filter.agent.is_none() {
                return Ok(nothing());
            }
        }
        let seen = visibility(&caller.scope);
        Ok(self.stores.runs.list(seen, filter, page).await?)
    }

    /// Reads a run's journal of tool calls, by turn and position.
    pub async fn tool_calls(
        &self,
        caller: &Caller,
        run: RunId,
        sent: Input<()>,
    ) -> Result<Vec<ToolCall>, UseCaseError> {
        self.on_run(caller, run, sent).await?;
        let seen = visibility(&caller.scope);
        let found = self.stores.runs.tool_calls(seen, run).await?;
        found.ok_or(UseCaseError::NotFound)
    }

    /// Asks for a run's end: a queued one has ended when this returns, a running one soon will.
    pub async fn cancel_run(
        &self,
        caller: &Caller,
        run: RunId,
        sent: Input<()>,
    ) -> Result<Run, UseCaseError> {
        self.on_run(caller, run, sent).await?;
        let audit = self.caller_audit(caller, Action::RunCancel, run.0);
        let seen = visibility(&caller.scope);
        let run = self.stores.runs.request_cancel(seen, run, audit).await?;
        match run.state.status() {
            RunStatus::Running => self.signals.cancel_requested(run.id),
            // The session's next run need not wait for it any more.
            RunStatus::Cancelled => self.signals.queued(),
            RunStatus::Queued | RunStatus::Succeeded | RunStatus::Failed => {}
        }
        Ok(run)
    }

    /// What was sent for a run, if nothing is wrong with it. Whether the run is there comes first; where
    /// nothing is wrong the store will say that.
    async fn on_run<T>(
        &self,
        caller: &Caller,
        run: RunId,
        sent: Input<T>,
    ) -> Result<T, UseCaseError> {
        if sent.is_faulty() {
            let seen = visibility(&caller.scope);
            let found = self.stores.runs.find(seen, run).await?;
            found.ok_or(UseCaseError::NotFound)?;
        }
        sent.accepted()
    }

    fn reserved_trace(&self, caller: &Caller) -> RunTrace {
        RunTrace {
            trace_id: self.ids.trace_id(),
            span_id: self.ids.span_id(),
            sampled: true,
            created_by_traceparent: caller
                .request
                .traceparent
                .as_ref()
                .map(|context| Traceparent::as_str(context).to_owned()),
        }
    }
}

/// Waits until the run may have ended.
async fn ended(watch: &mut Watch) {
    loop {
        match watch.next().await {
            Watched::Missed => return,
            Watched::Event(LiveEvent::Durable(events))
                if events.iter().any(|event| event.kind.is_terminal()) =>
            {
                return;
            }
            Watched::Event(LiveEvent::Durable(_) | LiveEvent::Delta(_)) => {}
        }
    }
}
