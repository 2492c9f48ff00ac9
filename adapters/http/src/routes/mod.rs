//! The paths of the API, one module for each theme.

mod admin;
mod agents;
mod audit;
mod catalog;
mod keys;
mod me;
mod messages;
mod platform;
mod run_body;
mod runs;
mod sessions;
mod usage;
mod users;

use axum::Router;
use axum::routing::{delete, get, patch, post};

use crate::Api;

/// How the process is.
pub(crate) fn platform() -> Router<Api> {
    Router::new()
        .route("/healthz", get(platform::health))
        .route("/readyz", get(platform::ready))
}

/// What an operator can do, every path with its methods.
pub(crate) fn operator_calls() -> Router<Api> {
    Router::new()
        .route("/v1/admin/tenants", get(admin::list).post(admin::create))
        .route("/v1/admin/tenants/{tenant}", patch(admin::update))
}

/// What callers can do, every path with its methods.
pub(crate) fn calls() -> Router<Api> {
    Router::new()
        .route("/v1/me", get(me::read))
        .route("/v1/users", get(users::list).post(users::create))
        .route("/v1/users/{user}", get(users::read).patch(users::update))
        .route("/v1/api-keys", get(keys::list).post(keys::create))
        .route("/v1/api-keys/{key}", delete(keys::revoke))
        .route("/v1/audit-events", get(audit::list))
        .route("/v1/tools", get(catalog::tools))
        .route("/v1/providers", get(catalog::providers))
        .route("/v1/agents", get(agents::list).post(agents::create))
        .route(
            "/v1/agents/{agent}",
            get(agents::read)
                .patch(agents::update)
                .delete(agents::archive),
        )
        .route("/v1/sessions", get(sessions::list).post(sessions::create))
        .route(
            "/v1/sessions/{session}",
            get(sessions::read)
                .patch(sessions::update)
                .delete(sessions::delete),
        )
        .route(
            "/v1/sessions/{session}/messages",
            get(messages::list).post(messages::append),
        )
        .route(
            "/v1/sessions/{session}/runs",
            get(runs::list_in_session).post(runs::create),
        )
        .route("/v1/runs", get(runs::list))
        .route("/v1/runs/{run}", get(runs::read))
        .route("/v1/runs/{run}/tool-calls", get(runs::tool_calls))
        .route("/v1/runs/{run}/cancel", post(runs::cancel))
        .route("/v1/usage", get(usage::read))
}
