//! The API's description: OpenAPI 3.1, made of the handlers and of the types that they read and write.
//!
//! * A route cannot be there without its description: both come of one macro.
//! * What many operations have in common is added here by rule: who may call, the problems that can
//!   come of a body, a path or a query, and the headers of every answer. What only one can answer,
//!   [`refusals`](refusals::OF) says.

mod complete;
mod pages;
mod refusals;
pub(crate) mod requests;
pub(crate) mod schema;

use axum::Router;
use serde_json::Value;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;

use crate::Api;
use crate::routes;

pub(crate) use pages::pages;

/// What no operation says by itself.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "hango",
        description = include_str!("openapi/introduction.md"),
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    components(schemas(crate::problem::ProblemBody)),
    tags(
        (name = "Runs", description = "Executions: accepted durably, executed by workers."),
        (name = "Sessions", description = "Conversations and their messages."),
        (name = "Agents", description = "What a run is executed as, and what agents can be made of."),
        (name = "People", description = "Who calls."),
        (name = "Operator", description = "Tenants, for who runs the server. There only while `HANGO_ADMIN_TOKEN` is set."),
        (name = "Platform", description = "How the process is."),
    ),
)]
struct Common;

/// The routes of the contract, and their description:
/// first those that tell how the process is, then callers', then operators'.
pub(crate) fn described() -> (Router<Api>, Router<Api>, Router<Api>, Value) {
    let begun = OpenApiRouter::with_openapi(Common::openapi());
    let (platform, document) = begun.merge(routes::platform()).split_for_parts();
    let begun = OpenApiRouter::with_openapi(document);
    let (calls, document) = begun.merge(routes::calls()).split_for_parts();
    let begun = OpenApiRouter::with_openapi(document);
    let (operator_calls, document) = begun.merge(routes::operator_calls()).split_for_parts();
    let mut document = serde_json::to_value(document).expect("a description is JSON");
    complete::complete(&mut document);
    (platform, calls, operator_calls, document)
}

/// The description of the API.
#[must_use]
pub fn document() -> Value {
    described().3
}
