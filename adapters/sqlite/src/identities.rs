//! Tenants, users and keys.

use std::time::Duration;

use async_trait::async_trait;
use hango_domain::access::Role;
use hango_domain::people::{ApiKey, Tenant, TenantStatus, User, UserStatus};
use hango_domain::{ApiKeyId, TenantId, Timestamp, UserId};
use hango_ports::audit_store::NewAudit;
use hango_ports::identity_store::{Credential, IdentityStore, IdentityStoreError, UserPatch};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteExecutor;

use crate::error::Error;
use crate::writer::Urgency;
use crate::{SqliteStore, audit, rows};

/// How exactly the last use of a key is known.
const TOUCH_EVERY: Duration = Duration::from_secs(60);

/// The columns of a user.
macro_rules! user_columns {
    () => {
        "id, tenant_id, email, name, role, status, created_at, updated_at"
    };
}

/// The columns of a key.
macro_rules! key_columns {
    () => {
        "id, tenant_id, user_id, name, prefix, secret_hash, created_at, expires_at, revoked_at, \
         last_used_at"
    };
}

async fn find_tenant<'e>(
    executor: impl SqliteExecutor<'e>,
    tenant: TenantId,
) -> Result<Option<Tenant>, Error> {
    let row = sqlx::query(
        "select id, slug, name, status, created_at, updated_at from tenants where id = ?",
    )
    .bind(tenant.to_string())
    .fetch_optional(executor)
    .await?;
    row.as_ref().map(rows::tenant).transpose()
}

async fn find_user<'e>(
    executor: impl SqliteExecutor<'e>,
    tenant: TenantId,
    user: UserId,
) -> Result<Option<User>, Error> {
    let row = sqlx::query(concat!(
        "select ",
        user_columns!(),
        " from users where id = ? and tenant_id = ?"
    ))
    .bind(user.to_string())
    .bind(tenant.to_string())
    .fetch_optional(executor)
    .await?;
    row.as_ref().map(rows::user).transpose()
}

/// Adds a user, dated `now`.
async fn add_user(
    conn: &mut SqliteConnection,
    user: User,
    now: Timestamp,
) -> Result<User, IdentityStoreError> {
    let user = User {
        created_at: now,
        updated_at: now,
        ..user
    };
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
    .bind(now.as_micros())
    .bind(now.as_micros())
    .execute(conn)
    .await
    .map_err(Error::from)?;
    match added.rows_affected() {
        0 => Err(IdentityStoreError::EmailTaken),
        _ => Ok(user),
    }
}

/// Adds a key, dated `now`.
async fn add_key(
    conn: &mut SqliteConnection,
    key: ApiKey,
    now: Timestamp,
) -> Result<ApiKey, IdentityStoreError> {
    let key = ApiKey {
        created_at: now,
        ..key
    };
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
    .bind(now.as_micros())
    .bind(key.expires_at.map(Timestamp::as_micros))
    .bind(key.revoked_at.map(Timestamp::as_micros))
    .bind(key.last_used_at.map(Timestamp::as_micros))
    .execute(conn)
    .await
    .map_err(Error::from)?;
    match added.rows_affected() {
        0 => Err(IdentityStoreError::PrefixTaken),
        _ => Ok(key),
    }
}

/// Whether the tenant has an active owner besides this user.
async fn has_other_owner(conn: &mut SqliteConnection, user: &User) -> Result<bool, Error> {
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

fn is_active_owner(user: &User) -> bool {
    user.role == Role::Owner && user.status == UserStatus::Active
}

#[async_trait]
impl IdentityStore for SqliteStore {
    async fn credential(&self, prefix: &str) -> Result<Option<Credential>, IdentityStoreError> {
        let mut conn = self.readers.acquire().await.map_err(Error::from)?;
        let row = sqlx::query(concat!(
            "select ",
            key_columns!(),
            " from api_keys where prefix = ?"
        ))
        .bind(prefix)
        .fetch_optional(&mut *conn)
        .await
        .map_err(Error::from)?;
        let Some(row) = row else {
            return Ok(None);
        };
        let key = rows::api_key(&row)?;
        let user = find_user(&mut *conn, key.tenant_id, key.user_id).await?;
        let tenant = find_tenant(&mut *conn, key.tenant_id).await?;
        Ok(user
            .zip(tenant)
            .map(|(user, tenant)| Credential { key, user, tenant }))
    }

    async fn touch(&self, key: ApiKeyId) -> Result<(), IdentityStoreError> {
        let unused_since = self.clock.now().minus(TOUCH_EVERY).as_micros();
        let stale: Option<String> = sqlx::query_scalar(
            "select id from api_keys
             where id = ? and (last_used_at is null or last_used_at <= ?)",
        )
        .bind(key.to_string())
        .bind(unused_since)
        .fetch_optional(&self.readers)
        .await
        .map_err(Error::from)?;
        // Most uses follow another one closely, and write nothing.
        let Some(stale) = stale else {
            return Ok(());
        };
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                sqlx::query("update api_keys set last_used_at = ? where id = ?")
                    .bind(clock.now().as_micros())
                    .bind(stale)
                    .execute(conn)
                    .await
                    .map_err(Error::from)?;
                Ok(())
            })
            .await
    }

    async fn create_tenant(
        &self,
        tenant: Tenant,
        owner: User,
        key: ApiKey,
        audit: NewAudit,
    ) -> Result<Credential, IdentityStoreError> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                let tenant = Tenant {
                    created_at: now,
                    updated_at: now,
                    ..tenant
                };
                let added = sqlx::query(
                    "insert into tenants (id, slug, name, status, created_at, updated_at)
                     values (?, ?, ?, ?, ?, ?)
                     on conflict (slug) do nothing",
                )
                .bind(tenant.id.to_string())
                .bind(&tenant.slug)
                .bind(&tenant.name)
                .bind(tenant.status.as_str())
                .bind(now.as_micros())
                .bind(now.as_micros())
                .execute(&mut *conn)
                .await
                .map_err(Error::from)?;
                if added.rows_affected() == 0 {
                    return Err(IdentityStoreError::SlugTaken);
                }
                let user = add_user(conn, owner, now).await?;
                let key = add_key(conn, key, now).await?;
                audit::note(conn, &audit, now).await?;
                Ok(Credential { key, user, tenant })
            })
            .await
    }

    async fn tenant(&self, slug: &str) -> Result<Option<Tenant>, IdentityStoreError> {
        let row = sqlx::query(
            "select id, slug, name, status, created_at, updated_at from tenants where slug = ?",
        )
        .bind(slug)
        .fetch_optional(&self.readers)
        .await
        .map_err(Error::from)?;
        Ok(row.as_ref().map(rows::tenant).transpose()?)
    }

    async fn tenants(&self) -> Result<Vec<Tenant>, IdentityStoreError> {
        let rows = sqlx::query(
            "select id, slug, name, status, created_at, updated_at from tenants
             order by created_at, id",
        )
        .fetch_all(&self.readers)
        .await
        .map_err(Error::from)?;
        Ok(rows::all(rows, rows::tenant)?)
    }

    async fn set_tenant_status(
        &self,
        tenant: TenantId,
        status: TenantStatus,
        audit: NewAudit,
    ) -> Result<Tenant, IdentityStoreError> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                let found = find_tenant(&mut *conn, tenant).await?;
                let tenant = Tenant {
                    status,
                    updated_at: now,
                    ..found.ok_or(IdentityStoreError::NotFound)?
                };
                sqlx::query("update tenants set status = ?, updated_at = ? where id = ?")
                    .bind(status.as_str())
                    .bind(now.as_micros())
                    .bind(tenant.id.to_string())
                    .execute(&mut *conn)
                    .await
                    .map_err(Error::from)?;
                audit::note(conn, &audit, now).await?;
                Ok(tenant)
            })
            .await
    }

    async fn create_user(&self, user: User, audit: NewAudit) -> Result<User, IdentityStoreError> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                let tenant = find_tenant(&mut *conn, user.tenant_id).await?;
                tenant.ok_or(IdentityStoreError::NotFound)?;
                let user = add_user(conn, user, now).await?;
                audit::note(conn, &audit, now).await?;
                Ok(user)
            })
            .await
    }

    async fn user(
        &self,
        tenant: TenantId,
        user: UserId,
    ) -> Result<Option<User>, IdentityStoreError> {
        Ok(find_user(&self.readers, tenant, user).await?)
    }

    async fn user_by_email(
        &self,
        tenant: TenantId,
        email: &str,
    ) -> Result<Option<User>, IdentityStoreError> {
        let row = sqlx::query(concat!(
            "select ",
            user_columns!(),
            " from users where tenant_id = ? and email = ?"
        ))
        .bind(tenant.to_string())
        .bind(email)
        .fetch_optional(&self.readers)
        .await
        .map_err(Error::from)?;
        Ok(row.as_ref().map(rows::user).transpose()?)
    }

    async fn update_user(
        &self,
        tenant: TenantId,
        user: UserId,
        patch: UserPatch,
        audit: NewAudit,
    ) -> Result<User, IdentityStoreError> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                let found = find_user(&mut *conn, tenant, user).await?;
                let before = found.ok_or(IdentityStoreError::NotFound)?;
                let after = User {
                    name: patch.name.unwrap_or_else(|| before.name.clone()),
                    role: patch.role.unwrap_or(before.role),
                    status: patch.status.unwrap_or(before.status),
                    updated_at: now,
                    ..before.clone()
                };
                let steps_down = is_active_owner(&before) && !is_active_owner(&after);
                if steps_down && !has_other_owner(conn, &before).await? {
                    return Err(IdentityStoreError::LastOwner);
                }
                sqlx::query(
                    "update users set name = ?, role = ?, status = ?, updated_at = ? where id = ?",
                )
                .bind(&after.name)
                .bind(after.role.as_str())
                .bind(after.status.as_str())
                .bind(now.as_micros())
                .bind(after.id.to_string())
                .execute(&mut *conn)
                .await
                .map_err(Error::from)?;
                audit::note(conn, &audit, now).await?;
                Ok(after)
            })
            .await
    }

    async fn create_key(&self, key: ApiKey, audit: NewAudit) -> Result<ApiKey, IdentityStoreError> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                let user = find_user(&mut *conn, key.tenant_id, key.user_id).await?;
                user.ok_or(IdentityStoreError::NotFound)?;
                let key = add_key(conn, key, now).await?;
                audit::note(conn, &audit, now).await?;
                Ok(key)
            })
            .await
    }

    async fn keys(
        &self,
        tenant: TenantId,
        user: Option<UserId>,
    ) -> Result<Vec<ApiKey>, IdentityStoreError> {
        let rows = sqlx::query(concat!(
            "select ",
            key_columns!(),
            " from api_keys
             where tenant_id = ?1 and (?2 is null or user_id = ?2)
             order by created_at desc, id desc"
        ))
        .bind(tenant.to_string())
        .bind(user.map(|user| user.to_string()))
        .fetch_all(&self.readers)
        .await
        .map_err(Error::from)?;
        Ok(rows::all(rows, rows::api_key)?)
    }

    async fn revoke_key(&self, key: ApiKeyId, audit: NewAudit) -> Result<(), IdentityStoreError> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                let revoked: Option<Option<i64>> =
                    sqlx::query_scalar("select revoked_at from api_keys where id = ?")
                        .bind(key.to_string())
                        .fetch_optional(&mut *conn)
                        .await
                        .map_err(Error::from)?;
                if revoked.ok_or(IdentityStoreError::NotFound)?.is_some() {
                    return Ok(());
                }
                sqlx::query(
                    "update api_keys set revoked_at = ? where id = ? and revoked_at is null",
                )
                .bind(now.as_micros())
                .bind(key.to_string())
                .execute(&mut *conn)
                .await
                .map_err(Error::from)?;
                audit::note(conn, &audit, now).await?;
                Ok(())
            })
            .await
    }
}
