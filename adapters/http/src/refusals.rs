//! Audit rows of calls that would have changed something and were refused: written after the refusal,
//! with its status. Calls that were made have their row from the use case, in the change's transaction.

use std::sync::{Arc, OnceLock};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use hango_application::use_cases::{Action, Caller};
use http::{Method, StatusCode};
use uuid::Uuid;

use crate::Api;

/// Filled when the caller is known.
#[derive(Clone, Default)]
pub(crate) struct CallerSlot(Arc<OnceLock<Caller>>);

impl CallerSlot {
    /// Notes who calls.
    pub(crate) fn fill(&self, caller: &Caller) {
        // A request has one caller.
        let _ = self.0.set(caller.clone());
    }
}

pub(crate) async fn record(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>();
    let Some(action) = path.and_then(|path| action(request.method(), path.as_str())) else {
        return next.run(request).await;
    };
    let target = target(request.uri().path());
    let slot = CallerSlot::default();
    request.extensions_mut().insert(slot.clone());
    let response = next.run(request).await;
    let status = response.status();
    if let Some(caller) = slot.0.get()
        && is_refusal(status)
        && let Err(error) = api
            .use_cases
            .record_refusal(caller, action, target, status.as_u16())
            .await
    {
        tracing::error!(%error, "a refusal was not recorded");
    }
    response
}

fn action(method: &Method, path: &str) -> Option<Action> {
    Some(match (method.as_str(), path) {
        ("POST", "/v1/agents") => Action::AgentCreate,
        ("PATCH", "/v1/agents/{agent}") => Action::AgentUpdate,
        ("DELETE", "/v1/agents/{agent}") => Action::AgentArchive,
        ("POST", "/v1/sessions") => Action::SessionCreate,
        ("PATCH", "/v1/sessions/{session}") => Action::SessionUpdate,
        ("DELETE", "/v1/sessions/{session}") => Action::SessionDelete,
        ("POST", "/v1/sessions/{session}/messages") => Action::MessageCreate,
        ("POST", "/v1/sessions/{session}/runs") => Action::RunCreate,
        ("POST", "/v1/runs/{run}/cancel") => Action::RunCancel,
        _ => return None,
    })
}

/// What the path names, if the action is done to that: what would have been made has no id.
fn target(path: &str) -> Option<Uuid> {
    let mut parts = path.split('/').skip(3);
    let id = parts.next()?.parse().ok()?;
    match parts.next() {
        None | Some("cancel") => Some(id),
        Some(_) => None,
    }
}

/// The refusals of the contract that leave a row.
fn is_refusal(status: StatusCode) -> bool {
    matches!(status.as_u16(), 403 | 404 | 409 | 412 | 422 | 429)
}
