//! The audit trail: who changed what. Rows are only ever added, in the transaction of their change.

use async_trait::async_trait;
use hango_domain::access::Role;
use hango_domain::{AgentId, ApiKeyId, AuditId, TenantId, Timestamp, TraceId, UserId};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::page::{Page, PageRequest};
use crate::store::StoreFailure;

/// A row that goes with a change, and so tells who makes it.
///
/// Where it names a key, the transaction that adds it asks once more whether that key
/// [may act](hango_domain::people::may_act), as it stood before the change: else nothing of the change is
/// made, and the answer is [`StoreFailure::ActorRefused`]. So what begins behind a revocation changes nothing,
/// whatever its process knew when it let the caller in.
#[derive(Clone, Debug, PartialEq)]
pub struct NewAudit {
    /// Its identity.
    pub id: AuditId,
    /// The tenant it concerns.
    pub tenant_id: TenantId,
    /// Who acted; `None` when an operator did, on the store or with the admin token.
    pub actor_id: Option<UserId>,
    /// What he was let in as, and has to be still, or more; not kept.
    pub actor_role: Option<Role>,
    /// The key he came with.
    pub api_key_id: Option<ApiKeyId>,
    /// What he did, as `noun.verb`.
    pub action: &'static str,
    /// The kind of thing it was done to.
    pub target_kind: &'static str,
    /// That thing; `None` when there is none (a refused creation).
    pub target_id: Option<Uuid>,
    /// More, for people; never content of conversations.
    pub detail: Map<String, Value>,
    /// The trace in which it can be followed.
    pub trace_id: Option<TraceId>,
    /// The request.
    pub request_id: Option<String>,
    /// The HTTP status that the call was answered with.
    pub status: u16,
}

impl NewAudit {
    /// The roles of which the actor has to have one by now.
    pub fn actor_roles(&self) -> impl Iterator<Item = Role> {
        let as_good = |role: &Role| self.actor_role.is_none_or(|it| role.covers(it));
        Role::ALL.into_iter().filter(as_good)
    }

    /// This row, telling of an agent too: that of a run, which a store knows and its caller need not.
    #[must_use]
    pub fn with_agent(mut self, agent: AgentId) -> Self {
        self.detail.insert("agent_id".to_owned(), json!(agent));
        self
    }
}

/// A stored row.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditRow {
    /// Its identity.
    pub id: AuditId,
    /// The tenant it concerns.
    pub tenant_id: TenantId,
    /// Who acted.
    pub actor_id: Option<UserId>,
    /// The key he came with.
    pub api_key_id: Option<ApiKeyId>,
    /// What he did.
    pub action: String,
    /// The kind of thing it was done to.
    pub target_kind: String,
    /// That thing.
    pub target_id: Option<Uuid>,
    /// More.
    pub detail: Map<String, Value>,
    /// The trace in which it can be followed.
    pub trace_id: Option<TraceId>,
    /// The request.
    pub request_id: Option<String>,
    /// The HTTP status that the call was answered with.
    pub status: u16,
    /// When, by the store's clock.
    pub at: Timestamp,
}

/// Which rows to read; `None` leaves a condition out.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AuditFilter {
    /// Only this action.
    pub action: Option<String>,
    /// Only what was done to this.
    pub target_id: Option<Uuid>,
    /// Only what this user did.
    pub actor_id: Option<UserId>,
}

/// Keeps the audit trail.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait AuditStore: Send + Sync {
    /// Adds a row that goes with no change: a call that was refused. Nobody is asked whether he may act.
    async fn record(&self, row: NewAudit) -> Result<(), StoreFailure>;

    /// Reads a tenant's rows, newest first.
    async fn list(
        &self,
        tenant: TenantId,
        filter: AuditFilter,
        page: PageRequest,
    ) -> Result<Page<AuditRow>, StoreFailure>;
}
