//! The statements on `api_keys`.

use hango_domain::people::ApiKey;
use hango_domain::{ApiKeyId, TenantId, Timestamp, UserId};
use hango_ports::page::PageRequest;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteExecutor;

use crate::audit::{behind, one_more};
use crate::error::Error;
use crate::rows;

/// The columns of a key.
macro_rules! columns {
    () => {
        "id, tenant_id, user_id, name, prefix, secret_hash, created_at, expires_at, revoked_at, \
         last_used_at"
    };
}

pub(super) async fn find<'e>(
    executor: impl SqliteExecutor<'e>,
    tenant: TenantId,
    key: ApiKeyId,
) -> Result<Option<ApiKey>, Error> {
    let row = sqlx::query(concat!(
        "select ",
        columns!(),
        " from api_keys where id = ? and tenant_id = ?"
    ))
    .bind(key.to_string())
    .bind(tenant.to_string())
    .fetch_optional(executor)
    .await?;
    row.as_ref().map(rows::api_key).transpose()
}

pub(super) async fn find_anywhere<'e>(
    executor: impl SqliteExecutor<'e>,
    key: ApiKeyId,
) -> Result<Option<ApiKey>, Error> {
    let row = sqlx::query(concat!(
        "select ",
        columns!(),
        " from api_keys where id = ?"
    ))
    .bind(key.to_string())
    .fetch_optional(executor)
    .await?;
    row.as_ref().map(rows::api_key).transpose()
}

pub(super) async fn find_by_prefix<'e>(
    executor: impl SqliteExecutor<'e>,
    prefix: &str,
) -> Result<Option<ApiKey>, Error> {
    let row = sqlx::query(concat!(
        "select ",
        columns!(),
        " from api_keys where prefix = ?"
    ))
    .bind(prefix)
    .fetch_optional(executor)
    .await?;
    row.as_ref().map(rows::api_key).transpose()
}

/// The keys of a tenant, or of one user of it, newest first.
pub(super) async fn list<'e>(
    executor: impl SqliteExecutor<'e>,
    tenant: TenantId,
    user: Option<UserId>,
    page: PageRequest,
) -> Result<Vec<ApiKey>, Error> {
    let rows = sqlx::query(concat!(
        "select ",
        columns!(),
        " from api_keys
         where tenant_id = ?1
           and (created_at, id) < (?2, ?3)
           and (?4 is null or user_id = ?4)
         order by created_at desc, id desc
         limit ?5"
    ))
    .bind(tenant.to_string())
    .bind(behind(page).0)
    .bind(behind(page).1)
    .bind(user.map(|user| user.to_string()))
    .bind(one_more(page))
    .fetch_all(executor)
    .await?;
    rows::all(&rows, rows::api_key)
}

/// Adds a key. False if there is one of its prefix.
pub(super) async fn add(conn: &mut SqliteConnection, key: &ApiKey) -> Result<bool, Error> {
    let added = sqlx::query(
        "insert into api_keys (id, tenant_id, user_id, name, prefix, secret_hash, created_at, \
             expires_at, revoked_at, last_used_at)
         values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         on conflict (prefix) do nothing",
    )
    .bind(key.id.to_string())
    .bind(key.tenant_id.to_string())
    .bind(key.user_id.to_string())
    .bind(&key.name)
    .bind(&key.prefix)
    .bind(key.secret_hash.as_slice())
    .bind(key.created_at.as_micros())
    .bind(key.expires_at.map(Timestamp::as_micros))
    .bind(key.revoked_at.map(Timestamp::as_micros))
    .bind(key.last_used_at.map(Timestamp::as_micros))
    .execute(conn)
    .await?;
    Ok(added.rows_affected() == 1)
}

pub(super) async fn revoke(
    conn: &mut SqliteConnection,
    key: ApiKeyId,
    now: Timestamp,
) -> Result<(), Error> {
    sqlx::query("update api_keys set revoked_at = ? where id = ? and revoked_at is null")
        .bind(now.as_micros())
        .bind(key.to_string())
        .execute(conn)
        .await?;
    Ok(())
}

pub(super) async fn touch(
    conn: &mut SqliteConnection,
    key: ApiKeyId,
    now: Timestamp,
) -> Result<(), Error> {
    sqlx::query("update api_keys set last_used_at = ? where id = ?")
        .bind(now.as_micros())
        .bind(key.to_string())
        .execute(conn)
        .await?;
    Ok(())
}
