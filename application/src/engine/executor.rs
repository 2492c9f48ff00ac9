//! One claimed run, from the claim to its end or its return to the queue.

use std::sync::Arc;
use std::time::Duration;

use hango_domain::RunId;
use hango_domain::access::Standing;
use hango_domain::agent_loop::{AgentLoop, Input, LoopLimits, Start};
use hango_domain::chain::Chain;
use hango_domain::conversation::Block;
use hango_domain::layers;
use hango_domain::memory::RunMemory;
use hango_domain::middleware::{BeforeRunError, RunView};
use hango_domain::model::CallContext;
use hango_domain::note::Notes;
use hango_domain::run::{Lease, Run, RunStatus};
use hango_ports::run_store::{Claimed, RunContext};
use hango_ports::telemetry::Observation;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::Shared;
use super::account::Account;
use super::driver::{Driver, Memory};
use super::leases::LeaseGuard;
use super::model_call::StreamedModel;
use super::options::{Abandoned, RunOptions};
use super::supervise::caught;
use super::tool_call::BoundedTools;
use super::unprepared::{self, NotPrepared};
use crate::live;
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
    let execution = Box::pin(execute(&shared, claimed, &guard));
    let ended = execution.instrument(span.clone()).await;
    drop(guard);
    drop(permit);
    // The session's next run may start, here or elsewhere.
    shared.parts.signals.executed();
    if let Some(ended) = ended {
        ended.tell(&shared).instrument(span).await;
    }
}

/// A run that ended here, of which nobody was told yet: nothing waits for that.
struct Ended {
    run: RunId,
    status: RunStatus,
    account: Option<Arc<Account>>,
}

impl Ended {
    async fn tell(self, shared: &Shared) {
        let Self {
            run,
            status,
            account,
        } = self;
        let end = match account {
            Some(account) => Some(account.ended(shared, status).await),
            None => None,
        };
        let ended = Observation::RunEnded { run, status, end };
        shared.parts.telemetry.observe(ended);
    }
}

async fn execute(shared: &Shared, claimed: Claimed, guard: &LeaseGuard) -> Option<Ended> {
    let account = Account::begin(shared, &claimed);
    let account = account.as_ref();
    let Claimed {
        lease,
        run,
        elapsed,
        standing,
        events,
        context,
    } = claimed;
    live::tell(&*shared.parts.sink, &events);
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
    let open = context.as_ref().ok();
    let open = open
        .map(|context| context.calls.clone())
        .unwrap_or_default();
    let prepared = match context {
        Ok(context) => prepare(shared, lease, &run, context, standing, account).await,
        Err(failure) => Err(NotPrepared::Unreadable(failure)),
    };
    let broken = match prepared {
        Ok(Prepared {
            driver,
            agent,
            memory,
            begin,
            deadline,
        }) => {
            let options = options(deadline);
            match caught(driver.run(agent, memory, begin, &options)).await {
                Some(Ok(status)) => return report(shared, lease, account, Some(status)),
                Some(Err(Abandoned::LeaseLost)) => {
                    return report(shared, lease, account, None);
                }
                Some(Err(defect)) => {
                    log_broken(&defect);
                    unprepared::defect()
                }
                // What panicked has said so in the log.
                None => unprepared::defect(),
            }
        }
        Err(not_prepared) => {
            log_broken(&not_prepared);
            not_prepared.to_run_error()
        }
    };
    // A run that cannot go on ends, so that it is not claimed and broken again for ever.
    let ended = unprepared::end(shared, lease, &open, broken, account).await;
    report(shared, lease, account, ended.ok())
}

fn log_broken(why: &(dyn std::error::Error + 'static)) {
    tracing::error!(error = why, "the run cannot be executed further; it fails");
}

/// Tells where the run stands now, `None` if it is not this process's any more; what is to be told of its end.
fn report(
    shared: &Shared,
    lease: Lease,
    account: Option<&Arc<Account>>,
    status: Option<RunStatus>,
) -> Option<Ended> {
    match status {
        Some(RunStatus::Queued) => {
            tracing::info!("run given back");
            if let Some(account) = account {
                account.given_back();
            }
            None
        }
        Some(status) => {
            tracing::info!(%status, "run ended");
            Some(Ended {
                run: lease.run,
                status,
                account: account.cloned(),
            })
        }
        None => {
            let lost = Observation::LeaseLost { lease };
            shared.parts.telemetry.observe(lost);
            None
        }
    }
}

/// What a run is executed with.
struct Prepared<'a> {
    driver: Driver<'a>,
    agent: AgentLoop,
    memory: Memory,
    begin: Input,
    /// How long the run may take from its first start.
    deadline: Duration,
}

async fn prepare<'a>(
    shared: &'a Shared,
    lease: Lease,
    run: &Run,
    context: RunContext,
    standing: Standing,
    account: Option<&Arc<Account>>,
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
    let stored = RunMemory::from_stored(&run.memory)?;
    let mut memory = stored.clone();
    let limits = settings.limits.tightened(&snapshot.settings.limits);
    let chain = layers::stack(&snapshot.settings, settings.repeat_call_threshold);
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
    if let Some(account) = account {
        account.layers(chain.names().collect(), &memory.todos);
    }
    let before_run = before_run(&chain, &view_of_run, &mut memory, account).await;
    let append = before_run.ok_or(NotPrepared::Panicked)??;
    let driver = Driver {
        runs: &*parts.runs,
        sink: &*parts.sink,
        telemetry: &*parts.telemetry,
        gate: &shared.gate,
        model: StreamedModel::new(Arc::clone(provider), Arc::clone(&parts.sink))
            .told(account.cloned()),
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
        account: account.cloned(),
    };
    Ok(Prepared {
        driver,
        agent,
        memory: Memory {
            stored,
            now: memory,
        },
        begin: Input::Begin { standing, append },
        deadline: limits.deadline,
    })
}

/// Lets the layers prepare the run; `None` if one panicked.
async fn before_run(
    chain: &Chain,
    run: &RunView<'_>,
    memory: &mut RunMemory,
    account: Option<&Arc<Account>>,
) -> Option<Result<Option<Vec<Block>>, BeforeRunError>> {
    let Some(account) = account else {
        return caught(chain.before_run(run, memory)).await;
    };
    let begun = account.now();
    let mut until = Vec::new();
    let ended = |layer| until.push((layer, account.now()));
    let prepared = caught(chain.before_run_watched(run, memory, ended)).await;
    account.prepared(begun, until);
    prepared
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
            cancel: signals.begin(lease),
        }
    }
}

impl Drop for Executing<'_> {
    fn drop(&mut self) {
        self.signals.end(self.lease);
    }
}
