//! Who the caller is.

use axum::Json;
use hango_ports::identity_store::Credential;
use serde::Serialize;
use utoipa::ToSchema;

use super::admin::TenantBody;
use super::keys::ApiKeyBody;
use super::users::UserBody;
use crate::auth::Authenticated;
use crate::params::Params;
use crate::problem::Problem;

/// The caller, with all that was asked to let him in.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Me)]
pub(crate) struct MeBody {
    user: UserBody,
    tenant: TenantBody,
    api_key: ApiKeyBody,
}

/// Who the caller is.
#[utoipa::path(
    get, path = "/v1/me", tag = "People", operation_id = "read_me",
    responses((status = 200, body = MeBody)),
)]
pub(crate) async fn read(
    Authenticated(caller): Authenticated,
    params: Params,
) -> Result<Json<MeBody>, Problem> {
    params.input(()).accepted()?;
    let Credential { key, user, tenant } = caller.credential;
    Ok(Json(MeBody {
        user: user.into(),
        tenant: tenant.into(),
        api_key: key.into(),
    }))
}
