//! The paths of the API, one module for each theme.

mod admin;
mod agents;
mod audit;
mod catalog;
mod explain_body;
mod keys;
mod me;
mod messages;
mod platform;
mod run_body;
mod runs;
mod sessions;
mod usage;
mod users;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::Api;

/// How the process is.
pub(crate) fn platform() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(platform::health))
        .routes(routes!(platform::ready))
}

/// What an operator can do.
pub(crate) fn operator_calls() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(admin::list, admin::create))
        .routes(routes!(admin::update))
}

/// What callers can do.
pub(crate) fn calls() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(me::read))
        .routes(routes!(users::list, users::create))
        .routes(routes!(users::read, users::update))
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::revoke))
        .routes(routes!(audit::list))
        .routes(routes!(catalog::tools))
        .routes(routes!(catalog::providers))
        .routes(routes!(agents::list, agents::create))
        .routes(routes!(agents::read, agents::update, agents::archive))
        .routes(routes!(sessions::list, sessions::create))
        .routes(routes!(sessions::read, sessions::update, sessions::delete))
        .routes(routes!(messages::list, messages::append))
        .routes(routes!(runs::list_in_session, runs::create))
        .routes(routes!(runs::list))
        .routes(routes!(runs::read))
        .routes(routes!(runs::tool_calls))
        .routes(routes!(runs::explain))
        .routes(routes!(runs::cancel))
        .routes(routes!(usage::read))
}
