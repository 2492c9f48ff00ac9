//! Runs.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use hango_application::use_cases::{Input, Made, RunDraft, RunQuery};
use hango_domain::run::{Run, RunStatus};
use hango_domain::session::OnBusy;
use hango_domain::{RunId, SessionId};
use http::{StatusCode, header};

use super::explain_body::ExplanationBody;
use super::run_body::{RunBody, ToolCallBody};
use crate::Api;
use crate::auth::Authenticated;
use crate::body::{JsonBody, OptionalBody};
use crate::fields::{object, word};
use crate::idempotency::{self, KeyHeader};
use crate::openapi::requests::{self, Filters, Piece};
use crate::paging::ListBody;
use crate::params::{Params, PathId};
use crate::problem::Problem;
use crate::routes::messages::content;

const ON_BUSY: &[(&str, OnBusy)] = &[
    ("enqueue", OnBusy::Enqueue),
    ("reject", OnBusy::Reject),
    ("interrupt", OnBusy::Interrupt),
];

/// The longest time in milliseconds that a caller may wait for a run's end.
const MAX_WAIT: u64 = 60_000;

/// Accepts a run.
///
/// 202 with `Location`: the run is durable, not done.
#[utoipa::path(
    post, path = "/v1/sessions/{session}/runs", tag = "Runs", operation_id = "create_run",
    params(("session" = Uuid, Path, description = "The session.")),
    request_body = requests::NewRun,
    responses((status = 202, description = "Accepted: it is durable, not done.", body = RunBody, headers(("location" = String, description = "Where it is.")))),
)]
pub(crate) async fn create(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(session): PathId<SessionId>,
    key: KeyHeader,
    params: Params,
    body: JsonBody,
) -> Result<impl IntoResponse, Problem> {
    let once = key.of(&caller, format!("POST /v1/sessions/{session}/runs"), &body);
    let draft = body.read(params, |fields| RunDraft {
        input: fields.required("input", content).unwrap_or_default(),
        on_busy: fields
            .optional("on_busy", word(ON_BUSY))
            .unwrap_or_default(),
        metadata: fields.optional("metadata", object).unwrap_or_default(),
    });
    let draft = key.judge(draft);
    let made = api.use_cases.accept_run(&caller, session, draft, once);
    let Made { thing, replayed } = made.await?;
    let location = [(header::LOCATION, format!("/v1/runs/{}", thing.id))];
    let body = Json(RunBody::from(thing));
    Ok((
        StatusCode::ACCEPTED,
        location,
        idempotency::replayed(replayed),
        body,
    ))
}

/// One run; with `wait_ms`, as soon as it has ended or that time is over.
#[utoipa::path(
    get, path = "/v1/runs/{run}", tag = "Runs", operation_id = "read_run",
    params(("run" = Uuid, Path, description = "The run."), ("wait_ms" = Option<u32>, Query, maximum = 60000, description = "Answer as soon as the run has ended, or when this time is over.")),
    responses((status = 200, body = RunBody)),
)]
pub(crate) async fn read(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(run): PathId<RunId>,
    mut params: Params,
) -> Result<Json<RunBody>, Problem> {
    let wait = params.number("wait_ms", 0, MAX_WAIT).unwrap_or(0);
    let wait = params.input(Duration::from_millis(wait));
    let found = tokio::select! {
        found = api.use_cases.run(&caller, run, wait) => found,
        // Nobody is kept waiting by a process that goes away.
        () = api.readiness.draining() => {
            api.use_cases.run(&caller, run, Input::new(Duration::ZERO)).await
        }
    };
    Ok(Json(found?.into()))
}

/// Runs, newest first.
#[utoipa::path(
    get, path = "/v1/runs", tag = "Runs", operation_id = "list_runs",
    params(Piece, Filters, ("session_id" = Option<Uuid>, Query, description = "Only those of this session.")),
    responses((status = 200, body = ListBody<RunBody>)),
)]
pub(crate) async fn list(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    mut params: Params,
) -> Result<Json<ListBody<RunBody>>, Problem> {
    let query = RunQuery {
        session: params.id("session_id"),
        ..query(&mut params)
    };
    let paging = params.paging("runs")?;
    let query = params.input(query).accepted()?;
    let page = api.use_cases.runs(&caller, query, paging.request()).await?;
    Ok(Json(paging.page(page)))
}

/// A session's runs, newest first.
#[utoipa::path(
    get, path = "/v1/sessions/{session}/runs", tag = "Runs", operation_id = "list_runs_of_session",
    params(("session" = Uuid, Path, description = "The session."), Piece, Filters, ("session_id" = Option<Uuid>, Query, description = "Only those of this session too.")),
    responses((status = 200, body = ListBody<RunBody>)),
)]
pub(crate) async fn list_in_session(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(session): PathId<SessionId>,
    mut params: Params,
) -> Result<Json<ListBody<RunBody>>, Problem> {
    let named = params.id("session_id").unwrap_or(session);
    let query = RunQuery {
        session: Some(session),
        ..query(&mut params)
    };
    let paging = params.paging(&format!("sessions/{session}/runs"))?;
    api.use_cases.session(&caller, session).await?;
    let query = params.input(query).accepted()?;
    if named != session {
        return Ok(Json(paging.slice(Vec::<Run>::new())));
    }
    let page = api.use_cases.runs(&caller, query, paging.request()).await?;
    Ok(Json(paging.page(page)))
}

/// The journal, by turn and position.
#[utoipa::path(
    get, path = "/v1/runs/{run}/tool-calls", tag = "Runs", operation_id = "list_tool_calls",
    params(("run" = Uuid, Path, description = "The run."), Piece),
    responses((status = 200, body = ListBody<ToolCallBody>)),
)]
pub(crate) async fn tool_calls(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(run): PathId<RunId>,
    mut params: Params,
) -> Result<Json<ListBody<ToolCallBody>>, Problem> {
    let paging = params.paging(&format!("runs/{run}/tool-calls"))?;
    let nothing = params.input(());
    let calls = api.use_cases.tool_calls(&caller, run, nothing).await?;
    Ok(Json(paging.slice(calls)))
}

/// Why the run is in its state: what it waits for, who holds it, and what became of its attempts.
#[utoipa::path(
    get, path = "/v1/runs/{run}/explain", tag = "Runs", operation_id = "explain_run",
    params(("run" = Uuid, Path, description = "The run.")),
    responses((status = 200, body = ExplanationBody)),
)]
pub(crate) async fn explain(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(run): PathId<RunId>,
    params: Params,
) -> Result<Json<ExplanationBody>, Problem> {
    let nothing = params.input(());
    let explanation = api.use_cases.explain_run(&caller, run, nothing).await?;
    Ok(Json(explanation.into()))
}

/// Asks for a run's end.
#[utoipa::path(
    post, path = "/v1/runs/{run}/cancel", tag = "Runs", operation_id = "cancel_run",
    params(("run" = Uuid, Path, description = "The run.")),
    responses((status = 202, body = RunBody)),
)]
pub(crate) async fn cancel(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    PathId(run): PathId<RunId>,
    params: Params,
    body: OptionalBody,
) -> Result<impl IntoResponse, Problem> {
    let nothing = body.nothing(params);
    let run = api.use_cases.cancel_run(&caller, run, nothing).await?;
    Ok((StatusCode::ACCEPTED, Json(RunBody::from(run))))
}

/// The filters that both lists have.
fn query(params: &mut Params) -> RunQuery {
    let states = RunStatus::ALL.map(|status| (status.as_str(), status));
    RunQuery {
        states: params.words("state", &states),
        session: None,
        agent: params.agent("agent"),
    }
}
