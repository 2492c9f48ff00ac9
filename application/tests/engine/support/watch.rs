//! What the engine tells watchers of runs, and operators.

use std::sync::{Mutex, PoisonError};

use hango_domain::RunId;
use hango_domain::event::Event;
use hango_ports::event_sink::{Delta, LiveEvent};
use hango_ports::telemetry::Observation;
use hango_ports::{EventSink, Telemetry};
use tokio::time::Instant;

/// Keeps all that is told.
#[derive(Default)]
pub(crate) struct Watching {
    live: Mutex<Vec<(Instant, LiveEvent)>>,
    observed: Mutex<Vec<Observation>>,
}

impl Watching {
    /// The deltas of a run, and when each was shown.
    pub(crate) fn deltas(&self, run: RunId) -> Vec<(Instant, Delta)> {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.iter()
            .filter_map(|(at, event)| match event {
                LiveEvent::Delta(delta) if delta.run == run => Some((*at, delta.clone())),
                LiveEvent::Delta(_) | LiveEvent::Durable(_) => None,
            })
            .collect()
    }

    /// The durable events of a run, as watchers were told.
    pub(crate) fn durable(&self, run: RunId) -> Vec<Event> {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.iter()
            .flat_map(|(_, event)| match event {
                LiveEvent::Durable(events) => events.clone(),
                LiveEvent::Delta(_) => Vec::new(),
            })
            .filter(|event| event.run_id == run)
            .collect()
    }

    /// What operators were told.
    pub(crate) fn observed(&self) -> Vec<Observation> {
        let observed = self.observed.lock();
        observed.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl EventSink for Watching {
    fn emit(&self, event: LiveEvent) {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.push((Instant::now(), event));
    }
}

impl Telemetry for Watching {
    fn observe(&self, what: Observation) {
        let mut observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        observed.push(what);
    }
}
