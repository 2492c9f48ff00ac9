//! What agents can be made of.

use axum::Json;
use axum::extract::State;
use hango_application::use_cases::{ProviderInfo, ToolInfo};
use hango_domain::tool::{Idempotency, ToolDef};
use serde::Serialize;
use serde_json::Value;

use crate::Api;
use crate::auth::Authenticated;
use crate::paging::ListBody;
use crate::params::Params;
use crate::problem::Problem;

/// A registered tool.
#[derive(Debug, Serialize)]
pub(crate) struct ToolBody {
    name: String,
    description: String,
    parameters: Value,
    idempotency: Idempotency,
}

/// A configured provider.
#[derive(Debug, Serialize)]
pub(crate) struct ProviderBody {
    name: String,
    kind: String,
}

/// `GET /v1/tools` — every tool that an agent can name.
pub(crate) async fn tools(
    State(api): State<Api>,
    _: Authenticated,
    mut params: Params,
) -> Result<Json<ListBody<ToolBody>>, Problem> {
    let paging = params.paging("tools")?;
    params.input(()).accepted()?;
    Ok(Json(paging.slice(api.use_cases.catalog().tools.clone())))
}

/// `GET /v1/providers` — the configured providers.
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
