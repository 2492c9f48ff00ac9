//! One `not before` for each provider and model, in memory: a provider that asked for rest, or failed
//! several times in a row, is not called again before it is over, and then by one call that probes.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hango_domain::model::ModelFailure;
use hango_domain::retry::backoff;
use tokio::time::Instant;

/// How many failures in a row close the gate.
const CLOSES_AT: u32 = 5;

/// How long others wait for a probe's outcome before they ask again.
const PROBE_WAIT: Duration = Duration::from_millis(250);

/// The gates of all providers and models.
#[derive(Default)]
pub(super) struct ProviderGate {
    gates: Mutex<HashMap<(String, String), Gate>>,
}

#[derive(Clone, Copy, Default)]
struct Gate {
    failures: u32,
    not_before: Option<Instant>,
    probing: bool,
}

/// The right to make one call. Dropping it without a report says nothing about the provider.
pub(super) struct Pass<'a> {
    gate: &'a ProviderGate,
    key: (String, String),
    probes: bool,
}

impl ProviderGate {
    /// A pass, or how long to wait before asking again.
    pub(super) fn enter(&self, provider: &str, model: &str) -> Result<Pass<'_>, Duration> {
        let key = (provider.to_owned(), model.to_owned());
        let mut gates = self.lock();
        let gate = gates.entry(key.clone()).or_default();
        let mut probes = false;
        if let Some(not_before) = gate.not_before {
            let wait = not_before.saturating_duration_since(Instant::now());
            if !wait.is_zero() {
                return Err(wait);
            }
            if gate.probing {
                return Err(PROBE_WAIT);
            }
            gate.probing = true;
            probes = true;
        }
        drop(gates);
        Ok(Pass {
            gate: self,
            key,
            probes,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), Gate>> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass<'_> {
    /// The provider answered: the gate is open, unless it asked for rest since this call was begun.
    pub(super) fn answered(self) {
        let mut gates = self.gate.lock();
        let rests = |gate: &Gate| gate.not_before.is_some_and(|until| until > Instant::now());
        match gates.get_mut(&self.key) {
            Some(gate) if rests(gate) => gate.failures = 0,
            Some(_) | None => drop(gates.remove(&self.key)),
        }
    }

    /// A try failed. `jitter` lies between 0 and 1.
    pub(super) fn failed(self, failure: &ModelFailure, jitter: f64) {
        let mut gates = self.gate.lock();
        let gate = gates.entry(self.key.clone()).or_default();
        if !failure.kind.is_retryable() {
            // The provider works; it is this call that it does not want.
            *gate = Gate::default();
            return;
        }
        gate.failures += 1;
        let rest = match failure.retry_after {
            Some(asked) => Some(asked),
            None if gate.failures >= CLOSES_AT => {
                Some(backoff(gate.failures - CLOSES_AT + 1, jitter))
            }
            None => None,
        };
        if let Some(rest) = rest {
            let until = Instant::now() + rest;
            gate.not_before = Some(gate.not_before.map_or(until, |before| before.max(until)));
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.probes
            && let Some(gate) = self.gate.lock().get_mut(&self.key)
        {
            gate.probing = false;
        }
    }
}
