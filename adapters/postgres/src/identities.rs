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
use crate::{PostgresStore, audit, rows};

type Answer<T> = Result<T, IdentityStoreError>;

#[async_trait]
impl IdentityStore for PostgresStore {
    async fn credential(&self, prefix: &str) -> Answer<Option<Credential>> {
        let prefix = prefix.to_owned();
        self.pool
            .read(move |conn| {
                let query = keys::credential(&prefix);
                Box::pin(async {
                    let row = query.fetch_optional(conn).await.map_err(Error::from)?;
                    Ok(row.as_ref().map(rows::credential).transpose()?)
                })
            })
            .await
    }

    async fn touch(&self, key: ApiKeyId) -> Answer<()> {
        let given = self.clock.given();
        self.pool
            .run(move |conn| {
                let query = keys::touch(key, given);
                Box::pin(async {
                    query.execute(conn).await.map_err(Error::from)?;
                    Ok(())
                })
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
        self.pool
            .transact(move |conn| {
                let (clock, audit) = (clock.clone(), audit.clone());
                let (tenant, owner, key) = (tenant.clone(), owner.clone(), key.clone());
                Box::pin(async move {
                    let now = clock.ask(conn).await?;
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
                    audit::add(conn, &audit, now).await?;
                    Ok(Credential { key, user, tenant })
                })
            })
            .await
    }

    async fn tenant(&self, tenant: TenantId) -> Answer<Option<Tenant>> {
        self.pool
            .read(move |conn| {
                let query = tenants::find(tenant);
                Box::pin(async {
                    let row = query.fetch_optional(conn).await.map_err(Error::from)?;
                    Ok(row.as_ref().map(rows::tenant).transpose()?)
                })
            })
            .await
    }

    async fn tenant_by_slug(&self, slug: &str) -> Answer<Option<Tenant>> {
        let slug = slug.to_owned();
        self.pool
            .read(move |conn| {
                let query = tenants::find_by_slug(&slug);
                Box::pin(async {
                    let row = query.fetch_optional(conn).await.map_err(Error::from)?;
                    Ok(row.as_ref().map(rows::tenant).transpose()?)
                })
            })
            .await
    }

    async fn tenants(&self, page: PageRequest) -> Answer<Page<Tenant>> {
        let found = self.pool.read(move |conn| {
            let query = tenants::list(page);
            Box::pin(async { rows::all(&query.fetch_all(conn).await?, rows::tenant) })
        });
        Ok(Page::of(found.await?, page.limit, |tenant: &Tenant| {
            Position {
                at: tenant.created_at,
                id: tenant.id.0,
            }
        }))
    }

    async fn set_tenant_status(
        &self,
        tenant: TenantId,
        status: TenantStatus,
        audit: NewAudit,
    ) -> Answer<Tenant> {
        let given = self.clock.given();
        self.pool
            .run(move |conn| {
                let query = tenants::set_status(tenant, status, &audit, given);
                Box::pin(async {
                    let row = query.fetch_optional(conn).await.map_err(Error::from)?;
                    let row = row.ok_or(IdentityStoreError::NotFound)?;
                    Ok(rows::tenant(&row)?)
                })
            })
            .await
    }

    async fn create_user(&self, user: User, audit: NewAudit) -> Answer<User> {
        let clock = self.clock.clone();
        self.pool
            .transact(move |conn| {
                let (clock, user, audit) = (clock.clone(), user.clone(), audit.clone());
                Box::pin(async move {
                    if !tenants::lock(conn, user.tenant_id).await? {
                        return Err(IdentityStoreError::NotFound);
                    }
                    let now = clock.ask(conn).await?;
                    let user = User {
                        created_at: now,
                        updated_at: now,
                        ..user
                    };
                    if !users::add(conn, &user).await? {
                        return Err(IdentityStoreError::EmailTaken);
                    }
                    audit::add(conn, &audit, now).await?;
                    Ok(user)
                })
            })
            .await
    }

    async fn user(&self, tenant: TenantId, user: UserId) -> Answer<Option<User>> {
        self.pool
            .read(move |conn| Box::pin(async move { Ok(users::find(conn, tenant, user).await?) }))
            .await
    }

    async fn user_by_email(&self, tenant: TenantId, email: &str) -> Answer<Option<User>> {
        let email = email.to_owned();
        self.pool
            .read(move |conn| {
                let query = users::find_by_email(tenant, &email);
                Box::pin(async {
                    let row = query.fetch_optional(conn).await.map_err(Error::from)?;
                    Ok(row.as_ref().map(rows::user).transpose()?)
                })
            })
            .await
    }

    async fn users(
        &self,
        tenant: TenantId,
        only: Option<UserId>,
        page: PageRequest,
    ) -> Answer<Page<User>> {
        let found = self.pool.read(move |conn| {
            let query = users::list(tenant, only, page);
            Box::pin(async { rows::all(&query.fetch_all(conn).await?, rows::user) })
        });
        Ok(Page::of(found.await?, page.limit, |user: &User| Position {
            at: user.created_at,
            id: user.id.0,
        }))
    }

    /// All changes of a tenant's users wait for each other at its row: the last active owner is told
    /// from rows of several users, which no lock on one of them would hold.
    async fn update_user(
        &self,
        by: Option<Scope>,
        tenant: TenantId,
        user: UserId,
        patch: UserPatch,
        audit: NewAudit,
    ) -> Answer<User> {
        let clock = self.clock.clone();
        self.pool
            .transact(move |conn| {
                let (clock, patch, audit) = (clock.clone(), patch.clone(), audit.clone());
                Box::pin(async move {
                    tenants::lock(conn, tenant).await?;
                    let found = users::find(conn, tenant, user).await?;
                    let before = found.ok_or(IdentityStoreError::NotFound)?;
                    if by.is_some_and(|by| !by.may_change(&before, patch.role, patch.status)) {
                        return Err(IdentityStoreError::Forbidden);
                    }
                    let now = clock.ask(conn).await?;
                    let after = patch.applied_to(before.clone(), now);
                    let steps_down = before.is_active_owner() && !after.is_active_owner();
                    if steps_down && !users::has_other_owner(conn, &before).await? {
                        return Err(IdentityStoreError::LastOwner);
                    }
                    // First: who changes himself may do so as he was.
                    audit::add(conn, &audit, now).await?;
                    users::store(conn, &after).await?;
                    Ok(after)
                })
            })
            .await
    }

    async fn create_key(&self, by: Option<Scope>, key: ApiKey, audit: NewAudit) -> Answer<ApiKey> {
        let clock = self.clock.clone();
        self.pool
            .transact(move |conn| {
                let (clock, key, audit) = (clock.clone(), key.clone(), audit.clone());
                Box::pin(async move {
                    // Whoever changes users holds it too: what is found of them stays so.
                    tenants::lock(conn, key.tenant_id).await?;
                    let user = users::find(conn, key.tenant_id, key.user_id).await?;
                    let user = user.ok_or(IdentityStoreError::NotFound)?;
                    if by.is_some_and(|by| !by.may_act_for(&user)) {
                        return Err(IdentityStoreError::Forbidden);
                    }
                    let now = clock.ask(conn).await?;
                    let key = ApiKey {
                        created_at: now,
                        ..key
                    };
                    if !keys::add(conn, &key).await? {
                        return Err(IdentityStoreError::PrefixTaken);
                    }
                    audit::add(conn, &audit, now).await?;
                    Ok(key)
                })
            })
            .await
    }

    async fn key(&self, tenant: TenantId, key: ApiKeyId) -> Answer<Option<ApiKey>> {
        self.pool
            .read(move |conn| {
                let query = keys::find(tenant, key);
                Box::pin(async {
                    let row = query.fetch_optional(conn).await.map_err(Error::from)?;
                    Ok(row.as_ref().map(rows::api_key).transpose()?)
                })
            })
            .await
    }

    async fn key_of_any_tenant(&self, key: ApiKeyId) -> Answer<Option<ApiKey>> {
        self.pool
            .read(move |conn| {
                let query = keys::find_anywhere(key);
                Box::pin(async {
                    let row = query.fetch_optional(conn).await.map_err(Error::from)?;
                    Ok(row.as_ref().map(rows::api_key).transpose()?)
                })
            })
            .await
    }

    async fn keys(
        &self,
        tenant: TenantId,
        user: Option<UserId>,
        page: PageRequest,
    ) -> Answer<Page<ApiKey>> {
        let found = self.pool.read(move |conn| {
            let query = keys::list(tenant, user, page);
            Box::pin(async { rows::all(&query.fetch_all(conn).await?, rows::api_key) })
        });
        Ok(Page::of(found.await?, page.limit, |key: &ApiKey| {
            Position {
                at: key.created_at,
                id: key.id.0,
            }
        }))
    }

    async fn revoke_key(&self, tenant: TenantId, key: ApiKeyId, audit: NewAudit) -> Answer<()> {
        let given = self.clock.given();
        self.pool
            .run(move |conn| {
                let query = keys::revoke(tenant, key, &audit, given);
                Box::pin(async {
                    let is_there: bool = query.fetch_one(conn).await.map_err(Error::from)?;
                    if is_there {
                        Ok(())
                    } else {
                        Err(IdentityStoreError::NotFound)
                    }
                })
            })
            .await
    }
}
