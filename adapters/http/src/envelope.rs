//! What every request and every response has, whatever is between them: an id, and a
//! problem where something went wrong, panics and heads that could not be read included. The outermost layer.

use std::panic::AssertUnwindSafe;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use hango_application::use_cases::{RequestContext, Traceparent};
use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::Api;
use crate::head::Refusal;
use crate::problem::Problem;
use crate::serving::Serving;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

pub(crate) async fn wrap(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let id = own_id(request.headers()).unwrap_or_else(|| api.use_cases.new_id().to_string());
    let caller = only(request.headers(), &TRACEPARENT).and_then(Traceparent::parse);
    let serving = Serving::begin(&api, &request, caller.as_ref());
    let context = RequestContext {
        id: Some(id.clone()),
        traceparent: serving.traceparent().or(caller),
    };
    request.extensions_mut().insert(context);
    let mut response = if let Some(refusal) = request.extensions_mut().remove::<Refusal>() {
        Problem::from(refusal).into_response()
    } else {
        AssertUnwindSafe(next.run(request))
            .catch_unwind()
            .await
            .unwrap_or_else(|_| Problem::panicked().into_response())
    };
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        response = problem.write_to(response, &id);
    }
    if let Ok(id) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    let sniff = HeaderValue::from_static("nosniff");
    response
        .headers_mut()
        .insert(header::X_CONTENT_TYPE_OPTIONS, sniff);
    serving.answered(response.status());
    response
}

/// The id that the client gave the request, if it is 1 to 128 visible ASCII characters.
fn own_id(headers: &HeaderMap) -> Option<String> {
    let id = only(headers, &REQUEST_ID)?;
    let ok = (1..=128).contains(&id.len()) && id.bytes().all(|c| c.is_ascii_graphic());
    ok.then(|| id.to_owned())
}

/// The value of a header that is there once, and text.
pub(crate) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    value.to_str().ok()
}
