//! Agents.

use async_trait::async_trait;
use hango_domain::agent::Agent;
use hango_domain::{AgentId, TenantId};
use hango_ports::agent_store::{AgentPatch, AgentRef, AgentStore, AgentStoreError};
use hango_ports::audit_store::NewAudit;
use hango_ports::page::{Page, PageRequest, Position};

use crate::MemoryStore;
use crate::pages::page;

#[async_trait]
impl AgentStore for MemoryStore {
    async fn create(&self, agent: Agent, audit: NewAudit) -> Result<Agent, AgentStoreError> {
        let mut state = self.lock();
        let slug = AgentRef::Slug(agent.slug.clone());
        if state.agent(agent.tenant_id, &slug).is_some() {
            return Err(AgentStoreError::SlugTaken);
        }
        let now = self.clock.now();
        let agent = Agent {
            version: 1,
            created_at: now,
            updated_at: now,
            archived_at: None,
            ..agent
        };
        state.note(audit, now)?;
        state.agents.insert(agent.id, agent.clone());
        Ok(agent)
    }

    async fn find(
        &self,
        tenant: TenantId,
        agent: AgentRef,
    ) -> Result<Option<Agent>, AgentStoreError> {
        Ok(self.lock().agent(tenant, &agent).cloned())
    }

    async fn list(
        &self,
        tenant: TenantId,
        include_archived: bool,
        request: PageRequest,
    ) -> Result<Page<Agent>, AgentStoreError> {
        let state = self.lock();
        let asked = |agent: &&Agent| {
            agent.tenant_id == tenant && (include_archived || agent.archived_at.is_none())
        };
        let rows = state.agents.values().filter(asked).cloned().collect();
        Ok(page(rows, request, |agent| Position {
            at: agent.created_at,
            id: agent.id.0,
        }))
    }

    async fn update(
        &self,
        tenant: TenantId,
        agent: AgentId,
        version: Option<u32>,
        patch: AgentPatch,
        audit: NewAudit,
    ) -> Result<Agent, AgentStoreError> {
        let mut state = self.lock();
        let found = state.agent(tenant, &AgentRef::Id(agent)).cloned();
        let agent = found.ok_or(AgentStoreError::NotFound)?;
        if version.is_some_and(|version| version != agent.version) {
            return Err(AgentStoreError::VersionMismatch {
                found: agent.version,
            });
        }
        let now = self.clock.now();
        let Some(agent) = patch.applied_to(&agent, now) else {
            return Ok(agent);
        };
        state.note(audit, now)?;
        state.agents.insert(agent.id, agent.clone());
        Ok(agent)
    }

    async fn archive(
        &self,
        tenant: TenantId,
        agent: AgentId,
        audit: NewAudit,
    ) -> Result<(), AgentStoreError> {
        let mut state = self.lock();
        let now = self.clock.now();
        let found = state.agent(tenant, &AgentRef::Id(agent));
        let archived = found.ok_or(AgentStoreError::NotFound)?.archived_at;
        if archived.is_none() {
            state.note(audit, now)?;
            if let Some(agent) = state.agents.get_mut(&agent) {
                agent.archived_at = Some(now);
            }
        }
        Ok(())
    }
}
