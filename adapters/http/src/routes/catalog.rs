//! What agents can be made of.

use axum::Json;
use axum::extract::State;
use hango_application::use_cases::{ProviderInfo, ToolInfo};
use hango_domain::tool::{Idempotency, ToolDef};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::Api;
use crate::auth::Authenticated;
use crate::openapi::requests::Piece;
use crate::openapi::schema;
use crate::paging::ListBody;
use crate::params::Params;
use crate::problem::Problem;

/// A registered tool.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tool)]
pub(crate) struct ToolBody {
    name: String,
    description: String,
    /// A JSON Schema of its arguments.
    #[schema(schema_with = schema::object)]
    parameters: Value,
    /// What may happen to a call that a crash left in doubt.
    #[schema(schema_with = schema::idempotency)]
    idempotency: Idempotency,
}

/// A configured provider.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Provider)]
pub(crate) struct ProviderBody {
    name: String,
    kind: String,
}

/// Every tool that an agent can name.
#[utoipa::path(
    get, path = "/v1/tools", tag = "Agents", operation_id = "list_tools",
    params(Piece),
    responses((status = 200, body = ListBody<ToolBody>)),
)]
pub(crate) async fn tools(
    State(api): State<Api>,
    _: Authenticated,
    mut params: Params,
) -> Result<Json<ListBody<ToolBody>>, Problem> {
    let paging = params.paging("tools")?;
    params.input(()).accepted()?;
    Ok(Json(paging.slice(api.use_cases.catalog().tools.clone())))
}

/// The configured providers.
#[utoipa::path(
    get, path = "/v1/providers", tag = "Agents", operation_id = "list_providers",
    params(Piece),
    responses((status = 200, body = ListBody<ProviderBody>)),
)]
pub(crate) async fn providers(
    State(api): State<Api>,
    _: Authenticated,
    mut params: Params,
) -> Result<Json<ListBody<ProviderBody>>, Problem> {
    let paging = params.paging("providers")?;
    params.input(()).accepted()?;
    let providers = api.use_cases.catalog().providers.clone();
    Ok(Json(paging.slice(providers)))
}

impl From<ToolInfo> for ToolBody {
    fn from(tool: ToolInfo) -> Self {
        let ToolInfo {
            definition:
                ToolDef {
                    name,
                    description,
                    parameters,
                },
            idempotency,
        } = tool;
        Self {
            name,
            description,
            parameters,
            idempotency,
        }
    }
}

impl From<ProviderInfo> for ProviderBody {
    fn from(provider: ProviderInfo) -> Self {
        let ProviderInfo { name, kind } = provider;
        Self { name, kind }
    }
}
