//! One claimed run, from the claim to its end or its return to the queue.

use std::sync::Arc;
use std::time::Duration;

use hango_domain::access::Standing;
use hango_domain::agent_loop::{AgentLoop, Input, LoopLimits, Start};
use hango_domain::conversation::Usage;
use hango_domain::layers;
use hango_domain::memory::{MemoryError, RunMemory};
use hango_domain::middleware::{BeforeRunError, RunView};
use hango_domain::model::CallContext;
use hango_domain::note::Notes;
use hango_domain::run::{End, Lease, Outcome, Run, RunError, RunErrorCode, RunStatus, WriteId};
use hango_ports::event_sink::LiveEvent;
use hango_ports::run_store::{Claimed, RunContext};
use hango_ports::store::StoreFailure;
use hango_ports::telemetry::Observation;
use thiserror::Error;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::Shared;
use super::driver::{Abandoned, Driver, RunOptions};
use super::leases::LeaseGuard;
use super::model_call::StreamedModel;
use super::tool_call::BoundedTools;
use crate::signals::Signals;

/// Executes a claimed run. Every line that is logged meanwhile carries the run's ids.
pub(super) async fn run(
    shared: Arc<Shared>,
    claimed: Claimed,
    guard: LeaseGuard,
    permit: OwnedSemaphorePermit,
) {
    let span = tracing::info_span!(
        "run",
        "trace_id" = %claimed.run.trace.trace_id,
        "span_id" = %claimed.run.trace.span_id,
        "hango.tenant.id" = %claimed.run.tenant_id,
        "hango.agent.id" = %claimed.run.agent_id,
        "hango.session.id" = %claimed.run.session_id,
        "hango.run.id" = %claimed.run.id,
    );
    execute(&shared, claimed, &guard).instrument(span).await;
    drop(guard);
    drop(permit);
    // The session's next run may start, here or elsewhere.
    shared.parts.signals.queued();
}

async fn execute(shared: &Shared, claimed: Claimed, guard: &LeaseGuard) {
    let Claimed {
        lease,
        run,
        elapsed,
        standing,
        context,
    } = claimed;
    tracing::info!(
        attempt = lease.attempt,
        resume_turn = run.progress.resume_turn,
        "run claimed"
    );
    let executing = Executing::begin(shared, lease);
    let options = |limit: Duration| RunOptions {
        lease: guard,
        cancel: executing.cancel.clone(),
        draining: shared.draining.clone(),
        aborting: shared.aborting.clone(),
        deadline: Instant::now() + limit.saturating_sub(elapsed),
    };
    let prepared = match context {
        Ok(context) => prepare(shared, lease, &run, context, standing).await,
        Err(failure) => Err(NotPrepared::Unreadable(failure)),
    };
    let ended = match prepared {
        Ok(Prepared {
            driver,
            agent,
            memory,
            begin,
            deadline,
        }) => driver.run(agent, memory, begin, &options(deadline)).await,
        Err(not_prepared) => {
            tracing::error!(
                error = &not_prepared as &dyn std::error::Error,
                "the run cannot be executed; it fails"
            );
            end_unprepared(shared, lease, &not_prepared).await
        }
    };
    match ended {
        Ok(RunStatus::Queued) => tracing::info!("run given back"),
        Ok(status) => {
            tracing::info!(%status, "run ended");
            let ended = Observation::RunEnded { lease, status };
            shared.parts.telemetry.observe(ended);
        }
        Err(abandoned) => tracing::warn!(
            error = &abandoned as &dyn std::error::Error,
            "run abandoned; it stays as it was saved last"
        ),
    }
}

/// What a run is executed with.
struct Prepared<'a> {
    driver: Driver<'a>,
    agent: AgentLoop,
    memory: RunMemory,
    begin: Input,
    /// How long the run may take from its first start.
    deadline: Duration,
}

/// Why a run cannot even begin.
#[derive(Debug, Error)]
enum NotPrepared {
    #[error(transparent)]
    Unreadable(#[from] StoreFailure),
    #[error("runs.state_json cannot be read")]
    Memory(#[from] MemoryError),
    #[error("no provider is configured under the name {0:?}")]
    NoProvider(String),
}

impl From<BeforeRunError> for NotPrepared {
    fn from(error: BeforeRunError) -> Self {
        match error {
            BeforeRunError::Memory(error) => Self::Memory(error),
        }
    }
}

impl NotPrepared {
    /// What the run's owner is told; details are for the log, where they may be internal.
    fn to_run_error(&self) -> RunError {
        match self {
            Self::Unreadable(_) | Self::Memory(_) => RunError::new(
                RunErrorCode::Internal,
                "what is stored of the run cannot be read; the log has the details, by this run's id",
            ),
            Self::NoProvider(_) => RunError::new(RunErrorCode::ProviderRejected, self.to_string()),
        }
    }
}

async fn prepare<'a>(
    shared: &'a Shared,
    lease: Lease,
    run: &Run,
    context: RunContext,
    standing: Standing,
) -> Result<Prepared<'a>, NotPrepared> {
    let Shared {
        parts, settings, ..
    } = shared;
    let RunContext {
        agent: snapshot,
        history,
        calls,
    } = context;
    let provider = parts
        .providers
        .get(&snapshot.settings.provider)
        .ok_or_else(|| NotPrepared::NoProvider(snapshot.settings.provider.clone()))?;
    let mut memory = RunMemory::from_stored(&run.memory)?;
    let limits = settings.limits.tightened(&snapshot.settings.limits);
    let chain = layers::stack(&snapshot.settings);
    // The allowlist is the innermost layer's business; here are all tools there are.
    let view = parts.tools.view(&[]);
    let names = calls.iter().map(|call| call.name.clone());
    let classes = names
        .filter_map(|name| Some((name.clone(), chain.idempotency(&name, &view, &memory)?)))
        .collect();
    let ids = Arc::clone(&parts.ids);
    let agent = AgentLoop::new(Start {
        run,
        lease,
        history,
        calls,
        classes,
        limits: LoopLimits {
            max_iterations: limits.max_iterations,
            tool_concurrency: settings.tool_concurrency,
            retry: settings.retry,
        },
        ids: Box::new(move || ids.uuid()),
    });
    let call_context = CallContext {
        tenant: run.tenant_id,
        agent: run.agent_id,
        session: run.session_id,
        run: run.id,
        turn: agent.turn(),
        attempt: lease.attempt,
        trace: run.trace.clone(),
    };
    let notes = Notes::default();
    let view_of_run = RunView {
        context: &call_context,
        history: agent.settled_history(),
        resumed: run.progress.resume_turn > 0,
        notes: &notes,
    };
    let append = chain.before_run(&view_of_run, &mut memory).await?;
    let driver = Driver {
        runs: &*parts.runs,
        sink: &*parts.sink,
        telemetry: &*parts.telemetry,
        gate: &shared.gate,
        model: StreamedModel::new(Arc::clone(provider), Arc::clone(&parts.sink)),
        tools: BoundedTools {
            chain: chain.clone(),
            view: view.clone(),
            timeout: limits.tool_timeout,
            max_bytes: settings.tool_output_max_bytes,
        },
        agent: snapshot,
        chain,
        view,
        context: call_context,
        notes,
    };
    Ok(Prepared {
        driver,
        agent,
        memory,
        begin: Input::Begin { standing, append },
        deadline: limits.deadline,
    })
}

/// Ends a run that cannot be executed. If that cannot be written either, the run is taken back by the
/// sweep and ends as stalled.
async fn end_unprepared(
    shared: &Shared,
    lease: Lease,
    why: &NotPrepared,
) -> Result<RunStatus, Abandoned> {
    let end = End {
        lease,
        write: WriteId(shared.parts.ids.uuid()),
        outcome: Outcome::Failed(why.to_run_error()),
        stop_reason: None,
        turn: None,
        results: Vec::new(),
        messages: Vec::new(),
        final_message_id: None,
        usage: Usage::default(),
        usage_discarded: Usage::default(),
        memory: None,
        todos: None,
    };
    match shared.parts.runs.finish(end).await {
        Ok(written) => {
            shared.parts.sink.emit(LiveEvent::Durable(written.events));
            Ok(written.status)
        }
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the run could not be ended"
            );
            Err(Abandoned::LeaseLost)
        }
    }
}

/// A run that is being executed here, known to those who may ask for its end.
struct Executing<'a> {
    signals: &'a Signals,
    lease: Lease,
    cancel: CancellationToken,
}

impl<'a> Executing<'a> {
    fn begin(shared: &'a Shared, lease: Lease) -> Self {
        let signals = &*shared.parts.signals;
        Self {
            signals,
            lease,
            cancel: signals.begin(lease.run),
        }
    }
}

impl Drop for Executing<'_> {
    fn drop(&mut self) {
        self.signals.end(self.lease.run);
    }
}
