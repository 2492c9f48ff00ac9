//! What is told of a request: how long it took and how it was answered, and where it is traced. A client
//! that does not wait for its answer ends it too.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request};
use hango_application::use_cases::{Traceparent, UseCases};
use hango_domain::Timestamp;
use hango_ports::telemetry::{Interval, RequestServed, RequestTrace};
use http::{Method, StatusCode};

use crate::Api;

/// Routes that are asked all the time and tell nothing: they have no spans.
const PROBES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// A request that is being answered; empty where nobody wants to know of it.
pub(crate) struct Serving(Option<Told>);

struct Told {
    use_cases: Arc<UseCases>,
    trace: Option<RequestTrace>,
    method: Option<&'static str>,
    route: Option<String>,
    begun: Timestamp,
    status: Option<u16>,
}

impl Serving {
    /// A request of `caller`, if he said who he is.
    pub(crate) fn begin(api: &Api, request: &Request, caller: Option<&Traceparent>) -> Self {
        if !api.use_cases.is_observed() {
            return Self(None);
        }
        let route = request.extensions().get::<MatchedPath>();
        let route = route.map(|path| path.as_str().to_owned());
        let is_probe = route.as_deref().is_some_and(|it| PROBES.contains(&it));
        let trace = (!is_probe).then(|| api.use_cases.request_trace(caller));
        Self(Some(Told {
            trace: trace.flatten(),
            method: known(request.method()),
            route,
            begun: api.use_cases.now(),
            status: None,
            use_cases: Arc::clone(&api.use_cases),
        }))
    }

    /// Its span, if it has one.
    pub(crate) fn traceparent(&self) -> Option<Traceparent> {
        let trace = self.0.as_ref()?.trace.as_ref()?;
        Some(Traceparent::of(trace))
    }

    /// It was answered.
    pub(crate) fn answered(mut self, status: StatusCode) {
        if let Some(told) = &mut self.0 {
            told.status = Some(status.as_u16());
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.use_cases.served(RequestServed {
            trace: self.trace,
            method: self.method,
            route: self.route.take(),
            status: self.status,
            took: Interval {
                begun: self.begun,
                ended: self.use_cases.now(),
            },
        });
    }
}

/// The method, if it is one that everybody knows: others are as many as their senders like.
fn known(method: &Method) -> Option<&'static str> {
    const KNOWN: [&str; 9] = [
        "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
    ];
    KNOWN.into_iter().find(|known| *known == method.as_str())
}
