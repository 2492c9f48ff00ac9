//! Tenants, as an operator makes and suspends them.

use axum::Json;
use axum::extract::State;
use hango_application::use_cases::NewTenant;
use hango_domain::TenantId;
use hango_domain::people::{Tenant, TenantStatus};
use hango_ports::identity_store::Credential;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::keys::NewKeyBody;
use super::users::UserBody;
use crate::Api;
use crate::body::JsonBody;
use crate::fields::{fields, text, word};
use crate::openapi::requests::{self, Piece};
use crate::openapi::schema;
use crate::operator::Operator;
use crate::paging::ListBody;
use crate::params::{Params, PathId};
use crate::problem::Problem;
use crate::time::Time;

const STATUSES: &[(&str, TenantStatus)] = &[
    (TenantStatus::Active.as_str(), TenantStatus::Active),
    (TenantStatus::Suspended.as_str(), TenantStatus::Suspended),
];

/// A tenant.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tenant)]
pub(crate) struct TenantBody {
    #[schema(value_type = Uuid)]
    id: TenantId,
    slug: String,
    name: String,
    #[schema(schema_with = schema::tenant_status)]
    status: TenantStatus,
    created_at: Time,
    updated_at: Time,
}

/// A tenant that was just made, with its owner and his key.
#[derive(Serialize, ToSchema)]
#[schema(as = TenantWithOwner)]
pub(crate) struct NewTenantBody {
    tenant: TenantBody,
    owner: UserBody,
    api_key: NewKeyBody,
}

/// Makes a tenant with its owner and his first key.
#[utoipa::path(
    post, path = "/v1/admin/tenants", tag = "Operator", operation_id = "create_tenant",
    request_body = requests::NewTenant,
    responses((status = 201, description = "The tenant, its owner, and his key with its text.", body = NewTenantBody)),
)]
pub(crate) async fn create(
    State(api): State<Api>,
    Operator(request): Operator,
    params: Params,
    body: JsonBody,
) -> Result<(StatusCode, Json<NewTenantBody>), Problem> {
    let new = body.read(params, |tenant| {
        let owner = tenant.required(
            "owner",
            fields(|owner| {
                let email = owner.required("email", text).unwrap_or_default();
                (email, owner.required("name", text))
            }),
        );
        let (owner_email, owner_name) = owner.unwrap_or_default();
        NewTenant {
            slug: tenant.required("slug", text).unwrap_or_default(),
            name: tenant.required("name", text),
            owner_email,
            owner_name,
        }
    });
    let (made, text) = api.use_cases.create_tenant(&request, new).await?;
    let Credential { key, user, tenant } = made;
    let body = NewTenantBody {
        tenant: tenant.into(),
        owner: user.into(),
        api_key: (key, text).into(),
    };
    Ok((StatusCode::CREATED, Json(body)))
}

/// Tenants, newest first.
#[utoipa::path(
    get, path = "/v1/admin/tenants", tag = "Operator", operation_id = "list_tenants",
    params(Piece),
    responses((status = 200, body = ListBody<TenantBody>)),
)]
pub(crate) async fn list(
    State(api): State<Api>,
    _: Operator,
    mut params: Params,
) -> Result<Json<ListBody<TenantBody>>, Problem> {
    let paging = params.paging("tenants")?;
    params.input(()).accepted()?;
    let page = api.use_cases.tenants(paging.request()).await?;
    Ok(Json(paging.page(page)))
}

/// Suspends a tenant, or lets it work again.
#[utoipa::path(
    patch, path = "/v1/admin/tenants/{tenant}", tag = "Operator", operation_id = "update_tenant",
    params(("tenant" = Uuid, Path, description = "The tenant.")),
    request_body = requests::TenantChange,
    responses((status = 200, body = TenantBody)),
)]
pub(crate) async fn update(
    State(api): State<Api>,
    Operator(request): Operator,
    PathId(tenant): PathId<TenantId>,
    params: Params,
    body: JsonBody,
) -> Result<Json<TenantBody>, Problem> {
    let status = body.read(params, |fields| {
        let status = fields.required("status", word(STATUSES));
        status.unwrap_or(TenantStatus::Active)
    });
    let tenant = api
        .use_cases
        .set_tenant_status(&request, tenant, status)
        .await?;
    Ok(Json(tenant.into()))
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
