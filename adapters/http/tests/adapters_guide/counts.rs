//! The guide's telemetry sink, and that it does what every sink must.

// region: sink
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hango_ports::Telemetry;
use hango_ports::telemetry::Observation;

/// Counts what the engine does, and passes it on: to the log, as a rule.
///
/// Counting is an addition and nothing else, so it never waits. What goes over a network goes into a
/// bounded queue first, which drops what it cannot hold, and counts that too.
pub(crate) struct Counts {
    next: Arc<dyn Telemetry>,
    claims: AtomicU64,
    reclaimed: AtomicU64,
    leases_lost: AtomicU64,
    model_calls: AtomicU64,
    model_failures: AtomicU64,
    tool_calls: AtomicU64,
    tool_errors: AtomicU64,
    runs_ended: AtomicU64,
}

impl Counts {
    pub(crate) fn before(next: Arc<dyn Telemetry>) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            next,
            claims: zero(),
            reclaimed: zero(),
            leases_lost: zero(),
            model_calls: zero(),
            model_failures: zero(),
            tool_calls: zero(),
            tool_errors: zero(),
            runs_ended: zero(),
        }
    }
}

impl Telemetry for Counts {
    fn observe(&self, what: Observation) {
        match &what {
            Observation::ClaimWon { .. } => add(&self.claims, true),
            Observation::Reclaimed { .. } => add(&self.reclaimed, true),
            Observation::LeaseLost { .. } => add(&self.leases_lost, true),
            Observation::ModelCalled { failure, .. } => {
                add(&self.model_calls, true);
                add(&self.model_failures, failure.is_some());
            }
            Observation::ToolCalled { is_error, .. } => {
                add(&self.tool_calls, true);
                add(&self.tool_errors, *is_error);
            }
            Observation::RunEnded { .. } => add(&self.runs_ended, true),
            Observation::ClaimLost { .. }
            | Observation::HooksRan(_)
            | Observation::Noted { .. }
            | Observation::ModelTried(_)
            | Observation::ToolSettled(_)
            | Observation::TurnEnded(_)
            | Observation::RequestServed(_)
            | Observation::Census(_)
            | Observation::Workers { .. } => {}
        }
        self.next.observe(what);
    }
}

fn add(count: &AtomicU64, counts: bool) {
    count.fetch_add(u64::from(counts), Ordering::Relaxed);
}

/// As a page that Prometheus reads.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in [
            ("claims", &self.claims),
            ("reclaimed", &self.reclaimed),
            ("leases_lost", &self.leases_lost),
            ("model_calls", &self.model_calls),
            ("model_failures", &self.model_failures),
            ("tool_calls", &self.tool_calls),
            ("tool_errors", &self.tool_errors),
            ("runs_ended", &self.runs_ended),
        ] {
            let count = count.load(Ordering::Relaxed);
            writeln!(f, "team_hango_{name}_total {count}")?;
        }
        Ok(())
    }
}
// endregion: sink

/// The sink of the checks.
mod checked {
    // region: sink-tests
    use hango_application::telemetry::LogLines;

    use super::*;

    async fn sink() -> (Arc<dyn Telemetry>, ()) {
        (Arc::new(Counts::before(Arc::new(LogLines))), ())
    }

    hango_conformance::telemetry_tests!(sink);
    // endregion: sink-tests
}
