//! Tenants, users and keys.

use async_trait::async_trait;
use hango_domain::people::{ApiKey, Tenant, TenantStatus, User};
use hango_domain::{ApiKeyId, TenantId, UserId};
use hango_ports::audit_store::NewAudit;
use hango_ports::identity_store::{Credential, IdentityStore, IdentityStoreError, UserPatch};

use crate::MemoryStore;
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
        state.tenants.insert(made.tenant.id, made.tenant.clone());
        state.users.insert(made.user.id, made.user.clone());
        state.keys.insert(made.key.id, made.key.clone());
        state.note(audit, now);
        Ok(made)
    }

    async fn tenant(&self, slug: &str) -> Answer<Option<Tenant>> {
        let state = self.lock();
        let found = state.tenants.values().find(|tenant| tenant.slug == slug);
        Ok(found.cloned())
    }

    async fn tenants(&self) -> Answer<Vec<Tenant>> {
        let mut all: Vec<Tenant> = self.lock().tenants.values().cloned().collect();
        all.sort_by_key(|tenant| (tenant.created_at, tenant.id));
        Ok(all)
    }

    async fn set_tenant_status(
        &self,
        tenant: TenantId,
        status: TenantStatus,
        audit: NewAudit,
    ) -> Answer<Tenant> {
        let mut state = self.lock();
        let now = self.clock.now();
        let tenant = state
            .tenants
            .get_mut(&tenant)
            .ok_or(IdentityStoreError::NotFound)?;
        tenant.status = status;
        tenant.updated_at = now;
        let tenant = tenant.clone();
        state.note(audit, now);
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
        state.users.insert(user.id, user.clone());
        state.note(audit, now);
        Ok(user)
    }

    async fn user(&self, tenant: TenantId, user: UserId) -> Answer<Option<User>> {
        Ok(self.lock().user(tenant, user).cloned())
    }

    async fn user_by_email(&self, tenant: TenantId, email: &str) -> Answer<Option<User>> {
        Ok(self.lock().user_by_email(tenant, email).cloned())
    }

    async fn update_user(
        &self,
        tenant: TenantId,
        user: UserId,
        patch: UserPatch,
        audit: NewAudit,
    ) -> Answer<User> {
        let mut state = self.lock();
        let before = state.user(tenant, user).cloned();
        let before = before.ok_or(IdentityStoreError::NotFound)?;
        let now = self.clock.now();
        let after = patch.applied_to(before.clone(), now);
        if before.is_active_owner() && !after.is_active_owner() && state.owners(tenant) == 1 {
            return Err(IdentityStoreError::LastOwner);
        }
        state.users.insert(user, after.clone());
        state.note(audit, now);
        Ok(after)
    }

    async fn create_key(&self, key: ApiKey, audit: NewAudit) -> Answer<ApiKey> {
        let mut state = self.lock();
        if state.user(key.tenant_id, key.user_id).is_none() {
            return Err(IdentityStoreError::NotFound);
        }
        state.free_prefix(&key)?;
        let now = self.clock.now();
        let key = ApiKey {
            created_at: now,
            ..key
        };
        state.keys.insert(key.id, key.clone());
        state.note(audit, now);
        Ok(key)
    }

    async fn keys(&self, tenant: TenantId, user: Option<UserId>) -> Answer<Vec<ApiKey>> {
        let state = self.lock();
        let asked =
            |key: &&ApiKey| key.tenant_id == tenant && user.is_none_or(|it| key.user_id == it);
        let mut keys: Vec<ApiKey> = state.keys.values().filter(asked).cloned().collect();
        keys.sort_by_key(|key| std::cmp::Reverse((key.created_at, key.id)));
        Ok(keys)
    }

    async fn revoke_key(&self, key: ApiKeyId, audit: NewAudit) -> Answer<()> {
        let mut state = self.lock();
        let now = self.clock.now();
        let key = state
            .keys
            .get_mut(&key)
            .ok_or(IdentityStoreError::NotFound)?;
        if key.revoked_at.is_none() {
            key.revoked_at = Some(now);
            state.note(audit, now);
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
