//! Where tenants, users and keys are kept.

use async_trait::async_trait;
use hango_domain::access::Role;
use hango_domain::people::{ApiKey, Tenant, TenantStatus, User, UserStatus};
use hango_domain::{ApiKeyId, TenantId, Timestamp, UserId};
use thiserror::Error;

use crate::audit_store::NewAudit;
use crate::store::StoreFailure;

/// A key with whom it speaks for, as all of them are now.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Credential {
    /// The key.
    pub key: ApiKey,
    /// Its user.
    pub user: User,
    /// His tenant.
    pub tenant: Tenant,
}

/// A change of a user: what is `Some` is replaced.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct UserPatch {
    /// His name.
    pub name: Option<String>,
    /// What he may do.
    pub role: Option<Role>,
    /// Whether he may act.
    pub status: Option<UserStatus>,
}

impl UserPatch {
    /// The user after this change, were it made at `now`.
    #[must_use]
    pub fn applied_to(self, user: User, now: Timestamp) -> User {
        User {
            name: self.name.unwrap_or(user.name),
            role: self.role.unwrap_or(user.role),
            status: self.status.unwrap_or(user.status),
            updated_at: now,
            ..user
        }
    }
}

/// Keeps who may come in. Moments of what is added are set by the store's clock.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait IdentityStore: Send + Sync {
    /// Finds a key by its prefix, whatever its state and that of its user and tenant.
    async fn credential(&self, prefix: &str) -> Result<Option<Credential>, IdentityStoreError>;

    /// Notes that a key was used now. Losing the note does no harm; how often it is made, the caller says.
    async fn touch(&self, key: ApiKeyId) -> Result<(), IdentityStoreError>;

    /// Adds a tenant with its first owner and his key.
    async fn create_tenant(
        &self,
        tenant: Tenant,
        owner: User,
        key: ApiKey,
        audit: NewAudit,
    ) -> Result<Credential, IdentityStoreError>;

    /// Finds a tenant by its slug.
    async fn tenant(&self, slug: &str) -> Result<Option<Tenant>, IdentityStoreError>;

    /// Reads all tenants, oldest first.
    async fn tenants(&self) -> Result<Vec<Tenant>, IdentityStoreError>;

    /// Suspends a tenant or lets it work again.
    async fn set_tenant_status(
        &self,
        tenant: TenantId,
        status: TenantStatus,
        audit: NewAudit,
    ) -> Result<Tenant, IdentityStoreError>;

    /// Adds a user.
    async fn create_user(&self, user: User, audit: NewAudit) -> Result<User, IdentityStoreError>;

    /// Finds a user.
    async fn user(
        &self,
        tenant: TenantId,
        user: UserId,
    ) -> Result<Option<User>, IdentityStoreError>;

    /// Finds a user by his address.
    async fn user_by_email(
        &self,
        tenant: TenantId,
        email: &str,
    ) -> Result<Option<User>, IdentityStoreError>;

    /// Changes a user. The last active owner of a tenant stays one.
    async fn update_user(
        &self,
        tenant: TenantId,
        user: UserId,
        patch: UserPatch,
        audit: NewAudit,
    ) -> Result<User, IdentityStoreError>;

    /// Adds a key of an existing user.
    async fn create_key(&self, key: ApiKey, audit: NewAudit) -> Result<ApiKey, IdentityStoreError>;

    /// Reads the keys of a tenant, of one user if he is given; newest first.
    async fn keys(
        &self,
        tenant: TenantId,
        user: Option<UserId>,
    ) -> Result<Vec<ApiKey>, IdentityStoreError>;

    /// Revokes a key; doing it again changes nothing.
    async fn revoke_key(&self, key: ApiKeyId, audit: NewAudit) -> Result<(), IdentityStoreError>;
}

/// Why an [`IdentityStore`] did not do what it was asked.
#[derive(Debug, Error)]
pub enum IdentityStoreError {
    /// The tenant, user or key is not there.
    #[error("not found")]
    NotFound,
    /// There is a tenant of that slug.
    #[error("the slug is taken")]
    SlugTaken,
    /// The tenant has a user of that address.
    #[error("the address is taken")]
    EmailTaken,
    /// There is a key of that prefix.
    #[error("the prefix is taken")]
    PrefixTaken,
    /// The tenant would be left without an active owner.
    #[error("a tenant keeps one active owner")]
    LastOwner,
    /// The store could not do its work.
    #[error(transparent)]
    Failure(#[from] StoreFailure),
}
