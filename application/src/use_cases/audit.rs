//! The audit rows of changes: what was done to what, by whom, and in which request.

use hango_domain::{AuditId, TenantId};
use hango_ports::StoreFailure;
use hango_ports::audit_store::{AuditFilter, AuditRow, NewAudit};
use hango_ports::page::{Page, PageRequest};
use serde_json::Map;
use uuid::Uuid;

use super::{Caller, Input, RequestContext, UseCaseError, UseCases};

/// What can be done that leaves an audit row.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// A tenant was made.
    TenantCreate,
    /// A tenant was suspended, or may work again.
    TenantUpdate,
    /// A user was added.
    UserCreate,
    /// A user was changed.
    UserUpdate,
    /// A key was made.
    KeyCreate,
    /// A key was revoked.
    KeyRevoke,
    /// An agent was made.
    AgentCreate,
    /// An agent was changed.
    AgentUpdate,
    /// An agent was archived.
    AgentArchive,
    /// A session was made.
    SessionCreate,
    /// A session was changed.
    SessionUpdate,
    /// A session was removed.
    SessionDelete,
    /// A message was appended without a run.
    MessageCreate,
    /// A run was accepted.
    RunCreate,
    /// A run's end was asked for.
    RunCancel,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::TenantCreate,
        Self::TenantUpdate,
        Self::UserCreate,
        Self::UserUpdate,
        Self::KeyCreate,
        Self::KeyRevoke,
        Self::AgentCreate,
        Self::AgentUpdate,
        Self::AgentArchive,
        Self::SessionCreate,
        Self::SessionUpdate,
        Self::SessionDelete,
        Self::MessageCreate,
        Self::RunCreate,
        Self::RunCancel,
    ];

    /// The word of the HTTP contract and of the stores.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// The action, the kind of thing it is done to, and the status of the answer when it is done.
    const fn row(self) -> (&'static str, &'static str, u16) {
        match self {
            Self::TenantCreate => ("tenant.create", "tenant", 201),
            Self::TenantUpdate => ("tenant.update", "tenant", 200),
            Self::UserCreate => ("user.create", "user", 201),
            Self::UserUpdate => ("user.update", "user", 200),
            Self::KeyCreate => ("key.create", "api_key", 201),
            Self::KeyRevoke => ("key.revoke", "api_key", 204),
            Self::AgentCreate => ("agent.create", "agent", 201),
            Self::AgentUpdate => ("agent.update", "agent", 200),
            Self::AgentArchive => ("agent.archive", "agent", 204),
            Self::SessionCreate => ("session.create", "session", 201),
            Self::SessionUpdate => ("session.update", "session", 200),
            Self::SessionDelete => ("session.delete", "session", 204),
            Self::MessageCreate => ("message.create", "message", 201),
            Self::RunCreate => ("run.create", "run", 202),
            Self::RunCancel => ("run.cancel", "run", 202),
        }
    }
}

impl UseCases {
    /// Records that an authenticated call was refused with `status`.
    pub async fn record_refusal(
        &self,
        caller: &Caller,
        action: Action,
        target: Option<Uuid>,
        status: u16,
    ) -> Result<(), StoreFailure> {
        let row = NewAudit {
            target_id: target,
            status,
            ..self.caller_audit(caller, action, Uuid::nil())
        };
        self.stores.audit.record(row).await
    }

    /// Records that what an operator wanted was refused with `status`, in the trail of the tenant that he
    /// named.
    pub async fn record_operators_refusal(
        &self,
        request: &RequestContext,
        action: Action,
        tenant: TenantId,
        target: Option<Uuid>,
        status: u16,
    ) -> Result<(), StoreFailure> {
        let row = NewAudit {
            target_id: target,
            status,
            ..request.noted(self.operator_audit(tenant, action, Uuid::nil()))
        };
        self.stores.audit.record(row).await
    }

    /// Reads the tenant's audit trail, newest first.
    pub async fn audit_events(
        &self,
        caller: &Caller,
        filter: Input<AuditFilter>,
        page: PageRequest,
    ) -> Result<Page<AuditRow>, UseCaseError> {
        caller.must_administer()?;
        let filter = filter.accepted()?;
        let tenant = caller.scope.tenant;
        Ok(self.stores.audit.list(tenant, filter, page).await?)
    }

    /// The row of what `caller` does to `target`.
    pub(super) fn caller_audit(&self, caller: &Caller, action: Action, target: Uuid) -> NewAudit {
        NewAudit {
            actor_id: Some(caller.scope.user),
            actor_role: Some(caller.scope.role),
            api_key_id: caller.scope.key,
            ..caller
                .request
                .noted(self.operator_audit(caller.scope.tenant, action, target))
        }
    }

    /// The row of what an operator does to `target`.
    pub(super) fn operator_audit(
        &self,
        tenant: TenantId,
        action: Action,
        target: Uuid,
    ) -> NewAudit {
        let (action, target_kind, status) = action.row();
        NewAudit {
            id: AuditId(self.ids.uuid()),
            tenant_id: tenant,
            actor_id: None,
            actor_role: None,
            api_key_id: None,
            action,
            target_kind,
            target_id: Some(target),
            detail: Map::new(),
            trace_id: None,
            request_id: None,
            status,
        }
    }
}
