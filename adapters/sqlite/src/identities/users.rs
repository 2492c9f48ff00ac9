//! The statements on `users`.

use hango_domain::people::User;
use hango_domain::{TenantId, UserId};
use hango_ports::page::PageRequest;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteExecutor;

use crate::audit::{behind, one_more};
use crate::error::Error;
use crate::rows;

/// The columns of a user.
macro_rules! columns {
    () => {
        "id, tenant_id, email, name, role, status, created_at, updated_at"
    };
}

pub(super) async fn find<'e>(
    executor: impl SqliteExecutor<'e>,
    tenant: TenantId,
    user: UserId,
) -> Result<Option<User>, Error> {
    let row = sqlx::query(concat!(
        "select ",
        columns!(),
        " from users where id = ? and tenant_id = ?"
    ))
    .bind(user.to_string())
    .bind(tenant.to_string())
    .fetch_optional(executor)
    .await?;
    row.as_ref().map(rows::user).transpose()
}

pub(super) async fn find_by_email<'e>(
    executor: impl SqliteExecutor<'e>,
    tenant: TenantId,
    email: &str,
) -> Result<Option<User>, Error> {
    let row = sqlx::query(concat!(
        "select ",
        columns!(),
        " from users where tenant_id = ? and email = ?"
    ))
    .bind(tenant.to_string())
    .bind(email)
    .fetch_optional(executor)
    .await?;
    row.as_ref().map(rows::user).transpose()
}

/// The users of a tenant, or that one of it, newest first.
pub(super) async fn list<'e>(
    executor: impl SqliteExecutor<'e>,
    tenant: TenantId,
    only: Option<UserId>,
    page: PageRequest,
) -> Result<Vec<User>, Error> {
    let rows = sqlx::query(concat!(
        "select ",
        columns!(),
        " from users
         where tenant_id = ?1
           and (created_at, id) < (?2, ?3)
           and (?4 is null or id = ?4)
         order by created_at desc, id desc
         limit ?5"
    ))
    .bind(tenant.to_string())
    .bind(behind(page).0)
    .bind(behind(page).1)
    .bind(only.map(|user| user.to_string()))
    .bind(one_more(page))
    .fetch_all(executor)
    .await?;
    rows::all(&rows, rows::user)
}

/// Adds a user. False if the tenant has one of his address.
pub(super) async fn add(conn: &mut SqliteConnection, user: &User) -> Result<bool, Error> {
    let added = sqlx::query(
        "insert into users (id, tenant_id, email, name, role, status, created_at, updated_at)
         values (?, ?, ?, ?, ?, ?, ?, ?)
         on conflict (tenant_id, email) do nothing",
    )
    .bind(user.id.to_string())
    .bind(user.tenant_id.to_string())
    .bind(&user.email)
    .bind(&user.name)
    .bind(user.role.as_str())
    .bind(user.status.as_str())
    .bind(user.created_at.as_micros())
    .bind(user.updated_at.as_micros())
    .execute(conn)
    .await?;
    Ok(added.rows_affected() == 1)
}

/// Stores what may change of a user.
pub(super) async fn store(conn: &mut SqliteConnection, user: &User) -> Result<(), Error> {
    sqlx::query("update users set name = ?, role = ?, status = ?, updated_at = ? where id = ?")
        .bind(&user.name)
        .bind(user.role.as_str())
        .bind(user.status.as_str())
        .bind(user.updated_at.as_micros())
        .bind(user.id.to_string())
        .execute(conn)
        .await?;
    Ok(())
}

/// Whether the tenant has an active owner besides this user.
pub(super) async fn has_other_owner(
    conn: &mut SqliteConnection,
    user: &User,
) -> Result<bool, Error> {
    let other: Option<String> = sqlx::query_scalar(
        "select id from users
         where tenant_id = ? and id <> ? and role = 'owner' and status = 'active'
         limit 1",
    )
    .bind(user.tenant_id.to_string())
    .bind(user.id.to_string())
    .fetch_optional(conn)
    .await?;
    Ok(other.is_some())
}
