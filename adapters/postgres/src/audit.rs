//! The audit trail.

use async_trait::async_trait;
use hango_domain::access::Role;
use hango_domain::{TenantId, Timestamp};
use hango_ports::StoreFailure;
use hango_ports::audit_store::{AuditFilter, AuditRow, AuditStore, NewAudit};
use hango_ports::page::{Page, PageRequest, Position};
use serde_json::{Value, json};
use sqlx::PgConnection;

use crate::PostgresStore;
use crate::error::Error;
use crate::pages::{behind, one_more};
use crate::rows::{self, Document, moment};

/// What adds the audit row of a change, as a part of a statement: the row is the [`document`] in the
/// parameter `$row`, its moment is `$at`, and it is added for each row of `$from`, which is one or none.
/// `$detail` stands for what the document has of that, and perhaps more. The statement fails where who makes
/// the change may not act any more.
macro_rules! note {
    ($row:literal, $at:literal, $from:literal) => {
        note!($row, $at, $from, "audit.detail")
    };
    ($row:literal, $at:literal, $from:literal, $detail:literal) => {
        crate::audit::keep!(
            $row,
            $at,
            $from,
            concat!("acting_key(", $row, ", ", $at, ")"),
            $detail
        )
    };
}

/// The same, where `$key` is the key of who acts.
macro_rules! keep {
    ($row:literal, $at:literal, $from:literal, $key:expr, $detail:literal) => {
        concat!(
            "insert into audit_events (id, tenant_id, actor_id, api_key_id, action, target_kind, \
                 target_id, detail, trace_id, request_id, status, at)
             select audit.id, audit.tenant_id, audit.actor_id, ",
            $key,
            ", audit.action, audit.target_kind, audit.target_id, ",
            $detail,
            ", audit.trace_id, audit.request_id, audit.status, ",
            $at,
            " from json_to_record(",
            $row,
            ") as audit (id uuid, tenant_id uuid, actor_id uuid, api_key_id uuid, action text, \
                 target_kind text, target_id uuid, detail json, trace_id text, request_id text, \
                 status int), ",
            $from
        )
    };
}

pub(crate) use {keep, note};

/// A row, as a statement takes it.
pub(crate) fn document(row: &NewAudit) -> Document<Value> {
    Document(json!({
        "id": row.id,
        "tenant_id": row.tenant_id,
        "actor_id": row.actor_id,
        "actor_roles": row.actor_roles().map(Role::as_str).collect::<Vec<_>>(),
        "api_key_id": row.api_key_id,
        "action": row.action,
        "target_kind": row.target_kind,
        "target_id": row.target_id,
        "detail": row.detail,
        "trace_id": row.trace_id.map(|id| id.to_string()),
        "request_id": row.request_id,
        "status": row.status,
    }))
}

/// Adds the row of a change, in its transaction; before what is changed of the actor himself.
pub(crate) async fn add(
    conn: &mut PgConnection,
    row: &NewAudit,
    at: Timestamp,
) -> Result<(), Error> {
    sqlx::query(note!("$1", "moment.at", "(select $2 as at) as moment"))
        .bind(document(row))
        .bind(moment(at))
        .execute(conn)
        .await?;
    Ok(())
}

#[async_trait]
impl AuditStore for PostgresStore {
    async fn record(&self, row: NewAudit) -> Result<(), StoreFailure> {
        let given = self.clock.given();
        self.pool
            .run(move |conn| {
                let query = sqlx::query(keep!(
                    "$1",
                    "moment.at",
                    "(select coalesce($2, now()) as at) as moment",
                    "audit.api_key_id",
                    "audit.detail"
                ))
                .bind(document(&row))
                .bind(given);
                Box::pin(async {
                    query.execute(conn).await.map_err(Error::from)?;
                    Ok(())
                })
            })
            .await
    }

    async fn list(
        &self,
        tenant: TenantId,
        filter: AuditFilter,
        page: PageRequest,
    ) -> Result<Page<AuditRow>, StoreFailure> {
        let found = self.pool.read(move |conn| {
            let query = sqlx::query(
                "select id, tenant_id, actor_id, api_key_id, action, target_kind, target_id, \
                     detail, trace_id, request_id, status, at
                 from audit_events
                 where tenant_id = $1
                   and (at, id) < ($2, $3)
                   and ($4::text is null or action = $4)
                   and ($5::uuid is null or target_id = $5)
                   and ($6::uuid is null or actor_id = $6)
                 order by at desc, id desc
                 limit $7",
            )
            .bind(tenant.0)
            .bind(behind(page).0)
            .bind(behind(page).1)
            .bind(filter.action.as_deref())
            .bind(filter.target_id)
            .bind(filter.actor_id.map(|id| id.0))
            .bind(one_more(page));
            Box::pin(async { rows::all(&query.fetch_all(conn).await?, rows::audit_row) })
        });
        Ok(Page::of(found.await?, page.limit, |row: &AuditRow| {
            Position {
                at: row.at,
                id: row.id.0,
            }
        }))
    }
}
