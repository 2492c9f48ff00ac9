//! Rows of `tenants`, `users` and `api_keys`.

use hango_domain::people::{ApiKey, Tenant, User};
use sqlx::sqlite::SqliteRow;

use super::Columns;
use crate::error::Error;

/// A tenant.
pub(crate) fn tenant(row: &SqliteRow) -> Result<Tenant, Error> {
    let columns = Columns::new(row, "tenants", "id");
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
pub(crate) fn user(row: &SqliteRow) -> Result<User, Error> {
    let columns = Columns::new(row, "users", "id");
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
pub(crate) fn api_key(row: &SqliteRow) -> Result<ApiKey, Error> {
    let columns = Columns::new(row, "api_keys", "id");
    let secret_hash: Vec<u8> = columns.get("secret_hash")?;
    Ok(ApiKey {
        id: columns.id("id")?,
        tenant_id: columns.id("tenant_id")?,
        user_id: columns.id("user_id")?,
        name: columns.get("name")?,
        prefix: columns.get("prefix")?,
        secret_hash: columns.parsed("secret_hash", secret_hash.as_slice().try_into())?,
        created_at: columns.time("created_at")?,
        expires_at: columns.maybe_time("expires_at")?,
        revoked_at: columns.maybe_time("revoked_at")?,
        last_used_at: columns.maybe_time("last_used_at")?,
    })
}
