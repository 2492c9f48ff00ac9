//! One place where a process of hango runs: started, killed, held up, drained, started again. A restart is
//! another process, with an id that was never used.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hango_application::engine::{Engine, EngineParts};
use hango_application::live::LiveEvents;
use hango_application::signals::Signals;
use hango_application::use_cases::{ApiSettings, Catalog, UseCases};
use hango_domain::OwnerId;
use hango_ports::telemetry::Observation;
use hango_ports::wake_up::Hint;
use hango_ports::{Clock, Ids, Provider, RunStore, Stores, Telemetry, WakeUp};
use tokio::sync::mpsc;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::dice::Dice;
use crate::executor::{Group, OfProcess};
use crate::ids::SeededIds;
use crate::log::{Process, What};
use crate::people::PROVIDER;
use crate::provider::Model;
use crate::store::Remote;
use crate::tools;
use crate::world::World;

/// Where a process runs, and the one that does now.
pub(crate) struct Slot {
    world: Arc<World>,
    /// Makes the numbers of its processes differ from those of other slots.
    index: u32,
    lives: Mutex<u32>,
    running: Mutex<Option<Running>>,
}

struct Running {
    process: Process,
    engine: Engine,
    use_cases: Arc<UseCases>,
}

impl Slot {
    pub(crate) fn new(world: &Arc<World>, index: u32) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(world),
            index,
            lives: Mutex::new(0),
            running: Mutex::new(None),
        })
    }

    /// Starts a process here.
    pub(crate) fn start(&self) {
        let world = &self.world;
        let life = {
            let mut lives = self.lives.lock().unwrap_or_else(PoisonError::into_inner);
            *lives += 1;
            *lives
        };
        let process = self.index + 100 * life;
        world.note(What::Starts(process));
        let runs: Arc<dyn RunStore> = Arc::new(Remote {
            world: Arc::clone(world),
            process,
        });
        let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(Dice::new(world.seed, process.into())));
        let (ear, heard) = mpsc::unbounded_channel();
        let mut ears = world.ears.lock().unwrap_or_else(PoisonError::into_inner);
        ears.insert(process, ear);
        drop(ears);
        let signals = Arc::new(Signals::new(Arc::new(Hints {
            world: Arc::clone(world),
            process,
            heard: tokio::sync::Mutex::new(heard),
        })));
        let live = Arc::new(LiveEvents::default());
        let model = Model {
            world: Arc::clone(world),
            process,
        };
        let parts = EngineParts {
            owner: OwnerId(Uuid::from_u128(process.into())),
            runs: Arc::clone(&runs),
            ids: Arc::clone(&ids),
            providers: BTreeMap::from([(
                PROVIDER.to_owned(),
                Arc::new(model) as Arc<dyn Provider>,
            )]),
            tools: tools::of_process(world, process),
            sink: Arc::clone(&live) as _,
            telemetry: Arc::new(Nobody),
            signals: Arc::clone(&signals),
        };
        let stores = Stores {
            runs,
            ..world.stores.clone()
        };
        let settings = world.plan.engine;
        let use_cases = UseCases::new(
            stores,
            ids,
            Arc::clone(&world.clock) as Arc<dyn Clock>,
            signals,
            live,
            Catalog::default(),
            ApiSettings {
                max_queued_runs_per_session: 16,
                running_per_tenant: settings.running_per_tenant,
                limits: settings.limits,
                repeat_call_threshold: settings.repeat_call_threshold,
            },
        );
        let tasks = OfProcess {
            executor: world.executor.clone(),
            group: Group(process),
        };
        let engine = Engine::start_on(Arc::new(tasks), parts, settings);
        *self.running() = Some(Running {
            process,
            engine: engine.expect("no thread is needed"),
            use_cases: Arc::new(use_cases),
        });
    }

    /// Kills the process here.
    pub(crate) fn kill(&self) {
        if let Some(running) = self.running().take() {
            self.world.note(What::Dies(running.process));
            self.bury(running.process);
        }
    }

    /// Holds the process here up for a while.
    pub(crate) async fn hold_up(&self, time: Duration, briefly: bool) {
        let Some(process) = self.process() else {
            return;
        };
        let executor = &self.world.executor;
        self.world.note(What::HeldUp { process, briefly });
        executor.hold_up(Group(process));
        tokio::time::sleep(time).await;
        executor.let_go(Group(process));
        self.world.note(What::GoesOn { process, briefly });
    }

    /// Keeps the process here from the store for a while.
    pub(crate) async fn cut_off(&self, time: Duration) {
        let Some(process) = self.process() else {
            return;
        };
        let cut_off = || {
            let cut_off = self.world.weather.cut_off.lock();
            cut_off.unwrap_or_else(PoisonError::into_inner)
        };
        self.world.note(What::CutOff(process));
        cut_off().insert(process);
        tokio::time::sleep(time).await;
        cut_off().remove(&process);
        self.world.note(What::Reconnected(process));
    }

    /// Drains the process here, and ends it.
    pub(crate) async fn drain(&self, within: Duration) {
        let Some(running) = self.running().take() else {
            return;
        };
        let Running {
            process, engine, ..
        } = running;
        let world = Arc::clone(&self.world);
        world.note(What::Drains(process));
        let (drained, over) = oneshot::channel();
        self.world.executor.spawn(Group(process), async move {
            engine.drain(within).await;
            world.note(What::Drained(process));
            let _ = drained.send(());
        });
        // An error says that it was killed meanwhile.
        let _ = over.await;
        self.bury(process);
    }

    /// Performs a request at the process here; `None` if it died before it answered, or is not there.
    pub(crate) async fn request<T: Send + 'static, F>(
        &self,
        request: impl FnOnce(Arc<UseCases>) -> F,
    ) -> Option<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let (process, use_cases) = {
            let running = self.running();
            let running = running.as_ref()?;
            (running.process, Arc::clone(&running.use_cases))
        };
        let work = request(use_cases);
        let (answer, answered) = oneshot::channel();
        self.world.executor.spawn(Group(process), async move {
            drop(answer.send(work.await));
        });
        answered.await.ok()
    }

    /// How many runs the process here executes.
    pub(crate) fn executing(&self) -> usize {
        self.running()
            .as_ref()
            .map_or(0, |it| it.engine.executing())
    }

    fn process(&self) -> Option<Process> {
        self.running().as_ref().map(|it| it.process)
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bury(&self, process: Process) {
        let mut ears = self
            .world
            .ears
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        ears.remove(&process);
        drop(ears);
        self.world.executor.kill(Group(process));
    }
}

/// Hints between the processes.
struct Hints {
    world: Arc<World>,
    process: Process,
    heard: tokio::sync::Mutex<mpsc::UnboundedReceiver<Hint>>,
}

#[async_trait]
impl WakeUp for Hints {
    fn announce(&self, hint: Hint) {
        self.world.announce(self.process, hint);
    }

    async fn next(&self) -> Hint {
        match self.heard.lock().await.recv().await {
            Some(hint) => hint,
            None => std::future::pending().await,
        }
    }
}

/// Operators who look at nothing.
struct Nobody;

impl Telemetry for Nobody {
    fn observe(&self, _what: Observation) {}
}
