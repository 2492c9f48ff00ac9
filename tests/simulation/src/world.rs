//! What the processes of a simulation have in common: one store and its clock, the network between, the
//! weather, and the log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hango_domain::access::Visibility;
use hango_domain::conversation::Message;
use hango_domain::event::Event;
use hango_domain::journal::ToolCall;
use hango_domain::run::Run;
use hango_domain::{RunId, SessionId, TenantId, Timestamp};
use hango_memory::MemoryStore;
use hango_ports::page::PageRequest;
use hango_ports::run_store::RunFilter;
use hango_ports::session_store::MessageQuery;
use hango_ports::wake_up::Hint;
use hango_ports::{Clock, Stores};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::dice::Dice;
use crate::executor::Executor;
use crate::log::{Call, Log, Process, What};
use crate::plan::Plan;

/// See the module.
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) plan: Plan,
    pub(crate) dice: Dice,
    pub(crate) executor: Executor,
    pub(crate) log: Log,
    pub(crate) clock: Arc<StoreClock>,
    /// The store itself, where nothing goes wrong.
    pub(crate) stores: Stores,
    pub(crate) weather: Weather,
    /// Where each living process hears hints.
    pub(crate) ears: Mutex<BTreeMap<Process, mpsc::UnboundedSender<Hint>>>,
    /// Runs as they were when they ended.
    pub(crate) ended: Mutex<BTreeMap<RunId, OnRecord>>,
    calls: AtomicU64,
}

/// What goes wrong now.
pub(crate) struct Weather {
    /// Nothing, any more.
    pub(crate) calm: AtomicBool,
    /// The store is out of reach.
    pub(crate) storm: AtomicBool,
    /// Processes that alone do not reach it.
    pub(crate) cut_off: Mutex<BTreeSet<Process>>,
}

/// All that is on record of a run alone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OnRecord {
    pub(crate) run: Run,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) events: Vec<Event>,
}

/// The store's clock: goes with virtual time, and steps forward when it is told to.
pub(crate) struct StoreClock {
    start: Instant,
    steps_micros: AtomicU64,
}

impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        const START: i64 = 1_760_000_000_123_457;
        let steps = Duration::from_micros(self.steps_micros.load(Ordering::SeqCst));
        Timestamp::from_micros(START).plus(self.start.elapsed() + steps)
    }
}

impl StoreClock {
    pub(crate) fn step(&self, by: Duration) {
        let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.steps_micros.fetch_add(micros, Ordering::SeqCst);
    }
}

impl World {
    /// An empty world. It needs a runtime, whose time is paused.
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        let dice = Dice::new(seed, 1);
        let clock = Arc::new(StoreClock {
            start: Instant::now(),
            steps_micros: AtomicU64::new(0),
        });
        let store = Arc::new(MemoryStore::new(Arc::clone(&clock) as _));
        Arc::new(Self {
            seed,
            plan: Plan::draw(&dice),
            dice,
            executor: Executor::new(Dice::new(seed, 2)),
            log: Log::default(),
            clock,
            stores: store.stores(),
            weather: Weather {
                calm: AtomicBool::new(false),
                storm: AtomicBool::new(false),
                cut_off: Mutex::default(),
            },
            ears: Mutex::default(),
            ended: Mutex::default(),
            calls: AtomicU64::new(1),
        })
    }

    /// How long the world has been there.
    pub(crate) fn age(&self) -> Duration {
        self.clock.start.elapsed()
    }

    pub(crate) fn note(&self, what: What) {
        self.log.add(self.age(), what);
    }

    pub(crate) fn next_call(&self) -> Call {
        self.calls.fetch_add(1, Ordering::SeqCst)
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.weather.calm.load(Ordering::SeqCst)
    }

    /// Whether a process reaches the store now.
    pub(crate) fn reaches_store(&self, process: Process) -> bool {
        let cut_off = &self.weather.cut_off;
        let cut_off = cut_off.lock().unwrap_or_else(PoisonError::into_inner);
        !self.weather.storm.load(Ordering::SeqCst) && !cut_off.contains(&process)
    }

    /// Carries a hint from one process to the others, as networks do.
    pub(crate) fn announce(self: &Arc<Self>, from: Process, hint: Hint) {
        let lossy = !self.is_calm();
        let ears = self.ears.lock().unwrap_or_else(PoisonError::into_inner);
        for (process, ear) in ears.iter().filter(|(process, _)| **process != from) {
            if lossy && self.dice.percent(self.plan.hints) {
                continue;
            }
            let (ear, delay) = (ear.clone(), self.dice.moment());
            debug_assert!(*process != 0, "0 is the world");
            self.executor
                .spawn(crate::executor::Group::WORLD, async move {
                    tokio::time::sleep(delay).await;
                    // Whoever is gone hears nothing.
                    let _ = ear.send(hint);
                });
        }
    }

    /// Every run of a tenant, the oldest first.
    pub(crate) async fn runs_of(&self, tenant: TenantId) -> Vec<Run> {
        let page = PageRequest {
            limit: 10_000,
            after: None,
        };
        let runs = &self.stores.runs;
        let page = runs.list(seen(tenant), RunFilter::default(), page).await;
        let mut runs = page.expect("reads work").items;
        runs.reverse();
        runs
    }

    /// The run, if there is one.
    pub(crate) async fn run(&self, tenant: TenantId, run: RunId) -> Option<Run> {
        let found = self.stores.runs.find(seen(tenant), run).await;
        found.expect("reads work")
    }

    /// All that is on record of a run.
    pub(crate) async fn on_record(&self, tenant: TenantId, run: RunId) -> Option<OnRecord> {
        let runs = &self.stores.runs;
        let calls = runs.tool_calls(seen(tenant), run).await;
        let events = runs.events(seen(tenant), run, 0, 1_000_000).await;
        Some(OnRecord {
            run: self.run(tenant, run).await?,
            calls: calls.expect("reads work")?,
            events: events.expect("reads work")?,
        })
    }

    /// Every message of a session.
    pub(crate) async fn messages(&self, tenant: TenantId, session: SessionId) -> Vec<Message> {
        let query = MessageQuery {
            after_seq: 0,
            run: None,
            limit: 1_000_000,
        };
        let sessions = &self.stores.sessions;
        let messages = sessions.messages(seen(tenant), session, query).await;
        messages.expect("reads work").unwrap_or_default()
    }

    /// Keeps a run as it is now that it has ended.
    pub(crate) fn keep_ended(&self, record: OnRecord) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.entry(record.run.id).or_insert(record);
    }
}

/// All of a tenant.
pub(crate) const fn seen(tenant: TenantId) -> Visibility {
    Visibility {
        tenant,
        creator: None,
    }
}
