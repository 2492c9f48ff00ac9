//! Agents.

use async_trait::async_trait;
use hango_domain::agent::Agent;
use hango_domain::{AgentId, TenantId};
use hango_ports::agent_store::{AgentPatch, AgentRef, AgentStore, AgentStoreError};
use hango_ports::audit_store::NewAudit;
use hango_ports::page::{Page, PageRequest, Position};
use sqlx::PgConnection;

use crate::PostgresStore;
use crate::audit::{self, document, note};
use crate::error::Error;
use crate::pages::{behind, one_more};
use crate::rows::{self, Columns, Document, small};

/// The columns of an agent.
macro_rules! columns {
    () => {
        "id, tenant_id, version, slug, name, description, settings, metadata, created_by, \
         created_at, updated_at, archived_at"
    };
}

/// A reference, as the two parameters of `id = $n or slug = $m`: one of them is null.
pub(crate) fn named(agent: &AgentRef) -> (Option<uuid::Uuid>, Option<&str>) {
    match agent {
        AgentRef::Id(id) => (Some(id.0), None),
        AgentRef::Slug(slug) => (None, Some(slug)),
    }
}

#[async_trait]
impl AgentStore for PostgresStore {
    async fn create(&self, agent: Agent, audit: NewAudit) -> Result<Agent, AgentStoreError> {
        let given = self.clock.given();
        self.pool
            .run(move |conn| {
                let query = sqlx::query(concat!(
                    "with moment as (select coalesce($1, now()) as now),
                     added as (
                         insert into agents (id, tenant_id, version, slug, name, description, \
                             settings, metadata, created_by, created_at, updated_at)
                         select $3, $4, 1, $5, $6, $7, $8, $9, $10, now, now from moment
                         on conflict (tenant_id, slug) do nothing
                         returning created_at
                     ),
                     noted as (",
                    note!("$2", "created_at", "added"),
                    ")
                     select created_at from added"
                ))
                .bind(given)
                .bind(document(&audit))
                .bind(agent.id.0)
                .bind(agent.tenant_id.0)
                .bind(&agent.slug)
                .bind(&agent.name)
                .bind(&agent.description)
                .bind(Document(&agent.settings))
                .bind(Document(&agent.metadata))
                .bind(agent.created_by.0);
                let agent = agent.clone();
                Box::pin(async move {
                    let added = query.fetch_optional(conn).await.map_err(Error::from)?;
                    let added = added.ok_or(AgentStoreError::SlugTaken)?;
                    let now = Columns::new(&added, "agents", "id").time("created_at")?;
                    Ok(Agent {
                        version: 1,
                        created_at: now,
                        updated_at: now,
                        archived_at: None,
                        ..agent
                    })
                })
            })
            .await
    }

    async fn find(
        &self,
        tenant: TenantId,
        agent: AgentRef,
    ) -> Result<Option<Agent>, AgentStoreError> {
        self.pool
            .read(move |conn| {
                let (id, slug) = named(&agent);
                let query = sqlx::query(concat!(
                    "select ",
                    columns!(),
                    " from agents where tenant_id = $1 and (id = $2 or slug = $3)"
                ))
                .bind(tenant.0)
                .bind(id)
                .bind(slug);
                Box::pin(async {
                    let row = query.fetch_optional(conn).await.map_err(Error::from)?;
                    Ok(row.as_ref().map(rows::agent).transpose()?)
                })
            })
            .await
    }

    async fn list(
        &self,
        tenant: TenantId,
        include_archived: bool,
        page: PageRequest,
    ) -> Result<Page<Agent>, AgentStoreError> {
        let found = self.pool.read(move |conn| {
            let query = sqlx::query(concat!(
                "select ",
                columns!(),
                " from agents
                 where tenant_id = $1
                   and (created_at, id) < ($2, $3)
                   and ($4 or archived_at is null)
                 order by created_at desc, id desc
                 limit $5"
            ))
            .bind(tenant.0)
            .bind(behind(page).0)
            .bind(behind(page).1)
            .bind(include_archived)
            .bind(one_more(page));
            Box::pin(async { rows::all(&query.fetch_all(conn).await?, rows::agent) })
        });
        Ok(Page::of(found.await?, page.limit, |agent: &Agent| {
            Position {
                at: agent.created_at,
                id: agent.id.0,
            }
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
        self.pool
            .transact(move |conn| {
                let (clock, patch, audit) = (clock.clone(), patch.clone(), audit.clone());
                Box::pin(async move {
                    // The time is asked outside of what waits for the lock.
                    let row = sqlx::query(concat!(
                        "select locked.*, coalesce($3, clock_timestamp()) as now from (select ",
                        columns!(),
                        " from agents where tenant_id = $1 and id = $2 for no key update) as locked"
                    ))
                    .bind(tenant.0)
                    .bind(agent.0)
                    .bind(clock.given())
                    .fetch_optional(&mut *conn)
                    .await
                    .map_err(Error::from)?;
                    let row = row.ok_or(AgentStoreError::NotFound)?;
                    let (agent, now) = (rows::agent(&row)?, rows::now(&row)?);
                    if version.is_some_and(|version| version != agent.version) {
                        return Err(AgentStoreError::VersionMismatch {
                            found: agent.version,
                        });
                    }
                    let Some(agent) = patch.applied_to(&agent, now) else {
                        return Ok(agent);
                    };
                    store(conn, &agent).await?;
                    audit::add(conn, &audit, now).await?;
                    Ok(agent)
                })
            })
            .await
    }

    async fn archive(
        &self,
        tenant: TenantId,
        agent: AgentId,
        audit: NewAudit,
    ) -> Result<(), AgentStoreError> {
        let given = self.clock.given();
        self.pool
            .run(move |conn| {
                let query = sqlx::query_scalar(concat!(
                    "with archived as (
                         update agents set archived_at = coalesce($1, now())
                         where tenant_id = $3 and id = $4 and archived_at is null
                         returning archived_at
                     ),
                     noted as (",
                    note!("$2", "archived_at", "archived"),
                    ")
                     select exists (select from agents where tenant_id = $3 and id = $4)"
                ))
                .bind(given)
                .bind(document(&audit))
                .bind(tenant.0)
                .bind(agent.0);
                Box::pin(async {
                    let is_there: bool = query.fetch_one(conn).await.map_err(Error::from)?;
                    if is_there {
                        Ok(())
                    } else {
                        Err(AgentStoreError::NotFound)
                    }
                })
            })
            .await
    }
}

/// Stores what may change of an agent.
async fn store(conn: &mut PgConnection, agent: &Agent) -> Result<(), Error> {
    sqlx::query(
        "update agents
         set version = $2, name = $3, description = $4, settings = $5, metadata = $6, \
             updated_at = $7
         where id = $1",
    )
    .bind(agent.id.0)
    .bind(small(agent.version))
    .bind(&agent.name)
    .bind(&agent.description)
    .bind(Document(&agent.settings))
    .bind(Document(&agent.metadata))
    .bind(rows::moment(agent.updated_at))
    .execute(conn)
    .await?;
    Ok(())
}
