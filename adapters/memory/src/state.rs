//! What the store holds.

use std::collections::BTreeMap;

use hango_domain::access::{CreatorNow, Role, Visibility};
use hango_domain::agent::Agent;
use hango_domain::people::{ApiKey, Tenant, TenantStatus, User, may_act};
use hango_domain::queue::Pending;
use hango_domain::run::{Run, RunState};
use hango_domain::session::Session;
use hango_domain::{AgentId, ApiKeyId, RunId, SessionId, TenantId, Timestamp, UserId};
use hango_ports::StoreFailure;
use hango_ports::agent_store::AgentRef;
use hango_ports::audit_store::{AuditRow, NewAudit};
use hango_ports::run_store::Standing;

use crate::idempotency::Answers;
use crate::session_row::SessionRow;

/// Everything, by its identity.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) tenants: BTreeMap<TenantId, Tenant>,
    pub(crate) users: BTreeMap<UserId, User>,
    pub(crate) keys: BTreeMap<ApiKeyId, ApiKey>,
    pub(crate) agents: BTreeMap<AgentId, Agent>,
    pub(crate) sessions: BTreeMap<SessionId, SessionRow>,
    pub(crate) audit: Vec<AuditRow>,
    pub(crate) answers: Answers,
}

impl State {
    /// The session, if it is there for the caller.
    pub(crate) fn session(&self, seen: Visibility, id: SessionId) -> Option<&SessionRow> {
        self.sessions
            .get(&id)
            .filter(|row| shows(seen, &row.session))
    }

    /// The same, to be changed.
    pub(crate) fn session_mut(
        &mut self,
        seen: Visibility,
        id: SessionId,
    ) -> Option<&mut SessionRow> {
        self.sessions
            .get_mut(&id)
            .filter(|row| shows(seen, &row.session))
    }

    /// The session that has the run.
    pub(crate) fn session_of(&self, run: RunId) -> Option<&SessionRow> {
        self.sessions
            .values()
            .find(|row| row.runs.contains_key(&run))
    }

    /// The same, to be changed.
    pub(crate) fn session_of_mut(&mut self, run: RunId) -> Option<&mut SessionRow> {
        self.sessions
            .values_mut()
            .find(|row| row.runs.contains_key(&run))
    }

    /// The session that has the run, if both are there for the caller.
    pub(crate) fn session_of_seen(&self, seen: Visibility, run: RunId) -> Option<&SessionRow> {
        self.session_of(run).filter(|row| shows(seen, &row.session))
    }

    /// The tenant's agent, archived ones too.
    pub(crate) fn agent(&self, tenant: TenantId, agent: &AgentRef) -> Option<&Agent> {
        let mut own = self.agents.values().filter(|row| row.tenant_id == tenant);
        own.find(|row| match agent {
            AgentRef::Id(id) => row.id == *id,
            AgentRef::Slug(slug) => row.slug == *slug,
        })
    }

    /// Every run, in no order that means anything.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run> {
        let rows = self.sessions.values().flat_map(|row| row.runs.values());
        rows.map(|row| &row.run)
    }

    /// What the queue knows of the runs that have not ended.
    pub(crate) fn pending(&self) -> Vec<Pending> {
        let open = |run: &&Run| !run.state.status().is_terminal();
        self.runs()
            .filter(open)
            .map(|run| Pending {
                run: run.id,
                tenant: run.tenant_id,
                tenant_active: self.is_active(run.tenant_id),
                session: run.session_id,
                session_no: run.session_no,
                running: matches!(run.state, RunState::Running { .. }),
                available_at: run.available_at,
                created_at: run.created_at,
                memory_version: run.memory.version,
            })
            .collect()
    }

    /// What is true of the run's creator and tenant now.
    pub(crate) fn standing(&self, session: &Session, run: &Run) -> Standing {
        let gone = CreatorNow {
            active: false,
            role: Role::Member,
            created_session: false,
        };
        let creator = self.users.get(&run.created_by);
        Standing {
            cancel_requested: run.cancel_requested_at.is_some(),
            creator: creator.map_or(gone, |user| user.as_creator(session.created_by)),
            tenant_active: self.is_active(run.tenant_id),
        }
    }

    fn is_active(&self, tenant: TenantId) -> bool {
        self.tenants
            .get(&tenant)
            .is_some_and(|tenant| tenant.status == TenantStatus::Active)
    }

    /// Keeps the audit row of a change that is about to be made, if who makes it may still act.
    pub(crate) fn note(&mut self, row: NewAudit, at: Timestamp) -> Result<(), StoreFailure> {
        if !self.is_by_somebody(&row, at) {
            return Err(StoreFailure::ActorRefused);
        }
        self.keep(row, at);
        Ok(())
    }

    /// Whether the key that the row names may act; a row that names none is an operator's.
    fn is_by_somebody(&self, row: &NewAudit, now: Timestamp) -> bool {
        let Some(key) = row.api_key_id else {
            return true;
        };
        let key = self.keys.get(&key);
        let user = row.actor_id.and_then(|user| self.users.get(&user));
        let tenant = self.tenants.get(&row.tenant_id);
        let (Some(key), Some(user), Some(tenant)) = (key, user, tenant) else {
            return false;
        };
        (key.user_id, key.tenant_id) == (user.id, tenant.id)
            && may_act(key, user, tenant, now)
            && row.actor_roles().any(|role| role == user.role)
    }

    /// Keeps an audit row.
    pub(crate) fn keep(&mut self, row: NewAudit, at: Timestamp) {
        self.audit.push(AuditRow {
            id: row.id,
            tenant_id: row.tenant_id,
            actor_id: row.actor_id,
            api_key_id: row.api_key_id,
            action: row.action.to_owned(),
            target_kind: row.target_kind.to_owned(),
            target_id: row.target_id,
            detail: row.detail,
            trace_id: row.trace_id,
            request_id: row.request_id,
            status: row.status,
            at,
        });
    }
}

fn shows(seen: Visibility, session: &Session) -> bool {
    seen.shows(session.tenant_id, session.created_by)
}
