//! The audit trail of the caller's tenant.

use axum::Json;
use axum::extract::State;
use hango_application::use_cases::Action;
use hango_domain::{ApiKeyId, AuditId, TenantId, TraceId, UserId};
use hango_ports::audit_store::{AuditFilter, AuditRow};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Api;
use crate::auth::Authenticated;
use crate::openapi::requests::Piece;
use crate::openapi::schema;
use crate::paging::ListBody;
use crate::params::Params;
use crate::problem::Problem;
use crate::time::Time;

/// A row of the trail.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEvent)]
pub(crate) struct AuditEventBody {
    #[schema(value_type = Uuid)]
    id: AuditId,
    #[schema(value_type = Uuid)]
    tenant_id: TenantId,
    /// Null when an operator acted.
    #[schema(value_type = Option<Uuid>)]
    actor_id: Option<UserId>,
    #[schema(value_type = Option<Uuid>)]
    api_key_id: Option<ApiKeyId>,
    action: String,
    target_kind: String,
    target_id: Option<Uuid>,
    #[schema(schema_with = schema::object)]
    detail: Map<String, Value>,
    #[schema(value_type = Option<String>)]
    trace_id: Option<TraceId>,
    request_id: Option<String>,
    /// That of the answer: a refusal leaves a row too.
    status: u16,
    at: Time,
}

/// What was done in the tenant, and what was refused, newest first.
#[utoipa::path(
    get, path = "/v1/audit-events", tag = "People", operation_id = "list_audit_events",
    params(Piece, ("action" = Option<String>, Query, description = "Only this action."), ("target_id" = Option<Uuid>, Query, description = "Only what was done to this."), ("actor_id" = Option<Uuid>, Query, description = "Only what this user did.")),
    responses((status = 200, body = ListBody<AuditEventBody>)),
)]
pub(crate) async fn list(
    State(api): State<Api>,
    Authenticated(caller): Authenticated,
    mut params: Params,
) -> Result<Json<ListBody<AuditEventBody>>, Problem> {
    let actions = Action::ALL.map(|action| (action.as_str(), action));
    let action = params.word("action", &actions);
    let filter = AuditFilter {
        action: action.map(|action| action.as_str().to_owned()),
        target_id: params.id("target_id"),
        actor_id: params.id("actor_id"),
    };
    let paging = params.paging("audit-events")?;
    let filter = params.input(filter);
    let page = api
        .use_cases
        .audit_events(&caller, filter, paging.request())
        .await?;
    Ok(Json(paging.page(page)))
}

impl From<AuditRow> for AuditEventBody {
    fn from(row: AuditRow) -> Self {
        let AuditRow {
            id,
            tenant_id,
            actor_id,
            api_key_id,
            action,
            target_kind,
            target_id,
            detail,
            trace_id,
            request_id,
            status,
            at,
        } = row;
        Self {
            id,
            tenant_id,
            actor_id,
            api_key_id,
            action,
            target_kind,
            target_id,
            detail,
            trace_id,
            request_id,
            status,
            at: Time(at),
        }
    }
}
