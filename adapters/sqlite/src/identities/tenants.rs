//! The statements on `tenants`.

use hango_domain::people::{Tenant, TenantStatus};
use hango_domain::{TenantId, Timestamp};
use hango_ports::page::PageRequest;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteExecutor;

use crate::audit::{behind, one_more};
use crate::error::Error;
use crate::rows;

/// The columns of a tenant.
macro_rules! columns {
    () => {
        "id, slug, name, status, created_at, updated_at"
    };
}

pub(super) async fn find<'e>(
    executor: impl SqliteExecutor<'e>,
    tenant: TenantId,
) -> Result<Option<Tenant>, Error> {
    let row = sqlx::query(concat!("select ", columns!(), " from tenants where id = ?"))
        .bind(tenant.to_string())
        .fetch_optional(executor)
        .await?;
    row.as_ref().map(rows::tenant).transpose()
}

pub(super) async fn find_by_slug<'e>(
    executor: impl SqliteExecutor<'e>,
    slug: &str,
) -> Result<Option<Tenant>, Error> {
    let row = sqlx::query(concat!(
        "select ",
        columns!(),
        " from tenants where slug = ?"
    ))
    .bind(slug)
    .fetch_optional(executor)
    .await?;
    row.as_ref().map(rows::tenant).transpose()
}

/// Tenants, newest first.
pub(super) async fn list<'e>(
    executor: impl SqliteExecutor<'e>,
    page: PageRequest,
) -> Result<Vec<Tenant>, Error> {
    let rows = sqlx::query(concat!(
        "select ",
        columns!(),
        " from tenants
         where (created_at, id) < (?, ?)
         order by created_at desc, id desc
         limit ?"
    ))
    .bind(behind(page).0)
    .bind(behind(page).1)
    .bind(one_more(page))
    .fetch_all(executor)
    .await?;
    rows::all(&rows, rows::tenant)
}

/// Adds a tenant. False if there is one of its slug.
pub(super) async fn add(conn: &mut SqliteConnection, tenant: &Tenant) -> Result<bool, Error> {
    let added = sqlx::query(
        "insert into tenants (id, slug, name, status, created_at, updated_at)
         values (?, ?, ?, ?, ?, ?)
         on conflict (slug) do nothing",
    )
    .bind(tenant.id.to_string())
    .bind(&tenant.slug)
    .bind(&tenant.name)
    .bind(tenant.status.as_str())
    .bind(tenant.created_at.as_micros())
    .bind(tenant.updated_at.as_micros())
    .execute(conn)
    .await?;
    Ok(added.rows_affected() == 1)
}

pub(super) async fn set_status(
    conn: &mut SqliteConnection,
    tenant: TenantId,
    status: TenantStatus,
    now: Timestamp,
) -> Result<(), Error> {
    sqlx::query("update tenants set status = ?, updated_at = ? where id = ?")
        .bind(status.as_str())
        .bind(now.as_micros())
        .bind(tenant.to_string())
        .execute(conn)
        .await?;
    Ok(())
}
