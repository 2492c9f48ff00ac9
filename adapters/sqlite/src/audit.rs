//! The audit trail.

use async_trait::async_trait;
use hango_domain::access::Role;
use hango_domain::{TenantId, Timestamp};
use hango_ports::StoreFailure;
use hango_ports::audit_store::{AuditFilter, AuditRow, AuditStore, NewAudit};
use hango_ports::page::{Page, PageRequest, Position};
use sqlx::SqliteConnection;
use sqlx::types::Json;

use crate::SqliteStore;
use crate::error::Error;
use crate::rows;
use crate::writer::Urgency;

/// Adds the row of a change, in its transaction, if who makes it may still act; before what is changed of
/// that himself.
pub(crate) async fn note(
    conn: &mut SqliteConnection,
    row: &NewAudit,
    at: Timestamp,
) -> Result<(), Error> {
    if may_act(conn, row, at).await? {
        add(conn, row, at).await
    } else {
        Err(Error::ActorRefused)
    }
}

/// Whether the key that a row names may act: the domain's
/// [`may_act`](hango_domain::people::may_act). A row that names none is an operator's.
async fn may_act(
    conn: &mut SqliteConnection,
    row: &NewAudit,
    now: Timestamp,
) -> Result<bool, Error> {
    let Some(key) = row.api_key_id else {
        return Ok(true);
    };
    let roles: Vec<_> = row.actor_roles().map(Role::as_str).collect();
    let may = sqlx::query_scalar(
        "select exists (
             select 1 from api_keys k
             join users u on u.id = k.user_id and u.tenant_id = k.tenant_id
             join tenants t on t.id = k.tenant_id
             where k.id = ?1 and k.user_id = ?2 and k.tenant_id = ?3
               and k.revoked_at is null and (k.expires_at is null or k.expires_at > ?4)
               and u.status = 'active' and t.status = 'active'
               and u.role in (select value from json_each(?5)))",
    )
    .bind(key.to_string())
    .bind(row.actor_id.map(|id| id.to_string()))
    .bind(row.tenant_id.to_string())
    .bind(now.as_micros())
    .bind(Json(roles))
    .fetch_one(conn)
    .await?;
    Ok(may)
}

async fn add(conn: &mut SqliteConnection, row: &NewAudit, at: Timestamp) -> Result<(), Error> {
    sqlx::query(
        "insert into audit_events (id, tenant_id, actor_id, api_key_id, action, target_kind, \
             target_id, detail, trace_id, request_id, status, at)
         values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(row.id.to_string())
    .bind(row.tenant_id.to_string())
    .bind(row.actor_id.map(|id| id.to_string()))
    .bind(row.api_key_id.map(|id| id.to_string()))
    .bind(row.action)
    .bind(row.target_kind)
    .bind(row.target_id.map(|id| id.to_string()))
    .bind(Json(&row.detail))
    .bind(row.trace_id.map(|id| id.to_string()))
    .bind(row.request_id.as_deref())
    .bind(row.status)
    .bind(at.as_micros())
    .execute(conn)
    .await?;
    Ok(())
}

#[async_trait]
impl AuditStore for SqliteStore {
    async fn record(&self, row: NewAudit) -> Result<(), StoreFailure> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                add(conn, &row, clock.now()).await?;
                Ok(())
            })
            .await
    }

    async fn list(
        &self,
        tenant: TenantId,
        filter: AuditFilter,
        page: PageRequest,
    ) -> Result<Page<AuditRow>, StoreFailure> {
        let rows = sqlx::query(
            "select id, tenant_id, actor_id, api_key_id, action, target_kind, target_id, detail, \
                 trace_id, request_id, status, at
             from audit_events
             where tenant_id = ?1
               and (at, id) < (?2, ?3)
               and (?4 is null or action = ?4)
               and (?5 is null or target_id = ?5)
               and (?6 is null or actor_id = ?6)
             order by at desc, id desc
             limit ?7",
        )
        .bind(tenant.to_string())
        .bind(behind(page).0)
        .bind(behind(page).1)
        .bind(filter.action)
        .bind(filter.target_id.map(|id| id.to_string()))
        .bind(filter.actor_id.map(|id| id.to_string()))
        .bind(one_more(page))
        .fetch_all(&self.readers)
        .await
        .map_err(Error::from)?;
        let rows = rows::all(&rows, rows::audit_row)?;
        Ok(Page::of(rows, page.limit, |row| Position {
            at: row.at,
            id: row.id.0,
        }))
    }
}

/// The row behind which a page begins; for the first page, one that is newer than all.
pub(crate) fn behind(page: PageRequest) -> (i64, String) {
    page.after.map_or((i64::MAX, String::new()), |row| {
        (row.at.as_micros(), row.id.hyphenated().to_string())
    })
}

/// How many rows a page reads: one more than it shows, to know whether the list goes on.
pub(crate) fn one_more(page: PageRequest) -> i64 {
    i64::from(page.limit) + 1
}
