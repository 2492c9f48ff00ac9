//! What every request and every response has, whatever is between them: an id, a bound on its headers,
//! and a problem where something went wrong, panics included. The outermost layer.

use std::panic::AssertUnwindSafe;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use hango_application::use_cases::{RequestContext, Traceparent};
use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::Api;
use crate::problem::{Code, Problem};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The most bytes that a request's line and headers may have together.
const MAX_HEAD: usize = 32 * 1024;

pub(crate) async fn wrap(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let id = own_id(request.headers()).unwrap_or_else(|| api.use_cases.new_id().to_string());
    let context = RequestContext {
        id: Some(id.clone()),
        traceparent: only(request.headers(), &TRACEPARENT).and_then(Traceparent::parse),
    };
    request.extensions_mut().insert(context);
    let mut response = if head_length(&request) > MAX_HEAD {
        let detail = format!("a request's headers may have {MAX_HEAD} bytes");
        Problem::new(Code::HeadersTooLarge, detail).into_response()
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

/// About as many bytes as the request's line and headers had.
fn head_length(request: &Request) -> usize {
    let uri = request.uri();
    let target = uri.path_and_query().map_or(0, |it| it.as_str().len());
    let headers = request.headers().iter();
    let fields = headers.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    target + fields.sum::<usize>()
}
