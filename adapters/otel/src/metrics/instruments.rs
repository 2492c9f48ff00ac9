//! What is counted and measured: the instruments, with their units and buckets.

use opentelemetry::metrics::{Counter, Histogram, Meter};

use crate::names::{buckets, metric};

/// The instruments.
pub(super) struct Instruments {
    pub(super) run_duration: Histogram<f64>,
    pub(super) inference_calls: Histogram<u64>,
    pub(super) tool_calls: Histogram<u64>,
    pub(super) iterations: Histogram<u64>,
    pub(super) tool_duration: Histogram<f64>,
    pub(super) tool_errors: Counter<u64>,
    pub(super) operation_duration: Histogram<f64>,
    pub(super) first_chunk: Histogram<f64>,
    pub(super) tokens: Histogram<u64>,
    pub(super) request_duration: Histogram<f64>,
    pub(super) queue_wait: Histogram<f64>,
    pub(super) claims: Counter<u64>,
    pub(super) reclaimed: Counter<u64>,
    pub(super) before_run_duration: Histogram<f64>,
    pub(super) tool_short_circuits: Counter<u64>,
    pub(super) repeat_blocked: Counter<u64>,
}

impl Instruments {
    pub(super) fn new(meter: &Meter) -> Self {
        let durations = |name, buckets, about| durations(meter, name, buckets, about);
        let counts = |name, unit, buckets, about| counts(meter, name, unit, buckets, about);
        let counter = |name, unit, about| counter(meter, name, unit, about);
        Self {
            run_duration: durations(
                metric::INVOKE_AGENT_DURATION,
                &buckets::RUN,
                "How long runs took, from their first claim to their end.",
            ),
            inference_calls: counts(
                metric::INVOKE_AGENT_INFERENCE_CALLS,
                "{inference_call}",
                &buckets::COUNT,
                "Completed model calls of a run.",
            ),
            tool_calls: counts(
                metric::INVOKE_AGENT_TOOL_CALLS,
                "{tool_call}",
                &buckets::COUNT,
                "Tool calls of a run.",
            ),
            iterations: counts(
                metric::ITERATIONS,
                "{iteration}",
                &buckets::ITERATIONS,
                "Completed turns of a run.",
            ),
            tool_duration: durations(
                metric::EXECUTE_TOOL_DURATION,
                &buckets::CALL,
                "How long tool calls took.",
            ),
            tool_errors: counter(metric::TOOL_ERRORS, "{error}", "Tool calls that failed."),
            operation_duration: durations(
                metric::OPERATION_DURATION,
                &buckets::CALL,
                "How long tries of model calls took.",
            ),
            first_chunk: durations(
                metric::OPERATION_FIRST_CHUNK,
                &buckets::CALL,
                "How long it took until a model's answer began.",
            ),
            tokens: counts(
                metric::TOKEN_USAGE,
                "{token}",
                &buckets::TOKENS,
                "What tries of model calls cost.",
            ),
            request_duration: durations(
                metric::HTTP_REQUEST_DURATION,
                &buckets::REQUEST,
                "How long requests took.",
            ),
            queue_wait: durations(
                metric::QUEUE_WAIT,
                &buckets::WAIT,
                "How long runs waited for their first claim.",
            ),
            claims: counter(metric::CLAIMS, "{claim}", "Claims, won and lost."),
            reclaimed: counter(
                metric::RECLAIMED,
                "{run}",
                "Runs that were taken back from processes that fell silent.",
            ),
            before_run_duration: durations(
                metric::BEFORE_RUN_DURATION,
                &buckets::HOOK,
                "How long layers' hooks before a run took.",
            ),
            tool_short_circuits: counter(
                metric::TOOL_SHORT_CIRCUITS,
                "{call}",
                "Calls that a layer answered itself.",
            ),
            repeat_blocked: counter(
                metric::REPEAT_BLOCKED,
                "{call}",
                "Tool calls that were made too often.",
            ),
        }
    }
}

fn durations(
    meter: &Meter,
    name: &'static str,
    buckets: &[f64],
    about: &'static str,
) -> Histogram<f64> {
    let histogram = meter.f64_histogram(name).with_unit("s");
    let histogram = histogram.with_boundaries(buckets.to_vec());
    histogram.with_description(about).build()
}

fn counts(
    meter: &Meter,
    name: &'static str,
    unit: &'static str,
    buckets: &[f64],
    about: &'static str,
) -> Histogram<u64> {
    let histogram = meter.u64_histogram(name).with_unit(unit);
    let histogram = histogram.with_boundaries(buckets.to_vec());
    histogram.with_description(about).build()
}

fn counter(
    meter: &Meter,
    name: &'static str,
    unit: &'static str,
    about: &'static str,
) -> Counter<u64> {
    let counter = meter.u64_counter(name).with_unit(unit);
    counter.with_description(about).build()
}
