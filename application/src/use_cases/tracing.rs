//! Where requests and runs are traced, and who is told of them.

use std::sync::Arc;

use hango_domain::run::RunStatus;
use hango_domain::{RunId, Sampling, Timestamp};
use hango_ports::Telemetry;
use hango_ports::telemetry::{Observation, RequestServed, RequestTrace};

use super::{Traceparent, UseCases};
use crate::story::{StoryTeller, Taken};

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

    /// Tells of runs that were cancelled while nobody held them.
    pub(super) fn tell_of_cancelled(&self, runs: impl IntoIterator<Item = RunId>) {
        let taken: Vec<_> = runs
            .into_iter()
            .map(|run| Taken {
                run,
                abandoned: None,
                status: RunStatus::Cancelled,
            })
            .collect();
        if taken.is_empty() {
            return;
        }
        let providers = self.catalog.providers.iter();
        let kinds = providers.map(|provider| (provider.name.clone(), provider.kind.clone()));
        let teller = StoryTeller {
            runs: Arc::clone(&self.stores.runs),
            telemetry: Arc::clone(&self.telemetry),
            kinds: kinds.collect(),
        };
        teller.tell_aside(taken);
    }
}
