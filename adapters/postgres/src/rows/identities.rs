//! Rows of `tenants`, `users` and `api_keys`.

use hango_domain::people::{ApiKey, Tenant, User};
use hango_ports::identity_store::Credential;
use sqlx::postgres::PgRow;

use super::Columns;
use crate::error::Error;

/// A tenant.
pub(crate) fn tenant(row: &PgRow) -> Result<Tenant, Error> {
    tenant_of(&Columns::new(row, "tenants", "id"))
}

fn tenant_of(columns: &Columns<'_>) -> Result<Tenant, Error> {
    Ok(Tenant {
        id: columns.id("id")?,
        slug: columns.get("slug")?,
        name: columns.get("name")?,
        status: columns.word("status")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
    })
}

/// A user.
pub(crate) fn user(row: &PgRow) -> Result<User, Error> {
    user_of(&Columns::new(row, "users", "id"))
}

fn user_of(columns: &Columns<'_>) -> Result<User, Error> {
    Ok(User {
        id: columns.id("id")?,
        tenant_id: columns.id("tenant_id")?,
        email: columns.get("email")?,
        name: columns.get("name")?,
        role: columns.word("role")?,
        status: columns.word("status")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
    })
}

/// A key.
pub(crate) fn api_key(row: &PgRow) -> Result<ApiKey, Error> {
    let columns = Columns::new(row, "api_keys", "id");
    let secret_hash: &[u8] = columns.get("secret_hash")?;
    Ok(ApiKey {
        id: columns.id("id")?,
        tenant_id: columns.id("tenant_id")?,
        user_id: columns.id("user_id")?,
        name: columns.get("name")?,
        prefix: columns.get("prefix")?,
        secret_hash: columns.parsed("secret_hash", secret_hash.try_into())?,
        created_at: columns.time("created_at")?,
        expires_at: columns.maybe_time("expires_at")?,
        revoked_at: columns.maybe_time("revoked_at")?,
        last_used_at: columns.maybe_time("last_used_at")?,
    })
}

/// A key, joined with its user (`user_…`) and tenant (`tenant_…`).
pub(crate) fn credential(row: &PgRow) -> Result<Credential, Error> {
    Ok(Credential {
        key: api_key(row)?,
        user: user_of(&Columns::new(row, "users", "id").prefixed("user_"))?,
        tenant: tenant_of(&Columns::new(row, "tenants", "id").prefixed("tenant_"))?,
    })
}
