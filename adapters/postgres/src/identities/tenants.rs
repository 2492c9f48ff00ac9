//! The statements on `tenants`.

use chrono::{DateTime, Utc};
use hango_domain::TenantId;
use hango_domain::people::{Tenant, TenantStatus};
use hango_ports::audit_store::NewAudit;
use hango_ports::page::PageRequest;
use sqlx::PgConnection;

use crate::audit::{document, note};
use crate::error::Error;
use crate::pages::{behind, one_more};
use crate::rows::moment;
use crate::statement::Statement;

/// The columns of a tenant.
macro_rules! columns {
    () => {
        "id, slug, name, status, created_at, updated_at"
    };
}

pub(super) fn find(tenant: TenantId) -> Statement {
    sqlx::query(concat!(
        "select ",
        columns!(),
        " from tenants where id = $1"
    ))
    .bind(tenant.0)
}

pub(super) fn find_by_slug(slug: &str) -> Statement {
    sqlx::query(concat!(
        "select ",
        columns!(),
        " from tenants where slug = $1"
    ))
    .bind(slug)
}

/// Tenants, newest first.
pub(super) fn list(page: PageRequest) -> Statement {
    sqlx::query(concat!(
        "select ",
        columns!(),
        " from tenants
         where (created_at, id) < ($1, $2)
         order by created_at desc, id desc
         limit $3"
    ))
    .bind(behind(page).0)
    .bind(behind(page).1)
    .bind(one_more(page))
}

/// Adds a tenant. False if there is one of its slug.
pub(super) async fn add(conn: &mut PgConnection, tenant: &Tenant) -> Result<bool, Error> {
    let added = sqlx::query(
        "insert into tenants (id, slug, name, status, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (slug) do nothing",
    )
    .bind(tenant.id.0)
    .bind(&tenant.slug)
    .bind(&tenant.name)
    .bind(tenant.status.as_str())
    .bind(moment(tenant.created_at))
    .bind(moment(tenant.updated_at))
    .execute(conn)
    .await?;
    Ok(added.rows_affected() == 1)
}

/// Suspends a tenant or lets it work again, and reads it as it is then.
pub(super) fn set_status(
    tenant: TenantId,
    status: TenantStatus,
    audit: &NewAudit,
    given: Option<DateTime<Utc>>,
) -> Statement {
    sqlx::query(concat!(
        "with changed as (
             update tenants set status = $4, updated_at = coalesce($1, now())
             where id = $3
             returning ",
        columns!(),
        "),
         noted as (",
        note!("$2", "updated_at", "changed"),
        ")
         select ",
        columns!(),
        " from changed"
    ))
    .bind(given)
    .bind(document(audit))
    .bind(tenant.0)
    .bind(status.as_str())
}

/// Keeps others who lock the tenant waiting until the transaction ends. False if there is no such
/// tenant.
pub(super) async fn lock(conn: &mut PgConnection, tenant: TenantId) -> Result<bool, Error> {
    let locked = sqlx::query("select id from tenants where id = $1 for no key update")
        .bind(tenant.0)
        .fetch_optional(conn)
        .await?;
    Ok(locked.is_some())
}
