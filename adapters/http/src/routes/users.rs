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

use crate::Api;
use crate::auth::Authenticated;
use crate::body::JsonBody;
use crate::fields::{text, word};
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

/// `POST /v1/users` — adds a user.
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

/// `GET /v1/users` — the users that the caller sees, newest first.
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

/// `GET /v1/users/{user}` — one user.
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

/// `PATCH /v1/users/{user}` — changes what is given.
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
