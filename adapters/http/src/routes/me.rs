//! Who the caller is.

use axum::Json;
use hango_domain::access::Role;
use hango_domain::people::{ApiKey, Tenant, TenantStatus, User, UserStatus};
use hango_domain::{ApiKeyId, TenantId, UserId};
use hango_ports::identity_store::Credential;
use serde::Serialize;

use crate::auth::Authenticated;
use crate::params::Params;
use crate::problem::Problem;
use crate::time::Time;

/// The caller, with all that was asked to let him in.
#[derive(Debug, Serialize)]
pub(crate) struct MeBody {
    user: UserBody,
    tenant: TenantBody,
    api_key: ApiKeyBody,
}

/// A user.
#[derive(Debug, Serialize)]
pub(crate) struct UserBody {
    id: UserId,
    tenant_id: TenantId,
    email: String,
    name: String,
    role: Role,
    status: UserStatus,
    created_at: Time,
    updated_at: Time,
}

/// A tenant.
#[derive(Debug, Serialize)]
pub(crate) struct TenantBody {
    id: TenantId,
    slug: String,
    name: String,
    status: TenantStatus,
    created_at: Time,
    updated_at: Time,
}

/// A key, without its secret.
#[derive(Debug, Serialize)]
pub(crate) struct ApiKeyBody {
    id: ApiKeyId,
    tenant_id: TenantId,
    user_id: UserId,
    name: String,
    prefix: String,
    created_at: Time,
    expires_at: Option<Time>,
    revoked_at: Option<Time>,
    last_used_at: Option<Time>,
}

/// `GET /v1/me` — who the caller is.
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

impl From<User> for UserBody {
    fn from(user: User) -> Self {
        let User {
            id,
            tenant_id,
            email,
            name,
            role,
            status,
            created_at,
            updated_at,
        } = user;
        Self {
            id,
            tenant_id,
            email,
            name,
            role,
            status,
            created_at: Time(created_at),
            updated_at: Time(updated_at),
        }
    }
}

impl From<Tenant> for TenantBody {
    fn from(tenant: Tenant) -> Self {
        let Tenant {
            id,
            slug,
            name,
            status,
            created_at,
            updated_at,
        } = tenant;
        Self {
            id,
            slug,
            name,
            status,
            created_at: Time(created_at),
            updated_at: Time(updated_at),
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
