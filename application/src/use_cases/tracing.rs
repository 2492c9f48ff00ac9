//! Where requests and runs are traced, and who is told of them.

use std::sync::Arc;

use hango_domain::{Sampling, Timestamp};
use hango_ports::Telemetry;
use hango_ports::telemetry::{Observation, RequestServed, RequestTrace};

use super::{Traceparent, UseCases};
use crate::story::StoryTeller;

/// How requests and runs are traced.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tracing {
    /// Which traces are recorded.
    pub sampling: Sampling,
    /// Whether requests have spans of their own; else runs link to their callers' spans.
    pub requests: bool,
}

impl UseCases {
    /// The same, told to `telemetry` and traced.
    #[must_use]
    pub fn observed_by(self, telemetry: Arc<dyn Telemetry>, tracing: Tracing) -> Self {
        Self {
            telemetry,
            tracing,
            ..self
        }
    }

    /// The span that a request has, within its caller's trace or in one of its own; `None` where requests
    /// have none.
    #[must_use]
    pub fn request_trace(&self, caller: Option<&Traceparent>) -> Option<RequestTrace> {
        if !self.tracing.requests {
            return None;
        }
        let sampling = self.tracing.sampling;
        let span_id = self.ids.span_id();
        let Some(caller) = caller else {
            let trace_id = self.ids.trace_id();
            return Some(RequestTrace {
                trace_id,
                span_id,
                parent: None,
                sampled: sampling.records(trace_id),
            });
        };
        Some(RequestTrace {
            trace_id: caller.trace_id(),
            span_id,
            parent: Some(caller.span_id()),
            sampled: sampling.records_within(caller.trace_id(), caller.is_recorded()),
        })
    }

    /// Whether somebody wants to know of requests.
    #[must_use]
    pub fn is_observed(&self) -> bool {
        self.telemetry.wants().facts
    }

    /// The present moment, by the clock that people have.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A request was answered.
    pub fn served(&self, request: RequestServed) {
        let told = Observation::RequestServed(Box::new(request));
        self.telemetry.observe(told);
    }

    /// Tells of runs that end without a holder.
    pub(super) fn story_teller(&self) -> StoryTeller<'_> {
        let kind_of = |name: &str| {
            let mut providers = self.catalog.providers.iter();
            let provider = providers.find(|provider| provider.name == name)?;
            Some(provider.kind.clone())
        };
        StoryTeller {
            runs: &*self.stores.runs,
            telemetry: &*self.telemetry,
            kind_of: Box::new(kind_of),
        }
    }
}
