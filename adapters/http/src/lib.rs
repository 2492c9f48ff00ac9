//! The API over HTTP: REST with JSON in and out.
//!
//! A handler translates and delegates: it reads what was sent into the input of one use case and writes
//! what comes back in shapes of this crate. It decides nothing; what is checked first is the order in
//! which extractors (who calls, whether the body is JSON) and then the use case look.

mod auth;
mod body;
mod digits;
mod envelope;
mod fields;
mod head;
mod idempotency;
mod json;
mod metrics;
mod openapi;
mod operator;
mod paging;
mod params;
mod problem;
mod rates;
mod readiness;
mod refusals;
mod routes;
mod serve;
mod serving;
mod time;
mod unread;
mod wire;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use hango_application::use_cases::{AdminToken, UseCases};
use hango_ports::telemetry::MetricsPage;

pub use metrics::router as metrics_router;
pub use openapi::document;
pub use rates::{RateLimits, Rates};
pub use readiness::Readiness;
pub use refusals::refusal_status;
pub use serve::{Limits, serve};
pub use time::parse as parse_moment;

/// What the API is made of.
#[derive(Clone)]
pub struct Api {
    /// What callers can do.
    pub use_cases: Arc<UseCases>,
    /// Whether this process takes work.
    pub readiness: Arc<Readiness>,
    /// How often callers came.
    pub rates: Arc<Rates>,
    /// The most bytes that a body may have.
    pub max_body_bytes: usize,
    /// What opens the calls that make tenants; without it there are none.
    pub admin_token: Option<AdminToken>,
    /// The page of metrics, where it is on this listener.
    pub metrics: Option<Arc<dyn MetricsPage>>,
}

/// The API's routes, those that tell how the process is, and the description of both.
pub fn router(api: Api) -> Router {
    let (platform, mut calls, operator_calls, document) = openapi::described();
    if api.admin_token.is_some() {
        calls = calls.merge(operator_calls);
    }
    let calls = calls
        .route_layer(from_fn_with_state(api.clone(), refusals::record))
        .route_layer(from_fn_with_state(api.clone(), readiness::unless_starting));
    let pages = openapi::pages(&document);
    let metrics = metrics::routes(api.metrics.as_ref());
    enveloped(api, calls.merge(platform).merge(pages).merge(metrics))
}

/// The routes that tell how the process is, where another one has the API.
pub fn platform_router(api: Api) -> Router {
    let (platform, ..) = openapi::described();
    let metrics = metrics::routes(api.metrics.as_ref());
    enveloped(api, platform.merge(metrics))
}

/// What every answer has in common.
fn enveloped(api: Api, routes: Router<Api>) -> Router {
    routes
        .fallback(async || problem::Problem::not_found())
        .method_not_allowed_fallback(async || problem::Problem::method_not_allowed())
        .layer(from_fn_with_state(api.clone(), envelope::wrap))
        .with_state(api)
}
