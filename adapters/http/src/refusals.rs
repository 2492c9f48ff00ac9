//! Audit rows of calls that would have changed something and were refused: written after the refusal,
//! with its status. Calls that were made have their row from the use case, in the change's transaction.

use std::sync::{Arc, OnceLock};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use hango_application::use_cases::{Action, Caller, RequestContext, UseCaseError};
use hango_domain::TenantId;
use hango_ports::StoreFailure;
use http::{Method, StatusCode};
use uuid::Uuid;

use crate::Api;
use crate::problem::Code;

/// Filled when it is known who calls.
#[derive(Clone, Default)]
pub(crate) struct CallerSlot(Arc<OnceLock<Who>>);

/// Who calls.
enum Who {
    /// Somebody with a key.
    Caller(Box<Caller>),
    /// An operator, of no tenant.
    Operator(RequestContext),
}

impl CallerSlot {
    /// Notes who calls.
    pub(crate) fn fill(&self, caller: &Caller) {
        // A request has one caller.
        let _ = self.0.set(Who::Caller(Box::new(caller.clone())));
    }

    /// Notes that an operator calls.
    pub(crate) fn fill_operator(&self, request: &RequestContext) {
        let _ = self.0.set(Who::Operator(request.clone()));
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
    if let Some(who) = slot.0.get()
        && is_refusal(status)
        && let Err(error) = note(&api, who, action, target, status).await
    {
        tracing::error!(%error, "a refusal was not recorded");
    }
    response
}

async fn note(
    api: &Api,
    who: &Who,
    action: Action,
    target: Option<Uuid>,
    status: StatusCode,
) -> Result<(), StoreFailure> {
    let use_cases = &api.use_cases;
    let code = status.as_u16();
    match (who, target) {
        (Who::Caller(caller), target) => {
            use_cases.record_refusal(caller, action, target, code).await
        }
        (Who::Operator(request), Some(tenant)) if status != StatusCode::NOT_FOUND => {
            use_cases
                .record_operators_refusal(request, action, TenantId(tenant), Some(tenant), code)
                .await
        }
        // A trail is a tenant's, and here is none.
        (Who::Operator(request), _) => {
            let (request_id, action) = (request.id.as_deref(), action.as_str());
            tracing::warn!(request_id, action, status = code, "an operator was refused");
            Ok(())
        }
    }
}

fn action(method: &Method, path: &str) -> Option<Action> {
    Some(match (method.as_str(), path) {
        ("POST", "/v1/admin/tenants") => Action::TenantCreate,
        ("PATCH", "/v1/admin/tenants/{tenant}") => Action::TenantUpdate,
        ("POST", "/v1/users") => Action::UserCreate,
        ("PATCH", "/v1/users/{user}") => Action::UserUpdate,
        ("POST", "/v1/api-keys") => Action::KeyCreate,
        ("DELETE", "/v1/api-keys/{key}") => Action::KeyRevoke,
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
    let path = path
        .strip_prefix("/v1/admin/")
        .or_else(|| path.strip_prefix("/v1/"))?;
    let mut parts = path.split('/').skip(1);
    let id = parts.next()?.parse().ok()?;
    match parts.next() {
        None | Some("cancel") => Some(id),
        Some(_) => None,
    }
}

/// The status with which a use case's refusal is in the audit trail, whoever is told of it; `None` of what
/// leaves no row.
#[must_use]
pub fn refusal_status(error: &UseCaseError) -> Option<u16> {
    let status = Code::of(error).status();
    is_refusal(status).then_some(status.as_u16())
}

/// The refusals of the contract that leave a row.
fn is_refusal(status: StatusCode) -> bool {
    matches!(status.as_u16(), 403 | 404 | 409 | 412 | 422 | 429)
}
