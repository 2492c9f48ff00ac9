//! Agents.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use hango_application::use_cases::{AgentDraft, FaultCode, NewAgent};
use hango_domain::agent::{Agent, AgentLimits, AgentSettings};
use hango_domain::layers;
use hango_domain::{AgentId, TenantId, UserId};
use hango_ports::page::Page;
use http::{HeaderMap, StatusCode, header};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::Api;
use crate::auth::Authenticated;
use crate::body::JsonBody;
use crate::envelope::only;
use crate::fields::{Fields, Place, count, fields, list as items, number, object, text};
use crate::openapi::requests::{self, Piece};
use crate::openapi::schema;
use crate::paging::ListBody;
use crate::params::{Params, PathAgent};
use crate::problem::Problem;
use crate::time::Time;

/// An agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Agent)]
pub(crate) struct AgentBody {
    #[schema(value_type = Uuid)]
    id: AgentId,
    #[schema(value_type = Uuid)]
    tenant_id: TenantId,
    slug: String,
    name: String,
    description: String,
    version: u32,
    provider: String,
    model: String,
    system_prompt: String,
    tools: Vec<String>,
    max_tokens: Option<u32>,
    temperature: Option<f64>,
    limits: LimitsBody,
    #[schema(schema_with = schema::middleware)]
    middleware: layers::Settings,
    #[schema(schema_with = schema::object)]
    metadata: Map<String, Value>,
    #[schema(value_type = Uuid)]
    created_by: UserId,
    created_at: Time,
    updated_at: Time,
    archived_at: Option<Time>,
}

/// An agent's own limits.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Limits)]
pub(crate) struct LimitsBody {
    max_iterations: Option<u32>,
    tool_timeout_ms: Option<u64>,
    run_deadline_ms: Option<u64>,
}

/// Makes an agent.
#[utoipa::path(
    post, path = "/v1/agents", tag = "Agents", operation_id = "create_agent",
    request_body = requests::NewAgent,
    responses((status = 201, body = AgentBody, headers(("location" = String, description = "Where it is.")))),
)]
pub(crate) async fn create(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    params: Params,
    body: JsonBody,
) -> Result<impl IntoResponse, Problem> {
    let new = body.read(params, |fields| NewAgent {
        slug: fields.required("slug", text).unwrap_or_default(),
        draft: AgentDraft {
            provider: fields.required("provider", text),
            model: fields.required("model", text),
            ..draft(fields)
        },
    });
    let agent = api.use_cases.create_agent(&caller, new).await?;
    let location = format!("/v1/agents/{}", agent.id);
    let body = Json(AgentBody::of(&api, agent));
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], body))
}

/// The tenant's agents, newest first.
#[utoipa::path(
    get, path = "/v1/agents", tag = "Agents", operation_id = "list_agents",
    params(Piece, ("include_archived" = Option<bool>, Query, description = "Archived ones too.")),
    responses((status = 200, body = ListBody<AgentBody>)),
)]
pub(crate) async fn list(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    mut params: Params,
) -> Result<Json<ListBody<AgentBody>>, Problem> {
    let flags = params.words("include_archived", &[("true", true), ("false", false)]);
    let paging = params.paging("agents")?;
    params.input(()).accepted()?;
    let archived = flags.contains(&true);
    let page = api
        .use_cases
        .agents(&caller, archived, paging.request())
        .await?;
    let bodies = page
        .items
        .into_iter()
        .map(|agent| AgentBody::of(&api, agent));
    let page = Page {
        items: bodies.collect(),
        next: page.next,
    };
    Ok(Json(paging.page::<AgentBody, AgentBody>(page)))
}

/// One agent, archived ones too.
#[utoipa::path(
    get, path = "/v1/agents/{agent}", tag = "Agents", operation_id = "read_agent",
    params(("agent" = String, Path, description = "Its id or slug.")),
    responses((status = 200, body = AgentBody)),
)]
pub(crate) async fn read(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathAgent(agent): PathAgent,
    params: Params,
) -> Result<Json<AgentBody>, Problem> {
    let agent = api.use_cases.agent(&caller, agent).await?;
    params.input(()).accepted()?;
    Ok(Json(AgentBody::of(&api, agent)))
}

/// Changes what is given; with `If-Match`, only that version. A change makes the version one higher; what
/// changes nothing is answered with the agent as it is.
#[utoipa::path(
    patch, path = "/v1/agents/{agent}", tag = "Agents", operation_id = "update_agent",
    params(("agent" = String, Path, description = "Its id or slug."), ("if-match" = Option<String>, Header, description = "Only this version, in quotes: `\"3\"`.")),
    request_body = requests::AgentChange,
    responses((status = 200, body = AgentBody)),
)]
pub(crate) async fn update(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathAgent(agent): PathAgent,
    params: Params,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Json<AgentBody>, Problem> {
    let draft = body.read(params, |fields| AgentDraft {
        provider: fields.optional("provider", text),
        model: fields.optional("model", text),
        ..draft(fields)
    });
    let version = expected_version(&headers);
    let agent = api
        .use_cases
        .update_agent(&caller, agent, version, draft)
        .await?;
    Ok(Json(AgentBody::of(&api, agent)))
}

/// Archives an agent.
#[utoipa::path(
    delete, path = "/v1/agents/{agent}", tag = "Agents", operation_id = "archive_agent",
    params(("agent" = String, Path, description = "Its id or slug.")),
    responses((status = 204)),
)]
pub(crate) async fn archive(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathAgent(agent): PathAgent,
    params: Params,
) -> Result<StatusCode, Problem> {
    let nothing = params.input(());
    api.use_cases.archive_agent(&caller, agent, nothing).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The fields that may be left out, of a new agent as of a change.
fn draft(fields: &mut Fields<'_>) -> AgentDraft {
    let names = |names: Vec<Option<String>>| names.into_iter().map(Option::unwrap_or_default);
    AgentDraft {
        name: fields.optional("name", text),
        description: fields.optional("description", text),
        provider: None,
        model: None,
        system_prompt: fields.optional("system_prompt", text),
        tools: fields
            .optional("tools", items(text))
            .map(|tools| names(tools).collect()),
        max_tokens: fields.nullable("max_tokens", tokens),
        temperature: fields.nullable("temperature", number),
        limits: fields.optional("limits", self::fields(limits)),
        middleware: fields.optional("middleware", object),
        metadata: fields.optional("metadata", object),
    }
}

fn limits(fields: &mut Fields<'_>) -> AgentLimits {
    let mut limit = |name| fields.nullable(name, count).flatten();
    AgentLimits {
        max_iterations: limit("max_iterations").map(saturated),
        tool_timeout_ms: limit("tool_timeout_ms"),
        run_deadline_ms: limit("run_deadline_ms"),
    }
}

/// As many tokens as an answer may have.
fn tokens(value: Value, place: &mut Place<'_>) -> Option<u32> {
    let most = u32::try_from(count(value, place)?);
    if most.is_err() {
        let detail = format!("at most {} is possible", u32::MAX);
        place.fault(FaultCode::OutOfRange, detail);
    }
    most.ok()
}

/// More than can be counted is more than any limit.
fn saturated(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The version that `If-Match` asks for. What is no version is 0, which no agent has.
fn expected_version(headers: &HeaderMap) -> Option<u32> {
    headers.get(header::IF_MATCH)?;
    let tag = only(headers, &header::IF_MATCH).unwrap_or_default().trim();
    if tag == "*" {
        return None;
    }
    let version = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
    Some(
        version
            .and_then(|version| version.parse().ok())
            .unwrap_or(0),
    )
}

impl AgentBody {
    fn of(api: &Api, agent: Agent) -> Self {
        let middleware = api.use_cases.layers(&agent);
        let Agent {
            id,
            tenant_id,
            version,
            slug,
            name,
            description,
            settings:
                AgentSettings {
                    provider,
                    model,
                    system_prompt,
                    tools,
                    max_tokens,
                    temperature,
                    limits:
                        AgentLimits {
                            max_iterations,
                            tool_timeout_ms,
                            run_deadline_ms,
                        },
                    middleware: _,
                },
            metadata,
            created_by,
            created_at,
            updated_at,
            archived_at,
        } = agent;
        Self {
            id,
            tenant_id,
            slug,
            name,
            description,
            version,
            provider,
            model,
            system_prompt,
            tools,
            max_tokens,
            temperature,
            limits: LimitsBody {
                max_iterations,
                tool_timeout_ms,
                run_deadline_ms,
            },
            middleware,
            metadata,
            created_by,
            created_at: Time(created_at),
            updated_at: Time(updated_at),
            archived_at: archived_at.map(Time),
        }
    }
}
