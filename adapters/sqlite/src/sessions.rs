//! Sessions, with their messages: the port.

use async_trait::async_trait;
use hango_domain::SessionId;
use hango_domain::access::Visibility;
use hango_domain::conversation::{Message, NewMessage};
use hango_domain::session::{Session, SessionLine};
use hango_ports::audit_store::NewAudit;
use hango_ports::idempotency::IdempotencyKey;
use hango_ports::page::{Page, PageRequest, Position};
use hango_ports::session_store::{
    MessageQuery, NewSession, SessionFilter, SessionPatch, SessionStore, SessionStoreError,
};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteExecutor;
use sqlx::types::Json;

use crate::audit::{self, behind, one_more};
use crate::error::Error;
use crate::rows::integer;
use crate::writer::Urgency;
use crate::{SqliteStore, agents, idempotency, messages, rows};

/// A session that the caller sees, with its line.
pub(crate) async fn find<'e>(
    executor: impl SqliteExecutor<'e>,
    seen: Visibility,
    session: SessionId,
) -> Result<Option<(Session, SessionLine)>, Error> {
    let row = sqlx::query(
        "select id, tenant_id, agent_id, created_by, title, metadata, created_at, updated_at, \
             id as session_id, pending_runs, running_run, last_run_no, last_seq
         from sessions
         where id = ?1 and tenant_id = ?2 and (?3 is null or created_by = ?3)",
    )
    .bind(session.to_string())
    .bind(seen.tenant.to_string())
    .bind(seen.creator.map(|user| user.to_string()))
    .fetch_optional(executor)
    .await?;
    row.map(|row| Ok((rows::session(&row)?, rows::session_line(&row)?)))
        .transpose()
}

/// Stores the line of a session.
pub(crate) async fn store_line(
    conn: &mut SqliteConnection,
    session: SessionId,
    line: &SessionLine,
) -> Result<(), Error> {
    sqlx::query(
        "update sessions set pending_runs = ?, running_run = ?, last_run_no = ?, last_seq = ?
         where id = ?",
    )
    .bind(line.pending_runs)
    .bind(line.running_run.map(|run| run.to_string()))
    .bind(integer(line.last_run_no))
    .bind(integer(line.last_seq))
    .bind(session.to_string())
    .execute(conn)
    .await?;
    Ok(())
}

#[async_trait]
impl SessionStore for SqliteStore {
    async fn create(
        &self,
        new: NewSession,
        audit: NewAudit,
        once: Option<IdempotencyKey>,
    ) -> Result<Session, SessionStoreError> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                idempotency::begin::<SessionStoreError>(conn, once.as_ref(), now).await?;
                let tenant = new.created_by.tenant;
                let agent = agents::find(&mut *conn, tenant, &new.agent).await?;
                let agent = agent.ok_or(SessionStoreError::UnknownAgent)?;
                if agent.archived_at.is_some() {
                    return Err(SessionStoreError::AgentArchived);
                }
                let session = Session {
                    id: new.id,
                    tenant_id: tenant,
                    agent_id: agent.id,
                    created_by: new.created_by.user,
                    title: new.title,
                    metadata: new.metadata,
                    created_at: now,
                    updated_at: now,
                };
                sqlx::query(
                    "insert into sessions (id, tenant_id, agent_id, created_by, title, metadata, \
                         created_at, updated_at)
                     values (?, ?, ?, ?, ?, ?, ?, ?)",
                )
                .bind(session.id.to_string())
                .bind(session.tenant_id.to_string())
                .bind(session.agent_id.to_string())
                .bind(session.created_by.to_string())
                .bind(&session.title)
                .bind(Json(&session.metadata))
                .bind(now.as_micros())
                .bind(now.as_micros())
                .execute(&mut *conn)
                .await
                .map_err(Error::from)?;
                audit::note(conn, &audit, now).await?;
                idempotency::keep(conn, once.as_ref(), &session, now).await?;
                Ok(session)
            })
            .await
    }

    async fn find(
        &self,
        seen: Visibility,
        session: SessionId,
    ) -> Result<Option<Session>, SessionStoreError> {
        let found = find(&self.readers, seen, session).await?;
        Ok(found.map(|(session, _)| session))
    }

    async fn list(
        &self,
        seen: Visibility,
        filter: SessionFilter,
        page: PageRequest,
    ) -> Result<Page<Session>, SessionStoreError> {
        let rows = sqlx::query(
            "select id, tenant_id, agent_id, created_by, title, metadata, created_at, updated_at
             from sessions
             where tenant_id = ?1
               and (created_at, id) < (?2, ?3)
               and (?4 is null or created_by = ?4)
               and (?5 is null or agent_id = ?5)
               and (?6 is null or created_by = ?6)
             order by created_at desc, id desc
             limit ?7",
        )
        .bind(seen.tenant.to_string())
        .bind(behind(page).0)
        .bind(behind(page).1)
        .bind(seen.creator.map(|user| user.to_string()))
        .bind(filter.agent.map(|agent| agent.to_string()))
        .bind(filter.created_by.map(|user| user.to_string()))
        .bind(one_more(page))
        .fetch_all(&self.readers)
        .await
        .map_err(Error::from)?;
        let sessions = rows::all(&rows, rows::session)?;
        Ok(Page::of(sessions, page.limit, |session| Position {
            at: session.created_at,
            id: session.id.0,
        }))
    }

    async fn update(
        &self,
        seen: Visibility,
        session: SessionId,
        patch: SessionPatch,
        audit: NewAudit,
    ) -> Result<Session, SessionStoreError> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                let found = find(&mut *conn, seen, session).await?;
                let (session, _) = found.ok_or(SessionStoreError::NotFound)?;
                let session = patch.applied_to(session, now);
                sqlx::query(
                    "update sessions set title = ?, metadata = ?, updated_at = ? where id = ?",
                )
                .bind(&session.title)
                .bind(Json(&session.metadata))
                .bind(now.as_micros())
                .bind(session.id.to_string())
                .execute(&mut *conn)
                .await
                .map_err(Error::from)?;
                audit::note(conn, &audit, now).await?;
                Ok(session)
            })
            .await
    }

    async fn delete(
        &self,
        seen: Visibility,
        session: SessionId,
        audit: NewAudit,
    ) -> Result<(), SessionStoreError> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let found = find(&mut *conn, seen, session).await?;
                let (_, line) = found.ok_or(SessionStoreError::NotFound)?;
                if line.pending_runs > 0 {
                    return Err(SessionStoreError::Busy {
                        pending: line.pending_runs,
                    });
                }
                // Runs, with their journal and events, and messages go with it.
                sqlx::query("delete from sessions where id = ? and pending_runs = 0")
                    .bind(session.to_string())
                    .execute(&mut *conn)
                    .await
                    .map_err(Error::from)?;
                audit::note(conn, &audit, clock.now()).await?;
                Ok(())
            })
            .await
    }

    async fn messages(
        &self,
        seen: Visibility,
        session: SessionId,
        query: MessageQuery,
    ) -> Result<Option<Vec<Message>>, SessionStoreError> {
        if find(&self.readers, seen, session).await?.is_none() {
            return Ok(None);
        }
        Ok(Some(messages::list(&self.readers, session, query).await?))
    }

    async fn append(
        &self,
        seen: Visibility,
        session: SessionId,
        message: NewMessage,
        audit: NewAudit,
        once: Option<IdempotencyKey>,
    ) -> Result<Message, SessionStoreError> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                idempotency::begin::<SessionStoreError>(conn, once.as_ref(), now).await?;
                let found = find(&mut *conn, seen, session).await?;
                let (_, mut line) = found.ok_or(SessionStoreError::NotFound)?;
                if line.running_run.is_some() {
                    return Err(SessionStoreError::Busy {
                        pending: line.pending_runs,
                    });
                }
                let message = messages::say(conn, message, session, None, &mut line, now).await?;
                store_line(conn, session, &line).await?;
                audit::note(conn, &audit, now).await?;
                idempotency::keep(conn, once.as_ref(), &message, now).await?;
                Ok(message)
            })
            .await
    }
}
