//! Tenants, users and keys: the port. Its statements are in the modules of their tables.

mod keys;
mod tenants;
mod users;

use async_trait::async_trait;
use hango_domain::access::Scope;
use hango_domain::people::{ApiKey, Tenant, TenantStatus, User};
use hango_domain::{ApiKeyId, TenantId, UserId};
use hango_ports::audit_store::NewAudit;
use hango_ports::identity_store::{Credential, IdentityStore, IdentityStoreError, UserPatch};
use hango_ports::page::{Page, PageRequest, Position};

use crate::error::Error;
use crate::writer::Urgency;
use crate::{SqliteStore, audit};

type Answer<T> = Result<T, IdentityStoreError>;

#[async_trait]
impl IdentityStore for SqliteStore {
    async fn credential(&self, prefix: &str) -> Answer<Option<Credential>> {
        let mut conn = self.readers.acquire().await.map_err(Error::from)?;
        let Some(key) = keys::find_by_prefix(&mut *conn, prefix).await? else {
            return Ok(None);
        };
        let user = users::find(&mut *conn, key.tenant_id, key.user_id).await?;
        let tenant = tenants::find(&mut *conn, key.tenant_id).await?;
        Ok(user
            .zip(tenant)
            .map(|(user, tenant)| Credential { key, user, tenant }))
    }

    async fn touch(&self, key: ApiKeyId) -> Answer<()> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                Ok(keys::touch(conn, key, clock.now()).await?)
            })
            .await
    }

    async fn create_tenant(
        &self,
        tenant: Tenant,
        owner: User,
        key: ApiKey,
        audit: NewAudit,
    ) -> Answer<Credential> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                let tenant = Tenant {
                    created_at: now,
                    updated_at: now,
                    ..tenant
                };
                let user = User {
                    created_at: now,
                    updated_at: now,
                    ..owner
                };
                let key = ApiKey {
                    created_at: now,
                    ..key
                };
                if !tenants::add(conn, &tenant).await? {
                    return Err(IdentityStoreError::SlugTaken);
                }
                if !users::add(conn, &user).await? {
                    return Err(IdentityStoreError::EmailTaken);
                }
                if !keys::add(conn, &key).await? {
                    return Err(IdentityStoreError::PrefixTaken);
                }
                audit::note(conn, &audit, now).await?;
                Ok(Credential { key, user, tenant })
            })
            .await
    }

    async fn tenant(&self, tenant: TenantId) -> Answer<Option<Tenant>> {
        Ok(tenants::find(&self.readers, tenant).await?)
    }

    async fn tenant_by_slug(&self, slug: &str) -> Answer<Option<Tenant>> {
        Ok(tenants::find_by_slug(&self.readers, slug).await?)
    }

    async fn tenants(&self, page: PageRequest) -> Answer<Page<Tenant>> {
        let found = tenants::list(&self.readers, page).await?;
        Ok(Page::of(found, page.limit, |tenant| Position {
            at: tenant.created_at,
            id: tenant.id.0,
        }))
    }

    async fn set_tenant_status(
        &self,
        tenant: TenantId,
        status: TenantStatus,
        audit: NewAudit,
    ) -> Answer<Tenant> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                let found = tenants::find(&mut *conn, tenant).await?;
                let found = found.ok_or(IdentityStoreError::NotFound)?;
                tenants::set_status(conn, tenant, status, now).await?;
                audit::note(conn, &audit, now).await?;
                Ok(Tenant {
                    status,
                    updated_at: now,
                    ..found
                })
            })
            .await
    }

    async fn create_user(&self, user: User, audit: NewAudit) -> Answer<User> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                let user = User {
                    created_at: now,
                    updated_at: now,
                    ..user
                };
                let tenant = tenants::find(&mut *conn, user.tenant_id).await?;
                tenant.ok_or(IdentityStoreError::NotFound)?;
                if !users::add(conn, &user).await? {
                    return Err(IdentityStoreError::EmailTaken);
                }
                audit::note(conn, &audit, now).await?;
                Ok(user)
            })
            .await
    }

    async fn user(&self, tenant: TenantId, user: UserId) -> Answer<Option<User>> {
        Ok(users::find(&self.readers, tenant, user).await?)
    }

    async fn user_by_email(&self, tenant: TenantId, email: &str) -> Answer<Option<User>> {
        Ok(users::find_by_email(&self.readers, tenant, email).await?)
    }

    async fn users(
        &self,
        tenant: TenantId,
        only: Option<UserId>,
        page: PageRequest,
    ) -> Answer<Page<User>> {
        let found = users::list(&self.readers, tenant, only, page).await?;
        Ok(Page::of(found, page.limit, |user| Position {
            at: user.created_at,
            id: user.id.0,
        }))
    }

    async fn update_user(
        &self,
        by: Option<Scope>,
        tenant: TenantId,
        user: UserId,
        patch: UserPatch,
        audit: NewAudit,
    ) -> Answer<User> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                let found = users::find(&mut *conn, tenant, user).await?;
                let before = found.ok_or(IdentityStoreError::NotFound)?;
                if by.is_some_and(|by| !by.may_change(&before, patch.role, patch.status)) {
                    return Err(IdentityStoreError::Forbidden);
                }
                let after = patch.applied_to(before.clone(), now);
                let steps_down = before.is_active_owner() && !after.is_active_owner();
                if steps_down && !users::has_other_owner(conn, &before).await? {
                    return Err(IdentityStoreError::LastOwner);
                }
                // First: who changes himself may do so as he was.
                audit::note(conn, &audit, now).await?;
                users::store(conn, &after).await?;
                Ok(after)
            })
            .await
    }

    async fn create_key(&self, by: Option<Scope>, key: ApiKey, audit: NewAudit) -> Answer<ApiKey> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                let key = ApiKey {
                    created_at: now,
                    ..key
                };
                let user = users::find(&mut *conn, key.tenant_id, key.user_id).await?;
                let user = user.ok_or(IdentityStoreError::NotFound)?;
                if by.is_some_and(|by| !by.may_act_for(&user)) {
                    return Err(IdentityStoreError::Forbidden);
                }
                if !keys::add(conn, &key).await? {
                    return Err(IdentityStoreError::PrefixTaken);
                }
                audit::note(conn, &audit, now).await?;
                Ok(key)
            })
            .await
    }

    async fn key(&self, tenant: TenantId, key: ApiKeyId) -> Answer<Option<ApiKey>> {
        Ok(keys::find(&self.readers, tenant, key).await?)
    }

    async fn key_of_any_tenant(&self, key: ApiKeyId) -> Answer<Option<ApiKey>> {
        Ok(keys::find_anywhere(&self.readers, key).await?)
    }

    async fn keys(
        &self,
        tenant: TenantId,
        user: Option<UserId>,
        page: PageRequest,
    ) -> Answer<Page<ApiKey>> {
        let found = keys::list(&self.readers, tenant, user, page).await?;
        Ok(Page::of(found, page.limit, |key| Position {
            at: key.created_at,
            id: key.id.0,
        }))
    }

    async fn revoke_key(&self, tenant: TenantId, key: ApiKeyId, audit: NewAudit) -> Answer<()> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                let found = keys::find(&mut *conn, tenant, key).await?;
                let found = found.ok_or(IdentityStoreError::NotFound)?;
                if found.revoked_at.is_none() {
                    // First: a key may revoke itself.
                    audit::note(conn, &audit, now).await?;
                    keys::revoke(conn, key, now).await?;
                }
                Ok(())
            })
            .await
    }
}
