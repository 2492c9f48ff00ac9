//! The statements on `api_keys`.

use chrono::{DateTime, Utc};
use hango_domain::people::ApiKey;
use hango_domain::{ApiKeyId, TenantId, UserId};
use hango_ports::audit_store::NewAudit;
use sqlx::PgConnection;

use crate::audit::{document, note};
use crate::error::Error;
use crate::rows::moment;
use crate::statement::{Scalar, Statement};

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

/// The keys of a tenant, or of one user of it, newest first.
pub(super) fn list(tenant: TenantId, user: Option<UserId>) -> Statement {
    sqlx::query(
        "select id, tenant_id, user_id, name, prefix, secret_hash, created_at, expires_at, \
             revoked_at, last_used_at
         from api_keys
         where tenant_id = $1 and ($2::uuid is null or user_id = $2)
         order by created_at desc, id desc",
    )
    .bind(tenant.0)
    .bind(user.map(|user| user.0))
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

/// Revokes a key that is not yet; tells whether there is one.
pub(super) fn revoke(
    key: ApiKeyId,
    audit: &NewAudit,
    given: Option<DateTime<Utc>>,
) -> Scalar<bool> {
    sqlx::query_scalar(concat!(
        "with revoked as (
             update api_keys set revoked_at = coalesce($1, now())
             where id = $3 and revoked_at is null
             returning revoked_at
         ),
         noted as (",
        note!("$2", "revoked_at", "revoked"),
        ")
         select exists (select from api_keys where id = $3)"
    ))
    .bind(given)
    .bind(document(audit))
    .bind(key.0)
}

pub(super) fn touch(key: ApiKeyId, given: Option<DateTime<Utc>>) -> Statement {
    sqlx::query("update api_keys set last_used_at = coalesce($2, now()) where id = $1")
        .bind(key.0)
        .bind(given)
}
