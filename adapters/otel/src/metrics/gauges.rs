//! What stands for now: told now and then, and read by whoever asks for the page.
//!
//! A callback that panics would blank every metric of the process for ever, so none does more than read, and
//! what it does is caught.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hango_domain::queue::{Census, Counts};
use hango_domain::run::{MAIN_LANE, RunStatus};
use hango_ports::store::{Connections, StoreHealth};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter};

use crate::export::{DropReason, Dropped};
use crate::names::{key, metric, value};

/// A census that is older says nothing: it is taken every 15 s, if the store answers.
const STALE: Duration = Duration::from_mins(1);

/// What was told last.
#[derive(Debug, Default)]
pub(super) struct Gauges {
    /// Whether tenants are named.
    tenants: bool,
    census: Mutex<Option<(Instant, Census)>>,
    busy: Level,
}

/// How much of something is in use.
#[derive(Debug, Default)]
struct Level {
    used: AtomicU64,
    limit: AtomicU64,
}

impl Level {
    fn set(&self, used: usize, limit: usize) {
        self.used.store(used as u64, Ordering::Relaxed);
        self.limit.store(limit as u64, Ordering::Relaxed);
    }
}

impl Gauges {
    pub(super) fn new(tenants: bool) -> Self {
        Self {
            tenants,
            ..Self::default()
        }
    }

    pub(super) fn count(&self, census: Census) {
        *self.census.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((Instant::now(), census));
    }

    pub(super) fn workers(&self, busy: usize, limit: usize) {
        self.busy.set(busy, limit);
    }

    /// Whatever `read` makes of the last census; nothing before the first, and once it is too old to be true.
    fn counted<T>(&self, read: impl FnOnce(&Census) -> T) -> Option<T> {
        let census = self.census.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = census.as_ref().filter(|(at, _)| at.elapsed() < STALE);
        fresh.map(|(_, census)| read(census))
    }
}

/// Has `meter` read the gauges, and what was dropped of each signal.
pub(super) fn register(
    meter: &Meter,
    gauges: &Arc<Gauges>,
    dropped: Vec<(&'static str, Arc<Dropped>)>,
) {
    let lane = [KeyValue::new(key::LANE, MAIN_LANE)];
    let count = |name, unit, about, read: Read<u64>| {
        let gauges = Arc::clone(gauges);
        meter
            .u64_observable_gauge(name)
            .with_unit(unit)
            .with_description(about)
            .with_callback(move |seen| quietly(|| read(&gauges, seen)))
            .build();
    };
    let age = |name, about, read: fn(&Census) -> Option<Duration>| {
        let (gauges, lane) = (Arc::clone(gauges), lane.clone());
        meter
            .f64_observable_gauge(name)
            .with_unit("s")
            .with_description(about)
            .with_callback(move |seen| {
                quietly(|| {
                    if let Some(age) = gauges.counted(read) {
                        seen.observe(age.unwrap_or_default().as_secs_f64(), &lane);
                    }
                });
            })
            .build();
    };
    count(
        metric::RUNS_BY_STATE,
        "{run}",
        "Runs that have not ended, by where they stand.",
        runs_by_state,
    );
    count(
        metric::QUEUE_DEPTH,
        "{run}",
        "Runs that wait.",
        |gauges, seen| {
            if let Some(queued) = gauges.counted(|census| census.total().queued) {
                seen.observe(queued, &[KeyValue::new(key::LANE, MAIN_LANE)]);
            }
        },
    );
    age(
        metric::OLDEST_QUEUED_AGE,
        "How long the oldest run waits that could be claimed.",
        |census| census.claimable_for,
    );
    age(
        metric::OLDEST_RUNNING_AGE,
        "How long ago the oldest run that is running was claimed first.",
        |census| census.running_for,
    );
    count(
        metric::WORKERS_BUSY,
        "{worker}",
        "Workers of this process that execute a run.",
        |gauges, seen| level(seen, &gauges.busy.used),
    );
    count(
        metric::WORKERS_LIMIT,
        "{worker}",
        "Workers of this process.",
        |gauges, seen| level(seen, &gauges.busy.limit),
    );
    meter
        .u64_observable_counter(metric::DROPPED)
        .with_unit("{item}")
        .with_description("Telemetry that never arrived.")
        .with_callback(move |seen| {
            quietly(|| {
                for (signal, dropped) in &dropped {
                    for reason in DropReason::ALL {
                        let attributes = [
                            KeyValue::new(key::SIGNAL, *signal),
                            KeyValue::new(key::DROP_REASON, reason.as_str()),
                        ];
                        seen.observe(dropped.count(reason), &attributes);
                    }
                }
            });
        })
        .build();
}

/// Has `meter` read how much of a store's connections is in use.
pub(super) fn watch(meter: &Meter, store: &Arc<dyn StoreHealth>) {
    let gauge = |name, about, read: fn(Connections) -> usize| {
        let store = Arc::clone(store);
        meter
            .u64_observable_gauge(name)
            .with_unit("{connection}")
            .with_description(about)
            .with_callback(move |seen| {
                quietly(|| {
                    if let Some(connections) = store.connections() {
                        seen.observe(read(connections) as u64, &[]);
                    }
                });
            })
            .build();
    };
    gauge(
        metric::DB_POOL_IN_USE,
        "Connections of the store that are in use.",
        |connections| connections.in_use,
    );
    gauge(
        metric::DB_POOL_LIMIT,
        "The most connections of the store.",
        |connections| connections.limit,
    );
}

type Read<T> = fn(&Gauges, &dyn AsyncInstrument<T>);

fn level(seen: &dyn AsyncInstrument<u64>, level: &AtomicU64) {
    let lane = [KeyValue::new(key::LANE, MAIN_LANE)];
    seen.observe(level.load(Ordering::Relaxed), &lane);
}

/// Tenants that have runs, each by itself, and the others together; or all together.
fn runs_by_state(gauges: &Gauges, seen: &dyn AsyncInstrument<u64>) {
    let observe = |tenant: Option<String>, counts: Counts| {
        let of_states = [
            (RunStatus::Queued, counts.queued),
            (RunStatus::Running, counts.running),
        ];
        for (status, runs) in of_states {
            let mut attributes = vec![KeyValue::new(key::STATE, status.as_str())];
            let tenant = tenant.clone();
            attributes.extend(tenant.map(|tenant| KeyValue::new(key::TENANT_ID, tenant)));
            seen.observe(runs, &attributes);
        }
    };
    gauges.counted(|census| {
        if !gauges.tenants {
            observe(None, census.total());
            return;
        }
        for (tenant, counts) in &census.tenants {
            observe(Some(tenant.to_string()), *counts);
        }
        observe(Some(value::OTHER_TENANTS.to_owned()), census.others);
    });
}

fn quietly(read: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(read)).is_err() {
        tracing::error!("a gauge panicked, and is left out of the page");
    }
}
