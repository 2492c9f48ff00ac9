//! Sessions, with their messages: the port.
//!
//! Whoever changes a session, or appends to it, locks its row; where runs are locked too, in the order
//! that [`runs`](crate::runs) has.

use async_trait::async_trait;
use hango_domain::access::Visibility;
use hango_domain::conversation::{Message, NewMessage};
use hango_domain::session::{Session, SessionLine};
use hango_domain::{SessionId, Timestamp};
use hango_ports::audit_store::NewAudit;
use hango_ports::idempotency::IdempotencyKey;
use hango_ports::page::{Page, PageRequest, Position};
use hango_ports::session_store::{
    MessageQuery, NewSession, SessionFilter, SessionPatch, SessionStore, SessionStoreError,
};
use sqlx::PgConnection;

use crate::agents::named;
use crate::audit::{self, document, note};
use crate::clock::StoreClock;
use crate::error::Error;
use crate::pages::{behind, one_more};
use crate::rows::{self, Document};
use crate::{PostgresStore, idempotency, messages};

/// Whether a caller sees the session `s`: `$tenant` and `$creator` are who he is. A `case` leaves the
/// planner but one way to a session, by its id: a tenant has few of them only as long as he is new.
macro_rules! is_seen {
    ($tenant:literal, $creator:literal) => {
        concat!(
            "case when s.tenant_id = ",
            $tenant,
            " then ",
            $creator,
            "::uuid is null or s.created_by = ",
            $creator,
            " else false end"
        )
    };
}
pub(crate) use is_seen;

/// A session that the caller sees, with its line.
macro_rules! one_session {
    () => {
        concat!(
            "select id, tenant_id, agent_id, created_by, title, metadata, created_at, updated_at, \
                 id as session_id, pending_runs, running_run, last_run_no, last_seq
             from sessions s where id = $1 and ",
            is_seen!("$2", "$3")
        )
    };
}

/// A session that the caller sees.
pub(crate) const FIND: &str = one_session!();

/// The same, locked. The time is asked outside of what waits for the lock.
pub(crate) const LOCK: &str = concat!(
    "select locked.*, coalesce($4, clock_timestamp()) as now from (",
    one_session!(),
    " for update) as locked"
);

/// A session that the caller sees.
async fn find(
    conn: &mut PgConnection,
    seen: Visibility,
    session: SessionId,
) -> Result<Option<Session>, Error> {
    let row = sqlx::query(FIND)
        .bind(session.0)
        .bind(seen.tenant.0)
        .bind(seen.creator.map(|user| user.0))
        .fetch_optional(conn)
        .await?;
    row.as_ref().map(rows::session).transpose()
}

/// A session that nobody else changes, or removes, until the transaction ends.
struct Locked {
    session: Session,
    line: SessionLine,
    /// The moment at which it was locked.
    now: Timestamp,
}

/// Locks a session that the caller sees.
async fn lock(
    conn: &mut PgConnection,
    clock: &StoreClock,
    seen: Visibility,
    session: SessionId,
) -> Result<Option<Locked>, Error> {
    let row = sqlx::query(LOCK)
        .bind(session.0)
        .bind(seen.tenant.0)
        .bind(seen.creator.map(|user| user.0))
        .bind(clock.given())
        .fetch_optional(conn)
        .await?;
    row.map(|row| {
        Ok(Locked {
            session: rows::session(&row)?,
            line: rows::session_line(&row)?,
            now: rows::now(&row)?,
        })
    })
    .transpose()
}

/// Adds a session with an agent that takes it, and its audit row.
const ADD: &str = concat!(
    "with moment as (select coalesce($1, clock_timestamp()) as now),
     agent as (
         select id, archived_at from agents
         where tenant_id = $4 and (id = $5 or slug = $6)
     ),
     added as (
         insert into sessions (id, tenant_id, agent_id, created_by, title, metadata, created_at, \
             updated_at)
         select $3, $4, agent.id, $7, $8, $9, now, now from agent, moment
         where archived_at is null
         returning id, tenant_id, agent_id, created_by, title, metadata, created_at, updated_at
     ),
     noted as (",
    note!("$2", "created_at", "added"),
    ")
     select added.*, agent.archived_at is not null as archived
     from agent left join added on true"
);

async fn add(
    conn: &mut PgConnection,
    clock: &StoreClock,
    new: &NewSession,
    audit: &NewAudit,
) -> Result<Session, SessionStoreError> {
    let (id, slug) = named(&new.agent);
    let row = sqlx::query(ADD)
        .bind(clock.given())
        .bind(document(audit))
        .bind(new.id.0)
        .bind(new.created_by.tenant.0)
        .bind(id)
        .bind(slug)
        .bind(new.created_by.user.0)
        .bind(&new.title)
        .bind(Document(&new.metadata))
        .fetch_optional(conn)
        .await
        .map_err(Error::from)?;
    let row = row.ok_or(SessionStoreError::UnknownAgent)?;
    if rows::Columns::new(&row, "agents", "agent_id").get("archived")? {
        return Err(SessionStoreError::AgentArchived);
    }
    Ok(rows::session(&row)?)
}

#[async_trait]
impl SessionStore for PostgresStore {
    async fn create(
        &self,
        new: NewSession,
        audit: NewAudit,
        once: Option<IdempotencyKey>,
    ) -> Result<Session, SessionStoreError> {
        let clock = self.clock.clone();
        let Some(key) = once else {
            return self
                .pool
                .run(move |conn| {
                    let (clock, new, audit) = (clock.clone(), new.clone(), audit.clone());
                    Box::pin(async move { add(conn, &clock, &new, &audit).await })
                })
                .await;
        };
        self.pool
            .transact(move |conn| {
                let (clock, key) = (clock.clone(), key.clone());
                let (new, audit) = (new.clone(), audit.clone());
                Box::pin(async move {
                    idempotency::begin::<SessionStoreError>(conn, &clock, Some(&key)).await?;
                    let session = add(conn, &clock, &new, &audit).await?;
                    idempotency::keep(conn, Some(&key), &session).await?;
                    Ok(session)
                })
            })
            .await
    }

    async fn find(
        &self,
        seen: Visibility,
        session: SessionId,
    ) -> Result<Option<Session>, SessionStoreError> {
        self.pool
            .read(move |conn| Box::pin(async move { Ok(find(conn, seen, session).await?) }))
            .await
    }

    async fn list(
        &self,
        seen: Visibility,
        filter: SessionFilter,
        page: PageRequest,
    ) -> Result<Page<Session>, SessionStoreError> {
        let found = self.pool.read(move |conn| {
            let query = sqlx::query(
                "select id, tenant_id, agent_id, created_by, title, metadata, created_at, updated_at
                 from sessions
                 where tenant_id = $1
                   and (created_at, id) < ($2, $3)
                   and ($4::uuid is null or created_by = $4)
                   and ($5::uuid is null or agent_id = $5)
                   and ($6::uuid is null or created_by = $6)
                 order by created_at desc, id desc
                 limit $7",
            )
            .bind(seen.tenant.0)
            .bind(behind(page).0)
            .bind(behind(page).1)
            .bind(seen.creator.map(|user| user.0))
            .bind(filter.agent.map(|agent| agent.0))
            .bind(filter.created_by.map(|user| user.0))
            .bind(one_more(page));
            Box::pin(async { rows::all(&query.fetch_all(conn).await?, rows::session) })
        });
        Ok(Page::of(found.await?, page.limit, |session: &Session| {
            Position {
                at: session.created_at,
                id: session.id.0,
            }
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
        self.pool
            .transact(move |conn| {
                let (clock, patch, audit) = (clock.clone(), patch.clone(), audit.clone());
                Box::pin(async move {
                    let locked = lock(conn, &clock, seen, session).await?;
                    let Locked { session, now, .. } = locked.ok_or(SessionStoreError::NotFound)?;
                    let session = patch.applied_to(session, now);
                    store(conn, &session).await?;
                    audit::add(conn, &audit, now).await?;
                    Ok(session)
                })
            })
            .await
    }

    /// The row is locked by a statement of its own: what another transaction added before it let go of
    /// the row is seen only by the next one.
    async fn delete(
        &self,
        seen: Visibility,
        session: SessionId,
        audit: NewAudit,
    ) -> Result<(), SessionStoreError> {
        let clock = self.clock.clone();
        self.pool
            .transact(move |conn| {
                let (clock, audit) = (clock.clone(), audit.clone());
                Box::pin(async move {
                    let locked = lock(conn, &clock, seen, session).await?;
                    let Locked { line, now, .. } = locked.ok_or(SessionStoreError::NotFound)?;
                    if line.pending_runs > 0 {
                        return Err(SessionStoreError::Busy {
                            pending: line.pending_runs,
                        });
                    }
                    remove(conn, session).await?;
                    audit::add(conn, &audit, now).await?;
                    Ok(())
                })
            })
            .await
    }

    async fn messages(
        &self,
        seen: Visibility,
        session: SessionId,
        query: MessageQuery,
    ) -> Result<Option<Vec<Message>>, SessionStoreError> {
        self.pool
            .read(move |conn| {
                Box::pin(async move { Ok(messages::list(conn, seen, session, query).await?) })
            })
            .await
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
        self.pool
            .transact(move |conn| {
                let (clock, once) = (clock.clone(), once.clone());
                let (message, audit) = (message.clone(), audit.clone());
                Box::pin(async move {
                    let once = once.as_ref();
                    idempotency::begin::<SessionStoreError>(conn, &clock, once).await?;
                    let locked = lock(conn, &clock, seen, session).await?;
                    let Locked { line, now, .. } = locked.ok_or(SessionStoreError::NotFound)?;
                    if line.running_run.is_some() {
                        return Err(SessionStoreError::Busy {
                            pending: line.pending_runs,
                        });
                    }
                    let message = message.stored(session, None, line.said().last_seq, now);
                    messages::append(conn, &message).await?;
                    audit::add(conn, &audit, now).await?;
                    idempotency::keep(conn, once, &message).await?;
                    Ok(message)
                })
            })
            .await
    }
}

/// Stores what may change of a session.
async fn store(conn: &mut PgConnection, session: &Session) -> Result<(), Error> {
    sqlx::query("update sessions set title = $2, metadata = $3, updated_at = $4 where id = $1")
        .bind(session.id.0)
        .bind(&session.title)
        .bind(Document(&session.metadata))
        .bind(rows::moment(session.updated_at))
        .execute(conn)
        .await?;
    Ok(())
}

/// Removes a session with its messages; its runs, with their journal and events, go with it.
async fn remove(conn: &mut PgConnection, session: SessionId) -> Result<(), Error> {
    sqlx::query(
        "with messages as (delete from messages where session_id = $1)
         delete from sessions where id = $1",
    )
    .bind(session.0)
    .execute(conn)
    .await?;
    Ok(())
}
