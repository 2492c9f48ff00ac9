//! Sessions.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use hango_application::use_cases::{Made, SessionDraft, SessionQuery};
use hango_domain::session::Session;
use hango_domain::{AgentId, SessionId, TenantId, UserId};
use hango_ports::agent_store::AgentRef;
use hango_ports::session_store::SessionPatch;
use http::{StatusCode, header};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::Api;
use crate::auth::Authenticated;
use crate::body::JsonBody;
use crate::fields::{object, text};
use crate::idempotency::{self, KeyHeader};
use crate::openapi::requests::{self, Piece};
use crate::openapi::schema;
use crate::paging::ListBody;
use crate::params::{Params, PathId, agent_ref};
use crate::problem::Problem;
use crate::time::Time;

/// A session.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub(crate) struct SessionBody {
    #[schema(value_type = Uuid)]
    id: SessionId,
    #[schema(value_type = Uuid)]
    tenant_id: TenantId,
    #[schema(value_type = Uuid)]
    agent_id: AgentId,
    #[schema(value_type = Uuid)]
    created_by: UserId,
    title: String,
    #[schema(schema_with = schema::object)]
    metadata: Map<String, Value>,
    created_at: Time,
    updated_at: Time,
}

/// Makes a session with an agent.
#[utoipa::path(
    post, path = "/v1/sessions", tag = "Sessions", operation_id = "create_session",
    request_body = requests::NewSession,
    responses((status = 201, body = SessionBody, headers(("location" = String, description = "Where it is.")))),
)]
pub(crate) async fn create(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    key: KeyHeader,
    params: Params,
    body: JsonBody,
) -> Result<impl IntoResponse, Problem> {
    let once = key.of(&caller, "POST /v1/sessions", &body);
    let draft = body.read(params, |fields| SessionDraft {
        agent: fields
            .required("agent", text)
            .and_then(|agent| agent_ref(&agent))
            // No agent has that slug.
            .unwrap_or(AgentRef::Slug(String::new())),
        title: fields.optional("title", text).unwrap_or_default(),
        metadata: fields.optional("metadata", object).unwrap_or_default(),
    });
    let draft = key.judge(draft);
    let made = api.use_cases.create_session(&caller, draft, once);
    let Made { thing, replayed } = made.await?;
    let location = [(header::LOCATION, format!("/v1/sessions/{}", thing.id))];
    let body = Json(SessionBody::from(thing));
    Ok((
        StatusCode::CREATED,
        location,
        idempotency::replayed(replayed),
        body,
    ))
}

/// Sessions, newest first.
#[utoipa::path(
    get, path = "/v1/sessions", tag = "Sessions", operation_id = "list_sessions",
    params(Piece, ("agent" = Option<String>, Query, description = "Only those with this agent, by id or slug."), ("created_by" = Option<Uuid>, Query, description = "Only those of this user.")),
    responses((status = 200, body = ListBody<SessionBody>)),
)]
pub(crate) async fn list(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    mut params: Params,
) -> Result<Json<ListBody<SessionBody>>, Problem> {
    let query = SessionQuery {
        agent: params.agent("agent"),
        created_by: params.id("created_by"),
    };
    let paging = params.paging("sessions")?;
    let query = params.input(query).accepted()?;
    let page = api
        .use_cases
        .sessions(&caller, query, paging.request())
        .await?;
    Ok(Json(paging.page(page)))
}

/// One session.
#[utoipa::path(
    get, path = "/v1/sessions/{session}", tag = "Sessions", operation_id = "read_session",
    params(("session" = Uuid, Path, description = "The session.")),
    responses((status = 200, body = SessionBody)),
)]
pub(crate) async fn read(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(session): PathId<SessionId>,
    params: Params,
) -> Result<Json<SessionBody>, Problem> {
    let session = api.use_cases.session(&caller, session).await?;
    params.input(()).accepted()?;
    Ok(Json(session.into()))
}

/// Changes what is given.
#[utoipa::path(
    patch, path = "/v1/sessions/{session}", tag = "Sessions", operation_id = "update_session",
    params(("session" = Uuid, Path, description = "The session.")),
    request_body = requests::SessionChange,
    responses((status = 200, body = SessionBody)),
)]
pub(crate) async fn update(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(session): PathId<SessionId>,
    params: Params,
    body: JsonBody,
) -> Result<Json<SessionBody>, Problem> {
    let patch = body.read(params, |fields| SessionPatch {
        title: fields.optional("title", text),
        metadata: fields.optional("metadata", object),
    });
    let session = api
        .use_cases
        .update_session(&caller, session, patch)
        .await?;
    Ok(Json(session.into()))
}

/// Removes a session and all that is under it.
#[utoipa::path(
    delete, path = "/v1/sessions/{session}", tag = "Sessions", operation_id = "delete_session",
    params(("session" = Uuid, Path, description = "The session.")),
    responses((status = 204)),
)]
pub(crate) async fn delete(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(session): PathId<SessionId>,
    params: Params,
) -> Result<StatusCode, Problem> {
    let nothing = params.input(());
    api.use_cases
        .delete_session(&caller, session, nothing)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

impl From<Session> for SessionBody {
    fn from(session: Session) -> Self {
        let Session {
            id,
            tenant_id,
            agent_id,
            created_by,
            title,
            metadata,
            created_at,
            updated_at,
        } = session;
        Self {
            id,
            tenant_id,
            agent_id,
            created_by,
            title,
            metadata,
            created_at: Time(created_at),
            updated_at: Time(updated_at),
        }
    }
}
