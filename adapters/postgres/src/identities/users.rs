//! The statements on `users`.

use hango_domain::people::User;
use hango_domain::{TenantId, UserId};
use hango_ports::page::PageRequest;
use sqlx::PgConnection;

use crate::error::Error;
use crate::pages::{behind, one_more};
use crate::rows::{self, moment};
use crate::statement::Statement;

/// The columns of a user.
macro_rules! columns {
    () => {
        "id, tenant_id, email, name, role, status, created_at, updated_at"
    };
}

pub(super) async fn find(
    conn: &mut PgConnection,
    tenant: TenantId,
    user: UserId,
) -> Result<Option<User>, Error> {
    let row = sqlx::query(concat!(
        "select ",
        columns!(),
        " from users where id = $1 and tenant_id = $2"
    ))
    .bind(user.0)
    .bind(tenant.0)
    .fetch_optional(conn)
    .await?;
    row.as_ref().map(rows::user).transpose()
}

pub(super) fn find_by_email(tenant: TenantId, email: &str) -> Statement {
    sqlx::query(concat!(
        "select ",
        columns!(),
        " from users where tenant_id = $1 and email = $2"
    ))
    .bind(tenant.0)
    .bind(email)
}

/// The users of a tenant, or that one of it, newest first.
pub(super) fn list(tenant: TenantId, only: Option<UserId>, page: PageRequest) -> Statement {
    sqlx::query(concat!(
        "select ",
        columns!(),
        " from users
         where tenant_id = $1
           and (created_at, id) < ($2, $3)
           and ($4::uuid is null or id = $4)
         order by created_at desc, id desc
         limit $5"
    ))
    .bind(tenant.0)
    .bind(behind(page).0)
    .bind(behind(page).1)
    .bind(only.map(|user| user.0))
    .bind(one_more(page))
}

/// Adds a user. False if the tenant has one of his address.
pub(super) async fn add(conn: &mut PgConnection, user: &User) -> Result<bool, Error> {
    let added = sqlx::query(
        "insert into users (id, tenant_id, email, name, role, status, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         on conflict (tenant_id, email) do nothing",
    )
    .bind(user.id.0)
    .bind(user.tenant_id.0)
    .bind(&user.email)
    .bind(&user.name)
    .bind(user.role.as_str())
    .bind(user.status.as_str())
    .bind(moment(user.created_at))
    .bind(moment(user.updated_at))
    .execute(conn)
    .await?;
    Ok(added.rows_affected() == 1)
}

/// Stores what may change of a user.
pub(super) async fn store(conn: &mut PgConnection, user: &User) -> Result<(), Error> {
    sqlx::query(
        "update users set name = $2, role = $3, status = $4, updated_at = $5 where id = $1",
    )
    .bind(user.id.0)
    .bind(&user.name)
    .bind(user.role.as_str())
    .bind(user.status.as_str())
    .bind(moment(user.updated_at))
    .execute(conn)
    .await?;
    Ok(())
}

/// Whether the tenant has an active owner besides this user.
pub(super) async fn has_other_owner(conn: &mut PgConnection, user: &User) -> Result<bool, Error> {
    let other = sqlx::query_scalar(
        "select exists (
             select from users
             where tenant_id = $1 and id <> $2 and role = 'owner' and status = 'active'
         )",
    )
    .bind(user.tenant_id.0)
    .bind(user.id.0)
    .fetch_one(conn)
    .await?;
    Ok(other)
}
