//! API keys. A key's text is in the answer that makes it, and nowhere else.

use axum::Json;
use axum::extract::State;
use hango_application::use_cases::{KeyDraft, KeyText};
use hango_domain::people::ApiKey;
use hango_domain::{ApiKeyId, TenantId, UserId};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;
use crate::auth::Authenticated;
use crate::body::JsonBody;
use crate::fields::{id, moment, text};
use crate::openapi::requests::{self, Piece};
use crate::paging::ListBody;
use crate::params::{Params, PathId};
use crate::problem::Problem;
use crate::time::Time;

/// A key, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub(crate) struct ApiKeyBody {
    #[schema(value_type = Uuid)]
    id: ApiKeyId,
    #[schema(value_type = Uuid)]
    tenant_id: TenantId,
    #[schema(value_type = Uuid)]
    user_id: UserId,
    name: String,
    prefix: String,
    created_at: Time,
    expires_at: Option<Time>,
    revoked_at: Option<Time>,
    last_used_at: Option<Time>,
}

/// A key that was just made, with its whole text. Without `Debug`, so that it is shown to nobody else.
#[derive(Serialize, ToSchema)]
#[schema(as = ApiKeyWithText)]
pub(crate) struct NewKeyBody {
    #[serde(flatten)]
    api_key: ApiKeyBody,
    /// The whole text.
    key: String,
}

/// Makes a key.
#[utoipa::path(
    post, path = "/v1/api-keys", tag = "People", operation_id = "create_api_key",
    request_body = requests::NewApiKey,
    responses((status = 201, description = "The key with its text, which is shown this once.", body = NewKeyBody)),
)]
pub(crate) async fn create(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    params: Params,
    body: JsonBody,
) -> Result<(StatusCode, Json<NewKeyBody>), Problem> {
    let draft = body.read(params, |fields| KeyDraft {
        name: fields.required("name", text).unwrap_or_default(),
        user: fields.optional("user_id", id),
        expires_at: fields.nullable("expires_at", moment).flatten(),
    });
    let made = api.use_cases.create_api_key(&caller, draft).await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// The keys that the caller sees, newest first.
#[utoipa::path(
    get, path = "/v1/api-keys", tag = "People", operation_id = "list_api_keys",
    params(Piece),
    responses((status = 200, body = ListBody<ApiKeyBody>)),
)]
pub(crate) async fn list(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    mut params: Params,
) -> Result<Json<ListBody<ApiKeyBody>>, Problem> {
    let paging = params.paging("api-keys")?;
    params.input(()).accepted()?;
    let page = api.use_cases.api_keys(&caller, paging.request()).await?;
    Ok(Json(paging.page(page)))
}

/// Revokes a key.
#[utoipa::path(
    delete, path = "/v1/api-keys/{key}", tag = "People", operation_id = "revoke_api_key",
    params(("key" = Uuid, Path, description = "The key.")),
    responses((status = 204)),
)]
pub(crate) async fn revoke(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(key): PathId<ApiKeyId>,
    params: Params,
) -> Result<StatusCode, Problem> {
    let nothing = params.input(());
    api.use_cases.revoke_api_key(&caller, key, nothing).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl From<(ApiKey, KeyText)> for NewKeyBody {
    fn from((key, text): (ApiKey, KeyText)) -> Self {
        Self {
            api_key: key.into(),
            key: text.expose().to_owned(),
        }
    }
}

impl From<ApiKey> for ApiKeyBody {
    fn from(key: ApiKey) -> Self {
        let ApiKey {
            id,
            tenant_id,
            user_id,
            name,
            prefix,
            secret_hash: _,
            created_at,
            expires_at,
            revoked_at,
            last_used_at,
        } = key;
        Self {
            id,
            tenant_id,
            user_id,
            name,
            prefix,
            created_at: Time(created_at),
            expires_at: expires_at.map(Time),
            revoked_at: revoked_at.map(Time),
            last_used_at: last_used_at.map(Time),
        }
    }
}
