//! A request to the API.

use hango_ports::telemetry::{ErrorType, RequestServed};
use opentelemetry::trace::SpanKind;

use super::draft::{Draft, Parent};
use crate::names::{key, span, value};

/// `None` for one that is not recorded.
pub(super) fn draft(request: RequestServed) -> Option<Draft> {
    let trace = request.trace.filter(|trace| trace.sampled)?;
    let method = request.method.unwrap_or(span::HTTP);
    let name = match &request.route {
        Some(route) => format!("{method} {route}"),
        None => method.to_owned(),
    };
    let failed = request.status.filter(|status| *status >= 500);
    let parent = trace.parent.map(|span| Parent { span, remote: true });
    let draft = Draft {
        name: name.into(),
        kind: SpanKind::Server,
        trace: trace.trace_id,
        span: Some(trace.span_id),
        parent,
        took: request.took,
        attributes: Vec::with_capacity(4),
        events: Vec::new(),
        link: None,
        error: None,
    };
    let method = request.method.unwrap_or(value::OTHER_METHOD);
    Some(
        draft
            .with(key::HTTP_METHOD, method)
            .with_some(key::HTTP_ROUTE, request.route)
            .with_some(key::HTTP_STATUS, request.status.map(i64::from))
            .failed(failed.map(ErrorType::of_status)),
    )
}
