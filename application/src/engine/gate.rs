//! One `not before` for each provider and model, in memory: a provider that asked for rest, or failed
//! several times in a row, is not called again before it is over, and then by one call that probes.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hango_domain::model::ModelFailure;
use hango_domain::retry::{asked, backoff};
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
    /// Failures in a row.
    failures: u32,
    /// When the last of them was counted.
    failed_at: Option<Instant>,
    not_before: Option<Instant>,
    probing: bool,
}

/// The right to make one call. Dropping it without a report says nothing about the provider.
pub(super) struct Pass<'a> {
    gate: &'a ProviderGate,
    key: (String, String),
    entered: Instant,
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
            entered: Instant::now(),
            probes,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), Gate>> {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass<'_> {
    /// The provider begins to answer: the gate is open for others too, unless it asked for rest since
    /// this call was begun.
    pub(super) fn answers(&self) {
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
        if !failure.kind.is_retryable() {
            // The provider works; it is this call that it does not want.
            gates.remove(&self.key);
            return;
        }
        let gate = gates.entry(self.key.clone()).or_default();
        // Calls that were under way together and fail together are one failure.
        if gate.failed_at.is_none_or(|last| last <= self.entered) {
            gate.failures += 1;
            gate.failed_at = Some(Instant::now());
        }
        let rest = match asked(failure) {
            Some(rest) => Some(rest),
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

#[cfg(test)]
mod tests {
    use hango_domain::model::ModelFailureKind;

    use super::*;

    fn enter(gate: &ProviderGate) -> Result<Pass<'_>, Duration> {
        gate.enter("provider", "model")
    }

    fn overloaded() -> ModelFailure {
        ModelFailure::new(ModelFailureKind::Unavailable, "overloaded")
    }

    async fn fail(gate: &ProviderGate) {
        let pass = enter(gate).expect("the gate is open");
        tokio::time::advance(Duration::from_millis(1)).await;
        pass.failed(&overloaded(), 1.0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_gate_closes_after_several_failures_in_a_row() {
        let gate = ProviderGate::default();

        for _ in 0..CLOSES_AT {
            assert!(enter(&gate).is_ok());
            fail(&gate).await;
        }

        assert_eq!(enter(&gate).err(), Some(backoff(1, 1.0)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_provider_that_asks_for_an_eternity_rests_for_an_hour() {
        let gate = ProviderGate::default();
        let failure = ModelFailure {
            retry_after: Some(Duration::MAX),
            ..overloaded()
        };

        let pass = enter(&gate).expect("the gate is open");
        pass.failed(&failure, 1.0);

        assert_eq!(enter(&gate).err(), Some(Duration::from_hours(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_refused_leaves_nothing_behind() {
        let gate = ProviderGate::default();
        let refused = ModelFailure::new(ModelFailureKind::Rejected, "no such model");

        let pass = enter(&gate).expect("the gate is open");
        pass.failed(&refused, 1.0);

        assert!(gate.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_fail_together_are_one_failure() {
        let gate = ProviderGate::default();
        let together: Vec<_> = (0..50).map(|_| enter(&gate)).collect();
        tokio::time::advance(Duration::from_secs(1)).await;

        for pass in together.into_iter().flatten() {
            pass.failed(&overloaded(), 1.0);
        }

        assert!(enter(&gate).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn one_call_probes_and_the_beginning_of_its_answer_lets_the_others_in() {
        let gate = ProviderGate::default();
        for _ in 0..CLOSES_AT {
            fail(&gate).await;
        }
        tokio::time::advance(backoff(1, 1.0)).await;

        let probe = enter(&gate).expect("one may probe");
        assert_eq!(enter(&gate).err(), Some(PROBE_WAIT));
        probe.answers();

        assert!(enter(&gate).is_ok());
    }
}
