//! The statements on `api_keys`.

use chrono::{DateTime, Utc};
use hango_domain::people::ApiKey;
use hango_domain::{ApiKeyId, TenantId, UserId};
use hango_ports::audit_store::NewAudit;
use hango_ports::page::PageRequest;
use sqlx::PgConnection;

use crate::audit::{document, keep};
use crate::error::Error;
use crate::pages::{behind, one_more};
use crate::rows::moment;
use crate::statement::{Scalar, Statement};

/// The columns of a key.
macro_rules! columns {
    () => {
        "id, tenant_id, user_id, name, prefix, secret_hash, created_at, expires_at, revoked_at, \
         last_used_at"
    };
}

/// A key with its user and tenant: one question for each request that comes in.
pub(super) fn credential(prefix: &str) -> Statement {
    sqlx::query(
        "select k.id, k.tenant_id, k.user_id, k.name, k.prefix, k.secret_hash, k.created_at, \
             k.expires_at, k.revoked_at, k.last_used_at,
             u.tenant_id as user_tenant_id, u.email as user_email, u.name as user_name, \
             u.role as user_role, u.status as user_status, u.created_at as user_created_at, u.updated_at as user_updated_at,
             t.slug as tenant_slug, t.name as tenant_name, \
             t.status as tenant_status, t.created_at as tenant_created_at, \
             t.updated_at as tenant_updated_at
         from api_keys k
         join users u on u.id = k.user_id and u.tenant_id = k.tenant_id
         join tenants t on t.id = k.tenant_id
         where k.prefix = $1",
    )
    .bind(prefix)
}

pub(super) fn find(tenant: TenantId, key: ApiKeyId) -> Statement {
    sqlx::query(concat!(
        "select ",
        columns!(),
        " from api_keys where id = $1 and tenant_id = $2"
    ))
    .bind(key.0)
    .bind(tenant.0)
}

pub(super) fn find_anywhere(key: ApiKeyId) -> Statement {
    sqlx::query(concat!(
        "select ",
        columns!(),
        " from api_keys where id = $1"
    ))
    .bind(key.0)
}

/// The keys of a tenant, or of one user of it, newest first.
pub(super) fn list(tenant: TenantId, user: Option<UserId>, page: PageRequest) -> Statement {
    sqlx::query(concat!(
        "select ",
        columns!(),
        " from api_keys
         where tenant_id = $1
           and (created_at, id) < ($2, $3)
           and ($4::uuid is null or user_id = $4)
         order by created_at desc, id desc
         limit $5"
    ))
    .bind(tenant.0)
    .bind(behind(page).0)
    .bind(behind(page).1)
    .bind(user.map(|user| user.0))
    .bind(one_more(page))
}

/// Adds a key. False if there is one of its prefix.
pub(super) async fn add(conn: &mut PgConnection, key: &ApiKey) -> Result<bool, Error> {
    let added = sqlx::query(
        "insert into api_keys (id, tenant_id, user_id, name, prefix, secret_hash, created_at, \
             expires_at, revoked_at, last_used_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         on conflict (prefix) do nothing",
    )
    .bind(key.id.0)
    .bind(key.tenant_id.0)
    .bind(key.user_id.0)
    .bind(&key.name)
    .bind(&key.prefix)
    .bind(key.secret_hash.as_slice())
    .bind(moment(key.created_at))
    .bind(key.expires_at.map(moment))
    .bind(key.revoked_at.map(moment))
    .bind(key.last_used_at.map(moment))
    .execute(conn)
    .await?;
    Ok(added.rows_affected() == 1)
}

/// Revokes a key that is not yet; tells whether there is one. Who acts is asked first: a key may revoke
/// itself.
pub(super) fn revoke(
    tenant: TenantId,
    key: ApiKeyId,
    audit: &NewAudit,
    given: Option<DateTime<Utc>>,
) -> Scalar<bool> {
    sqlx::query_scalar(concat!(
        "with acting as materialized (select acting_key($2, coalesce($1, now())) as key),
         revoked as (
             update api_keys set revoked_at = coalesce($1, now())
             from acting
             where id = $3 and tenant_id = $4 and revoked_at is null
             returning revoked_at, acting.key as acting_key
         ),
         noted as (",
        keep!("$2", "revoked_at", "revoked", "acting_key", "audit.detail"),
        ")
         select exists (select from api_keys where id = $3 and tenant_id = $4)"
    ))
    .bind(given)
    .bind(document(audit))
    .bind(key.0)
    .bind(tenant.0)
}

pub(super) fn touch(key: ApiKeyId, given: Option<DateTime<Utc>>) -> Statement {
    sqlx::query("update api_keys set last_used_at = coalesce($2, now()) where id = $1")
        .bind(key.0)
        .bind(given)
}
