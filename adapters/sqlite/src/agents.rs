//! Agents.

use async_trait::async_trait;
use hango_domain::agent::Agent;
use hango_domain::{AgentId, TenantId};
use hango_ports::agent_store::{AgentPatch, AgentRef, AgentStore, AgentStoreError};
use hango_ports::audit_store::NewAudit;
use hango_ports::page::{Page, PageRequest, Position};
use sqlx::sqlite::SqliteExecutor;
use sqlx::types::Json;

use crate::audit::{self, behind, one_more};
use crate::error::Error;
use crate::writer::Urgency;
use crate::{SqliteStore, rows};

/// The columns of an agent.
macro_rules! agent_columns {
    () => {
        "id, tenant_id, version, slug, name, description, settings, metadata, created_by, \
         created_at, updated_at, archived_at"
    };
}

/// A tenant's agent.
pub(crate) async fn find<'e>(
    executor: impl SqliteExecutor<'e>,
    tenant: TenantId,
    agent: &AgentRef,
) -> Result<Option<Agent>, Error> {
    let query = match agent {
        AgentRef::Id(id) => sqlx::query(concat!(
            "select ",
            agent_columns!(),
            " from agents where tenant_id = ? and id = ?"
        ))
        .bind(tenant.to_string())
        .bind(id.to_string()),
        AgentRef::Slug(slug) => sqlx::query(concat!(
            "select ",
            agent_columns!(),
            " from agents where tenant_id = ? and slug = ?"
        ))
        .bind(tenant.to_string())
        .bind(slug.clone()),
    };
    let row = query.fetch_optional(executor).await?;
    row.as_ref().map(rows::agent).transpose()
}

#[async_trait]
impl AgentStore for SqliteStore {
    async fn create(&self, agent: Agent, audit: NewAudit) -> Result<Agent, AgentStoreError> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                let agent = Agent {
                    version: 1,
                    created_at: now,
                    updated_at: now,
                    archived_at: None,
                    ..agent
                };
                let added = sqlx::query(
                    "insert into agents (id, tenant_id, version, slug, name, description, settings, \
                         metadata, created_by, created_at, updated_at)
                     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                     on conflict (tenant_id, slug) do nothing",
                )
                .bind(agent.id.to_string())
                .bind(agent.tenant_id.to_string())
                .bind(agent.version)
                .bind(&agent.slug)
                .bind(&agent.name)
                .bind(&agent.description)
                .bind(Json(&agent.settings))
                .bind(Json(&agent.metadata))
                .bind(agent.created_by.to_string())
                .bind(now.as_micros())
                .bind(now.as_micros())
                .execute(&mut *conn)
                .await
                .map_err(Error::from)?;
                if added.rows_affected() == 0 {
                    return Err(AgentStoreError::SlugTaken);
                }
                audit::note(conn, &audit, now).await?;
                Ok(agent)
            })
            .await
    }

    async fn find(
        &self,
        tenant: TenantId,
        agent: AgentRef,
    ) -> Result<Option<Agent>, AgentStoreError> {
        Ok(find(&self.readers, tenant, &agent).await?)
    }

    async fn list(
        &self,
        tenant: TenantId,
        include_archived: bool,
        page: PageRequest,
    ) -> Result<Page<Agent>, AgentStoreError> {
        let rows = sqlx::query(concat!(
            "select ",
            agent_columns!(),
            " from agents
             where tenant_id = ?1
               and (created_at, id) < (?2, ?3)
               and (?4 or archived_at is null)
             order by created_at desc, id desc
             limit ?5"
        ))
        .bind(tenant.to_string())
        .bind(behind(page).0)
        .bind(behind(page).1)
        .bind(include_archived)
        .bind(one_more(page))
        .fetch_all(&self.readers)
        .await
        .map_err(Error::from)?;
        let agents = rows::all(&rows, rows::agent)?;
        Ok(Page::of(agents, page.limit, |agent| Position {
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
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                let found = find(&mut *conn, tenant, &AgentRef::Id(agent)).await?;
                let agent = found.ok_or(AgentStoreError::NotFound)?;
                if version.is_some_and(|version| version != agent.version) {
                    return Err(AgentStoreError::VersionMismatch {
                        found: agent.version,
                    });
                }
                let Some(agent) = patch.applied_to(&agent, now) else {
                    return Ok(agent);
                };
                sqlx::query(
                    "update agents
                     set version = ?, name = ?, description = ?, settings = ?, metadata = ?, \
                         updated_at = ?
                     where id = ?",
                )
                .bind(agent.version)
                .bind(&agent.name)
                .bind(&agent.description)
                .bind(Json(&agent.settings))
                .bind(Json(&agent.metadata))
                .bind(now.as_micros())
                .bind(agent.id.to_string())
                .execute(&mut *conn)
                .await
                .map_err(Error::from)?;
                audit::note(conn, &audit, now).await?;
                Ok(agent)
            })
            .await
    }

    async fn archive(
        &self,
        tenant: TenantId,
        agent: AgentId,
        audit: NewAudit,
    ) -> Result<(), AgentStoreError> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                let found = find(&mut *conn, tenant, &AgentRef::Id(agent)).await?;
                let agent = found.ok_or(AgentStoreError::NotFound)?;
                if agent.archived_at.is_some() {
                    return Ok(());
                }
                sqlx::query(
                    "update agents set archived_at = ? where id = ? and archived_at is null",
                )
                .bind(now.as_micros())
                .bind(agent.id.to_string())
                .execute(&mut *conn)
                .await
                .map_err(Error::from)?;
                audit::note(conn, &audit, now).await?;
                Ok(())
            })
            .await
    }
}
