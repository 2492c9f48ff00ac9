//! A store with people at work in it, and processes that execute their runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hango_application::engine::{Engine, EngineParts, EngineSettings};
use hango_application::signals::Signals;
use hango_conformance::{Fixture, ManualClock, Place, owner};
use hango_domain::agent::{AgentLimits, AgentSettings};
use hango_domain::people::TenantStatus;
use hango_domain::run::{ChangeKind, Run};
use hango_domain::tool::Registry;
use hango_domain::{OwnerId, RunId, SpanId, TraceId};
use hango_memory::MemoryStore;
use hango_ports::tool::Idempotency;
use hango_ports::wake_up::Alone;
use hango_ports::{Ids, Provider, RunStore, WakeUp};
use serde_json::json;
use uuid::Uuid;

use super::clock::StoreClock;
use super::provider::Scripted;
use super::store::Faulty;
use super::tools::{Does, Watched};
use super::watch::Watching;

/// See the module.
pub(crate) struct World {
    /// The people and what they do.
    pub(crate) fixture: Arc<Fixture>,
    /// One tenant with an agent and a session.
    pub(crate) place: Place,
    /// Moves the store's clock besides.
    pub(crate) clock: Arc<ManualClock>,
    /// What the store's clock says.
    pub(crate) store_clock: Arc<StoreClock>,
    /// What the engines work with.
    pub(crate) store: Arc<Faulty>,
    /// The providers `scripted` and `other`.
    pub(crate) provider: Arc<Scripted>,
    pub(crate) other: Arc<Scripted>,
    /// What was told to watchers and operators.
    pub(crate) watching: Arc<Watching>,
    tools: Registry,
    processes: Mutex<Vec<Arc<Signals>>>,
}

/// One process that executes runs.
pub(crate) struct Process {
    pub(crate) engine: Engine,
    pub(crate) signals: Arc<Signals>,
}

impl World {
    /// An empty store and one tenant at work. The agent may call every tool, and no optional layer
    /// stands between.
    pub(crate) async fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        let store_clock = Arc::new(StoreClock::new(Arc::clone(&clock)));
        let store = MemoryStore::new(Arc::clone(&store_clock) as _);
        let stores = Arc::new(store).stores();
        let faulty = Faulty::new(Arc::clone(&stores.runs));
        let fixture = Fixture::new(stores, Arc::clone(&clock));
        let place = place(&fixture, |_| {}).await;
        Self {
            fixture: Arc::new(fixture),
            place,
            clock,
            store_clock,
            store: Arc::new(faulty),
            provider: Arc::default(),
            other: Arc::default(),
            watching: Arc::default(),
            tools: Registry::new(),
            processes: Mutex::default(),
        }
    }

    /// Another tenant at work, its agent's settings changed.
    pub(crate) async fn place(&self, change: impl FnOnce(&mut AgentSettings)) -> Place {
        place(&self.fixture, change).await
    }

    /// Another tenant at work, its agent with every layer.
    pub(crate) async fn layered(&self) -> Place {
        self.place(|agent| agent.middleware.clear()).await
    }

    /// Adds a tool.
    pub(crate) fn tool(
        &mut self,
        name: &'static str,
        class: Idempotency,
        does: Does,
    ) -> Arc<Watched> {
        let tool = Arc::new(Watched::new(name, class, does));
        let registered = self.tools.register(Arc::clone(&tool) as _);
        registered.expect("a new name");
        tool
    }

    /// Starts the first process.
    pub(crate) async fn start(&self, settings: EngineSettings) -> Process {
        self.start_as(owner(1), settings).await
    }

    /// Starts a process. Its first renewal, which comes at once and in real time, is over then, so that
    /// on a paused clock there is none unless a test wants it.
    pub(crate) async fn start_as(&self, owner: OwnerId, settings: EngineSettings) -> Process {
        self.start_among(Arc::new(Alone), owner, settings).await
    }

    /// The same among peers that it can give hints to and take hints from.
    pub(crate) async fn start_among(
        &self,
        peers: Arc<dyn WakeUp>,
        owner: OwnerId,
        settings: EngineSettings,
    ) -> Process {
        let signals = Arc::new(Signals::new(peers));
        let providers = [("scripted", &self.provider), ("other", &self.other)];
        let providers: BTreeMap<String, Arc<dyn Provider>> = providers
            .into_iter()
            .map(|(name, provider)| (name.to_owned(), Arc::clone(provider) as _))
            .collect();
        let parts = EngineParts {
            owner,
            runs: Arc::clone(&self.store) as Arc<dyn RunStore>,
            ids: Arc::new(FixtureIds(Arc::clone(&self.fixture))),
            providers,
            tools: self.tools.clone(),
            sink: Arc::clone(&self.watching) as _,
            telemetry: Arc::clone(&self.watching) as _,
            signals: Arc::clone(&signals),
        };
        let beats = self.store.asked(ChangeKind::Renew) + 1;
        let engine = Engine::start(parts, settings).expect("there is a thread");
        let beaten = || self.store.asked(ChangeKind::Renew) >= beats;
        self.until("the first renewal is made", beaten).await;
        let processes = self.processes.lock();
        processes
            .unwrap_or_else(PoisonError::into_inner)
            .push(Arc::clone(&signals));
        Process { engine, signals }
    }

    /// Accepts a run in the place's session and tells every process.
    pub(crate) async fn run(&self) -> Run {
        self.run_in(&self.place).await
    }

    /// The same in another place.
    pub(crate) async fn run_in(&self, place: &Place) -> Run {
        let run = self.fixture.run(place).await;
        self.tell(Signals::queued);
        run
    }

    /// Asks for the end of a run, as the API does.
    pub(crate) async fn cancel(&self, run: RunId) -> Run {
        let cancelled = self.fixture.cancel(&self.place.owner, run).await;
        self.tell(|signals| signals.cancel_requested(run));
        cancelled.expect("the run has not ended")
    }

    /// Suspends the place's tenant, or lets it work again.
    pub(crate) async fn set_tenant(&self, status: TenantStatus) {
        self.fixture.set_tenant(&self.place.owner, status).await;
    }

    fn tell(&self, hint: impl Fn(&Signals)) {
        let processes = self.processes.lock();
        let processes = processes.unwrap_or_else(PoisonError::into_inner);
        processes.iter().for_each(|signals| hint(signals));
    }
}

impl Process {
    /// Drains with time enough.
    pub(crate) async fn drain(self) {
        self.engine.drain(Duration::from_mins(5)).await;
    }
}

async fn place(fixture: &Fixture, change: impl FnOnce(&mut AgentSettings)) -> Place {
    let owner = fixture.tenant().await;
    let mut agent = fixture.new_agent(&owner);
    agent.settings.tools = Vec::new();
    agent.settings.limits = AgentLimits::default();
    let off = || json!({"enabled": false});
    agent.settings.middleware = ["todo", "repeat_call"]
        .map(|layer| (layer.to_owned(), off()))
        .into_iter()
        .collect();
    change(&mut agent.settings);
    let audit = fixture.audit(&owner, "agent.create", agent.id.0);
    let agent = fixture.stores.agents.create(agent, audit).await;
    let agent = agent.expect("a new agent is added");
    let session = fixture.session(&owner, agent.id).await;
    Place {
        tenant: owner.tenant,
        owner,
        agent,
        session,
    }
}

/// The fixture's identities.
struct FixtureIds(Arc<Fixture>);

impl Ids for FixtureIds {
    fn uuid(&self) -> Uuid {
        self.0.uuid()
    }

    fn secret(&self) -> [u8; 32] {
        [7; 32]
    }

    fn trace_id(&self) -> TraceId {
        TraceId([7; 16])
    }

    fn span_id(&self) -> SpanId {
        SpanId([7; 8])
    }
}
