//! The engine: executes runs.
//!
//! | part | what it does |
//! | --- | --- |
//! | `scheduler` | takes a permit, claims no more than there are permits, starts executors |
//! | `executor`, `unprepared` | one claimed run, from the claim to its end or its return |
//! | `driver`, `options` | the only loop that awaits: asks the domain's loop for a step, performs it |
//! | `batch` | the driver's batches of tool calls |
//! | `account` | what is told of an execution to whoever wants all of it |
//! | `saving` | the driver's fenced writes |
//! | `model_call`, `tool_call` | the innermost handlers of the onion |
//! | `leases`, `renewal` | which claims this process holds, and how long they last |
//! | `gate` | keeps calls from a provider that asked for rest |
//! | `sweep` | takes runs back from holders that fell silent; polls for cancels |
//! | `pruning` | removes what is old |
//! | `census` | tells operators how much there is to do |
//! | `tasks`, `supervise` | where all of it is performed; starts again what panics |
//!
//! Rules: a permit before a claim; no database connection across a wait; nothing is started under a
//! lease that may have run out; what must last is a fenced write.

mod account;
mod batch;
mod census;
mod driver;
mod executor;
mod gate;
mod leases;
mod model_call;
mod options;
mod pruning;
mod renewal;
mod saving;
mod scheduler;
mod supervise;
mod sweep;
mod tasks;
mod tool_call;
mod unprepared;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hango_domain::OwnerId;
use hango_domain::agent::RunLimits;
use hango_domain::retention::Retention;
use hango_domain::retry::RetryPolicy;
use hango_domain::tool::Registry;
use hango_ports::{EventSink, Ids, Provider, RunStore, Telemetry};
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::signals::Signals;
use crate::story::StoryTeller;
use gate::ProviderGate;
use leases::Leases;
use tasks::{Executors, PresentRuntime};

pub use tasks::{Over, Tasks};

/// After what time a store that did not answer is asked again, where the regular interval is longer.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// How long runs that were broken off at the end of a drain may take to be given back.
const GIVE_BACK_TIME: Duration = Duration::from_secs(5);

/// What an engine works with.
pub struct EngineParts {
    /// This process, for as long as it lives; never used before.
    pub owner: OwnerId,
    /// Where runs are kept.
    pub runs: Arc<dyn RunStore>,
    /// New identities.
    pub ids: Arc<dyn Ids>,
    /// The configured providers, by name.
    pub providers: BTreeMap<String, Arc<dyn Provider>>,
    /// The tools.
    pub tools: Registry,
    /// Who watches runs.
    pub sink: Arc<dyn EventSink>,
    /// Who watches the engine.
    pub telemetry: Arc<dyn Telemetry>,
    /// Hints from and to others.
    pub signals: Arc<Signals>,
}

/// How an engine works.
#[derive(Clone, Copy, Debug)]
pub struct EngineSettings {
    /// Runs executed at once; at least 1.
    pub workers: usize,
    /// How long a claim lasts without renewal.
    pub lease_ttl: Duration,
    /// How often claims are renewed; below half of `lease_ttl`.
    pub heartbeat: Duration,
    /// How often runs of silent holders are looked for.
    pub reclaim_interval: Duration,
    /// How often queued runs and cancels are looked for.
    pub poll_interval: Duration,
    /// See [`hango_domain::run::Reclaim::max_stalled`].
    pub max_stalled: u32,
    /// The most running runs of one tenant; 0 for any number.
    pub running_per_tenant: u32,
    /// What a run may take; agents only tighten it.
    pub limits: RunLimits,
    /// Calls of one batch at a time; at least 1.
    pub tool_concurrency: usize,
    /// The longest tool result, in bytes.
    pub tool_output_max_bytes: usize,
    /// See [`hango_domain::layers::RepeatCall`]; for agents that set none of their own.
    pub repeat_call_threshold: u32,
    /// How model calls are retried.
    pub retry: RetryPolicy,
    /// How long what is over is kept; `None` for ever.
    pub retention: Option<Retention>,
    /// Whether no other process can execute runs of this store, so that whatever is running when the
    /// engine starts is taken back at once.
    pub exclusive: bool,
}

/// An engine that executes. Dropping it without [`drain`](Self::drain) is a crash, which is safe.
pub struct Engine {
    shared: Arc<Shared>,
    renewal: Over,
    /// Nothing is claimed or renewed any more once the engine is gone.
    stops: DropGuard,
}

/// What the parts of an engine have in common.
struct Shared {
    parts: EngineParts,
    settings: EngineSettings,
    leases: Leases,
    gate: ProviderGate,
    permits: Arc<Semaphore>,
    tasks: Arc<dyn Tasks>,
    /// What a drain waits for: executors, and claims that are under way.
    executors: Executors,
    /// Whether an exclusive engine took back what an earlier process left.
    took_back: AtomicBool,
    /// Cancelled when nothing may be claimed any more and runs go back at their boundaries.
    draining: CancellationToken,
    /// Cancelled when runs do not wait for their boundary any more.
    aborting: CancellationToken,
    /// Cancelled when everything beside the runs stops.
    stopped: CancellationToken,
}

impl Engine {
    /// Starts to execute, on the present runtime and one thread of its own for renewals.
    ///
    /// # Errors
    ///
    /// When the operating system gives no thread.
    pub fn start(parts: EngineParts, settings: EngineSettings) -> std::io::Result<Self> {
        Self::start_on(Arc::new(PresentRuntime), parts, settings)
    }

    /// Starts to execute, where `tasks` says.
    ///
    /// # Errors
    ///
    /// When there is no place for renewals.
    pub fn start_on(
        tasks: Arc<dyn Tasks>,
        parts: EngineParts,
        settings: EngineSettings,
    ) -> std::io::Result<Self> {
        let margin = (settings.lease_ttl / 10).min(Duration::from_secs(2));
        let shared = Arc::new(Shared {
            leases: Leases::new(margin),
            gate: ProviderGate::default(),
            permits: Arc::new(Semaphore::new(settings.workers)),
            executors: Executors::new(Arc::clone(&tasks)),
            tasks,
            took_back: AtomicBool::new(false),
            draining: CancellationToken::new(),
            aborting: CancellationToken::new(),
            stopped: CancellationToken::new(),
            parts,
            settings,
        });
        let renewal = renewal::start(&shared)?;
        supervise::keep("scheduler", &shared, scheduler::run);
        supervise::keep("sweep", &shared, sweep::run);
        supervise::keep("cancel poll", &shared, sweep::poll_cancels);
        let retention = settings.retention;
        supervise::keep("pruning", &shared, move |shared| {
            pruning::run(shared, retention)
        });
        supervise::keep("census", &shared, census::run);
        supervise::keep("hints", &shared, |shared| async move {
            shared.parts.signals.listen().await;
        });
        let stops = shared.stopped.clone().drop_guard();
        Ok(Self {
            shared,
            renewal,
            stops,
        })
    }

    /// The runs being executed now.
    #[must_use]
    pub fn executing(&self) -> usize {
        self.shared.leases.count()
    }

    /// Stops claiming, lets every run go back at its own boundary, and ends when all have or `within`
    /// is over; what is still in a turn then is broken off and given back too. Claims are renewed
    /// until the end.
    pub async fn drain(self, within: Duration) {
        let Self {
            shared,
            renewal,
            stops,
        } = self;
        tracing::info!(runs = shared.leases.count(), "draining");
        shared.draining.cancel();
        shared.executors.close();
        if tokio::time::timeout(within, shared.executors.wait())
            .await
            .is_err()
        {
            tracing::warn!(
                runs = shared.leases.count(),
                "drain timeout: turns are broken off and will be executed again"
            );
            shared.aborting.cancel();
            let given_back = tokio::time::timeout(GIVE_BACK_TIME, shared.executors.wait());
            if given_back.await.is_err() {
                tracing::error!(
                    runs = shared.leases.count(),
                    "runs could not be given back; they wait for their leases to expire"
                );
            }
        }
        drop(stops);
        renewal.await;
    }
}

impl Shared {
    /// Tells of runs that nobody holds.
    fn story_teller(&self) -> StoryTeller {
        let providers = self.parts.providers.iter();
        StoryTeller {
            runs: Arc::clone(&self.parts.runs),
            telemetry: Arc::clone(&self.parts.telemetry),
            kinds: providers
                .map(|(name, provider)| (name.clone(), provider.kind().to_owned()))
                .collect(),
        }
    }
}
