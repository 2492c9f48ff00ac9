//! Tenants, users and keys.

use async_trait::async_trait;
use hango_domain::access::Scope;
use hango_domain::people::{ApiKey, Tenant, TenantStatus, User};
use hango_domain::{ApiKeyId, TenantId, UserId};
use hango_ports::audit_store::NewAudit;
use hango_ports::identity_store::{Credential, IdentityStore, IdentityStoreError, UserPatch};
use hango_ports::page::{Page, PageRequest, Position};

use crate::MemoryStore;
use crate::pages::page;
use crate::state::State;

type Answer<T> = Result<T, IdentityStoreError>;

#[async_trait]
impl IdentityStore for MemoryStore {
    async fn credential(&self, prefix: &str) -> Answer<Option<Credential>> {
        let state = self.lock();
        let key = state.keys.values().find(|key| key.prefix == prefix);
        Ok(key.and_then(|key| {
            Some(Credential {
                key: key.clone(),
                user: state.users.get(&key.user_id)?.clone(),
                tenant: state.tenants.get(&key.tenant_id)?.clone(),
            })
        }))
    }

    async fn touch(&self, key: ApiKeyId) -> Answer<()> {
        let now = self.clock.now();
        if let Some(key) = self.lock().keys.get_mut(&key) {
            key.last_used_at = Some(now);
        }
        Ok(())
    }

    async fn create_tenant(
        &self,
        tenant: Tenant,
        owner: User,
        key: ApiKey,
        audit: NewAudit,
    ) -> Answer<Credential> {
        let mut state = self.lock();
        if state.tenants.values().any(|it| it.slug == tenant.slug) {
            return Err(IdentityStoreError::SlugTaken);
        }
        state.free_prefix(&key)?;
        let now = self.clock.now();
        let made = Credential {
            key: ApiKey {
                created_at: now,
                ..key
            },
            user: User {
                created_at: now,
                updated_at: now,
                ..owner
            },
            tenant: Tenant {
                created_at: now,
                updated_at: now,
                ..tenant
            },
        };
        state.note(audit, now)?;
        state.tenants.insert(made.tenant.id, made.tenant.clone());
        state.users.insert(made.user.id, made.user.clone());
        state.keys.insert(made.key.id, made.key.clone());
        Ok(made)
    }

    async fn tenant(&self, tenant: TenantId) -> Answer<Option<Tenant>> {
        Ok(self.lock().tenants.get(&tenant).cloned())
    }

    async fn tenant_by_slug(&self, slug: &str) -> Answer<Option<Tenant>> {
        let state = self.lock();
        let found = state.tenants.values().find(|tenant| tenant.slug == slug);
        Ok(found.cloned())
    }

    async fn tenants(&self, request: PageRequest) -> Answer<Page<Tenant>> {
        let all = self.lock().tenants.values().cloned().collect();
        Ok(page(all, request, |tenant: &Tenant| Position {
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
        let mut state = self.lock();
        let now = self.clock.now();
        let found = state.tenants.get(&tenant).cloned();
        let tenant = Tenant {
            status,
            updated_at: now,
            ..found.ok_or(IdentityStoreError::NotFound)?
        };
        state.note(audit, now)?;
        state.tenants.insert(tenant.id, tenant.clone());
        Ok(tenant)
    }

    async fn create_user(&self, user: User, audit: NewAudit) -> Answer<User> {
        let mut state = self.lock();
        if !state.tenants.contains_key(&user.tenant_id) {
            return Err(IdentityStoreError::NotFound);
        }
        if state.user_by_email(user.tenant_id, &user.email).is_some() {
            return Err(IdentityStoreError::EmailTaken);
        }
        let now = self.clock.now();
        let user = User {
            created_at: now,
            updated_at: now,
            ..user
        };
        state.note(audit, now)?;
        state.users.insert(user.id, user.clone());
        Ok(user)
    }

    async fn user(&self, tenant: TenantId, user: UserId) -> Answer<Option<User>> {
        Ok(self.lock().user(tenant, user).cloned())
    }

    async fn user_by_email(&self, tenant: TenantId, email: &str) -> Answer<Option<User>> {
        Ok(self.lock().user_by_email(tenant, email).cloned())
    }

    async fn users(
        &self,
        tenant: TenantId,
        only: Option<UserId>,
        request: PageRequest,
    ) -> Answer<Page<User>> {
        let state = self.lock();
        let asked = |user: &&User| user.tenant_id == tenant && only.is_none_or(|it| user.id == it);
        let users = state.users.values().filter(asked).cloned().collect();
        Ok(page(users, request, |user: &User| Position {
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
        let mut state = self.lock();
        let before = state.user(tenant, user).cloned();
        let before = before.ok_or(IdentityStoreError::NotFound)?;
        if by.is_some_and(|by| !by.may_change(&before, patch.role, patch.status)) {
            return Err(IdentityStoreError::Forbidden);
        }
        let now = self.clock.now();
        let after = patch.applied_to(before.clone(), now);
        if before.is_active_owner() && !after.is_active_owner() && state.owners(tenant) == 1 {
            return Err(IdentityStoreError::LastOwner);
        }
        state.note(audit, now)?;
        state.users.insert(user, after.clone());
        Ok(after)
    }

    async fn create_key(&self, by: Option<Scope>, key: ApiKey, audit: NewAudit) -> Answer<ApiKey> {
        let mut state = self.lock();
        let user = state.user(key.tenant_id, key.user_id);
        let user = user.ok_or(IdentityStoreError::NotFound)?;
        if by.is_some_and(|by| !by.may_act_for(user)) {
            return Err(IdentityStoreError::Forbidden);
        }
        state.free_prefix(&key)?;
        let now = self.clock.now();
        let key = ApiKey {
            created_at: now,
            ..key
        };
        state.note(audit, now)?;
        state.keys.insert(key.id, key.clone());
        Ok(key)
    }

    async fn key(&self, tenant: TenantId, key: ApiKeyId) -> Answer<Option<ApiKey>> {
        let state = self.lock();
        let found = state.keys.get(&key);
        Ok(found.filter(|key| key.tenant_id == tenant).cloned())
    }

    async fn key_of_any_tenant(&self, key: ApiKeyId) -> Answer<Option<ApiKey>> {
        Ok(self.lock().keys.get(&key).cloned())
    }

    async fn keys(
        &self,
        tenant: TenantId,
        user: Option<UserId>,
        request: PageRequest,
    ) -> Answer<Page<ApiKey>> {
        let state = self.lock();
        let asked =
            |key: &&ApiKey| key.tenant_id == tenant && user.is_none_or(|it| key.user_id == it);
        let keys = state.keys.values().filter(asked).cloned().collect();
        Ok(page(keys, request, |key: &ApiKey| Position {
            at: key.created_at,
            id: key.id.0,
        }))
    }

    async fn revoke_key(&self, tenant: TenantId, key: ApiKeyId, audit: NewAudit) -> Answer<()> {
        let mut state = self.lock();
        let now = self.clock.now();
        let found = state.keys.get(&key).cloned();
        let key = found
            .filter(|key| key.tenant_id == tenant)
            .ok_or(IdentityStoreError::NotFound)?;
        if key.revoked_at.is_none() {
            state.note(audit, now)?;
            let revoked_at = Some(now);
            state.keys.insert(key.id, ApiKey { revoked_at, ..key });
        }
        Ok(())
    }
}

impl State {
    fn user(&self, tenant: TenantId, user: UserId) -> Option<&User> {
        let found = self.users.get(&user);
        found.filter(|user| user.tenant_id == tenant)
    }

    fn user_by_email(&self, tenant: TenantId, email: &str) -> Option<&User> {
        let mut all = self.users.values();
        all.find(|user| user.tenant_id == tenant && user.email == email)
    }

    fn owners(&self, tenant: TenantId) -> usize {
        let active = |user: &&User| user.tenant_id == tenant && user.is_active_owner();
        self.users.values().filter(active).count()
    }

    fn free_prefix(&self, key: &ApiKey) -> Answer<()> {
        if self.keys.values().any(|it| it.prefix == key.prefix) {
            return Err(IdentityStoreError::PrefixTaken);
        }
        Ok(())
    }
}
