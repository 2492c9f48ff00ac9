//! Whether the process lives, and whether it takes work.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;
use crate::problem::Problem;

/// How the process is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Status)]
pub(crate) struct StatusBody {
    status: &'static str,
}

/// 200 while the process lives.
#[utoipa::path(
    get, path = "/healthz", tag = "Platform", operation_id = "health",
    responses((status = 200, body = StatusBody)),
)]
pub(crate) async fn health() -> Json<StatusBody> {
    Json(StatusBody { status: "ok" })
}

/// 200 when the process takes work, else the check that fails.
#[utoipa::path(
    get, path = "/readyz", tag = "Platform", operation_id = "ready",
    responses((status = 200, body = StatusBody)),
)]
pub(crate) async fn ready(State(api): State<Api>) -> Result<Json<StatusBody>, Problem> {
    match api.readiness.failing().await {
        None => Ok(Json(StatusBody { status: "ready" })),
        Some(check) => Err(Problem::not_ready(check)),
    }
}
