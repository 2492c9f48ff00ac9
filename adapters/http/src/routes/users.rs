//! The users of the caller's tenant.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use hango_application::use_cases::NewUser;
use hango_domain::access::Role;
use hango_domain::people::{User, UserStatus};
use hango_domain::{TenantId, UserId};
use hango_ports::identity_store::UserPatch;
use http::{StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Api;
use crate::auth::Authenticated;
use crate::body::JsonBody;
use crate::fields::{text, word};
use crate::openapi::requests::{self, Piece};
use crate::openapi::schema;
use crate::paging::ListBody;
use crate::params::{Params, PathId};
use crate::problem::Problem;
use crate::time::Time;

const ROLES: &[(&str, Role)] = &[
    (Role::Owner.as_str(), Role::Owner),
    (Role::Admin.as_str(), Role::Admin),
    (Role::Member.as_str(), Role::Member),
];

const STATUSES: &[(&str, UserStatus)] = &[
    (UserStatus::Active.as_str(), UserStatus::Active),
    (UserStatus::Disabled.as_str(), UserStatus::Disabled),
];

/// A user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = User)]
pub(crate) struct UserBody {
    #[schema(value_type = Uuid)]
    id: UserId,
    #[schema(value_type = Uuid)]
    tenant_id: TenantId,
    email: String,
    name: String,
    #[schema(schema_with = schema::role)]
    role: Role,
    #[schema(schema_with = schema::user_status)]
    status: UserStatus,
    created_at: Time,
    updated_at: Time,
}

/// Adds a user.
#[utoipa::path(
    post, path = "/v1/users", tag = "People", operation_id = "create_user",
    request_body = requests::NewUser,
    responses((status = 201, body = UserBody, headers(("location" = String, description = "Where it is.")))),
)]
pub(crate) async fn create(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    params: Params,
    body: JsonBody,
) -> Result<impl IntoResponse, Problem> {
    let new = body.read(params, |fields| NewUser {
        email: fields.required("email", text).unwrap_or_default(),
        name: fields.required("name", text),
        role: fields.required("role", word(ROLES)).unwrap_or(Role::Member),
    });
    let user = api.use_cases.add_user(&caller, new).await?;
    let location = format!("/v1/users/{}", user.id);
    let body = Json(UserBody::from(user));
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], body))
}

/// The users that the caller sees, newest first.
#[utoipa::path(
    get, path = "/v1/users", tag = "People", operation_id = "list_users",
    params(Piece),
    responses((status = 200, body = ListBody<UserBody>)),
)]
pub(crate) async fn list(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    mut params: Params,
) -> Result<Json<ListBody<UserBody>>, Problem> {
    let paging = params.paging("users")?;
    params.input(()).accepted()?;
    let page = api.use_cases.users(&caller, paging.request()).await?;
    Ok(Json(paging.page(page)))
}

/// One user.
#[utoipa::path(
    get, path = "/v1/users/{user}", tag = "People", operation_id = "read_user",
    params(("user" = Uuid, Path, description = "The user.")),
    responses((status = 200, body = UserBody)),
)]
pub(crate) async fn read(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(user): PathId<UserId>,
    params: Params,
) -> Result<Json<UserBody>, Problem> {
    let user = api.use_cases.user(&caller, user).await?;
    params.input(()).accepted()?;
    Ok(Json(user.into()))
}

/// Changes what is given.
#[utoipa::path(
    patch, path = "/v1/users/{user}", tag = "People", operation_id = "update_user",
    params(("user" = Uuid, Path, description = "The user.")),
    request_body = requests::UserChange,
    responses((status = 200, body = UserBody)),
)]
pub(crate) async fn update(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(user): PathId<UserId>,
    params: Params,
    body: JsonBody,
) -> Result<Json<UserBody>, Problem> {
    let patch = body.read(params, |fields| UserPatch {
        name: fields.optional("name", text),
        role: fields.optional("role", word(ROLES)),
        status: fields.optional("status", word(STATUSES)),
    });
    let user = api.use_cases.update_user(&caller, user, patch).await?;
    Ok(Json(user.into()))
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
