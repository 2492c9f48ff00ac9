//! Span and trace ids: those that were chosen for the span that is being made, else random ones.

use std::cell::Cell;

use opentelemetry::trace::{SpanId, TraceId};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};

thread_local! {
    /// What the span has to be called that this thread is making.
    static CHOSEN: Cell<Chosen> = const { Cell::new(Chosen { trace: None, span: None }) };
}

/// Ids that a span has to have; the others are random.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chosen {
    pub(super) trace: Option<TraceId>,
    pub(super) span: Option<SpanId>,
}

/// Gives spans the ids that were chosen for them.
#[derive(Debug, Default)]
pub(crate) struct ChosenIds(RandomIdGenerator);

impl IdGenerator for ChosenIds {
    fn new_trace_id(&self) -> TraceId {
        let chosen = CHOSEN.get().trace;
        chosen.unwrap_or_else(|| self.0.new_trace_id())
    }

    fn new_span_id(&self) -> SpanId {
        let chosen = CHOSEN.get().span;
        chosen.unwrap_or_else(|| self.0.new_span_id())
    }
}

/// Makes a span, with these ids.
pub(super) fn choosing<T>(ids: Chosen, make: impl FnOnce() -> T) -> T {
    CHOSEN.set(ids);
    let made = make();
    CHOSEN.set(Chosen::default());
    made
}
