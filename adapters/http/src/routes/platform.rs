//! Whether the process lives, and whether it takes work.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use crate::Api;
use crate::problem::Problem;

/// `GET /healthz` — 200 while the process lives.
pub(crate) async fn health() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// `GET /readyz` — 200 when the process takes work, else the check that fails.
pub(crate) async fn ready(State(api): State<Api>) -> Result<Json<Value>, Problem> {
    match api.readiness.failing().await {
        None => Ok(Json(json!({"status": "ready"}))),
        Some(check) => Err(Problem::not_ready(check)),
    }
}
