//! Where tenants, users and keys are kept.

use async_trait::async_trait;
use hango_domain::access::{Role, Scope};
use hango_domain::people::{ApiKey, Tenant, TenantStatus, User, UserStatus};
use hango_domain::{ApiKeyId, TenantId, Timestamp, UserId};
use thiserror::Error;

use crate::audit_store::NewAudit;
use crate::page::{Page, PageRequest};
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

/// Keeps who may come in. Moments of what is added are set by the store's clock. What is read or changed in
/// one tenant is never another's.
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

    /// Finds a tenant.
    async fn tenant(&self, tenant: TenantId) -> Result<Option<Tenant>, IdentityStoreError>;

    /// Finds a tenant by its slug.
    async fn tenant_by_slug(&self, slug: &str) -> Result<Option<Tenant>, IdentityStoreError>;

    /// Reads tenants, newest first.
    async fn tenants(&self, page: PageRequest) -> Result<Page<Tenant>, IdentityStoreError>;

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

    /// Reads the users of a tenant, or only that one, newest first.
    async fn users(
        &self,
        tenant: TenantId,
        only: Option<UserId>,
        page: PageRequest,
    ) -> Result<Page<User>, IdentityStoreError>;

    /// Changes a user. The last active owner of a tenant stays one. Whether `by` may change him is asked of
    /// the user as he is then; `None` is an operator, who may.
    async fn update_user(
        &self,
        by: Option<Scope>,
        tenant: TenantId,
        user: UserId,
        patch: UserPatch,
        audit: NewAudit,
    ) -> Result<User, IdentityStoreError>;

    /// Adds a key of an existing user. Whether `by` may speak for him is asked of the user as he is then;
    /// `None` is an operator, who may.
    async fn create_key(
        &self,
        by: Option<Scope>,
        key: ApiKey,
        audit: NewAudit,
    ) -> Result<ApiKey, IdentityStoreError>;

    /// Finds a key.
    async fn key(
        &self,
        tenant: TenantId,
        key: ApiKeyId,
    ) -> Result<Option<ApiKey>, IdentityStoreError>;

    /// Finds a key of whichever tenant, for an operator who has nothing but its id.
    async fn key_of_any_tenant(&self, key: ApiKeyId) -> Result<Option<ApiKey>, IdentityStoreError>;

    /// Reads the keys of a tenant, or only those of that user, newest first.
    async fn keys(
        &self,
        tenant: TenantId,
        user: Option<UserId>,
        page: PageRequest,
    ) -> Result<Page<ApiKey>, IdentityStoreError>;

    /// Revokes a key; doing it again changes nothing.
    async fn revoke_key(
        &self,
        tenant: TenantId,
        key: ApiKeyId,
        audit: NewAudit,
    ) -> Result<(), IdentityStoreError>;
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
    /// Who asked may not change a user of that role, or to that role.
    #[error("the caller's role does not allow this")]
    Forbidden,
    /// The tenant would be left without an active owner.
    #[error("a tenant keeps one active owner")]
    LastOwner,
    /// The store could not do its work.
    #[error(transparent)]
    Failure(#[from] StoreFailure),
}
