//! What an operator does: tenants, their users and the users' keys.
//!
//! These are not asked for by a caller of a tenant, so nothing here checks a role: whoever gets here
//! has the store, or the operator's token.

use hango_domain::access::Role;
use hango_domain::agent::is_slug;
use hango_domain::people::{ApiKey, Tenant, TenantStatus, User, UserStatus, is_address};
use hango_domain::{ApiKeyId, TenantId, Timestamp, UserId};
use hango_ports::identity_store::{Credential, UserPatch};
use hango_ports::page::{Page, PageRequest};
use serde_json::{Map, json};

use super::input::judge_name;
use super::users::told;
use super::{
    Action, Fault, FaultCode, Input, KeyDraft, KeyName, KeyText, MintedKey, RequestContext,
    UseCaseError, UseCases, mint_key,
};

/// The slug of the tenant that a single server begins with.
pub const BOOTSTRAP_TENANT: &str = "default";

/// The address of that tenant's owner.
pub const BOOTSTRAP_OWNER: &str = "owner@localhost";

/// A tenant to be made, with its first owner.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewTenant {
    /// Its unique name for programs.
    pub slug: String,
    /// Its name for people; the slug if it is not given.
    pub name: Option<String>,
    /// The owner's address.
    pub owner_email: String,
    /// The owner's name; his address if it is not given.
    pub owner_name: Option<String>,
}

/// A user to be added.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewUser {
    /// His address.
    pub email: String,
    /// His name; his address if it is not given.
    pub name: Option<String>,
    /// What he may do.
    pub role: Role,
}

/// The store sets the moments of what is added.
const UNSET: Timestamp = Timestamp::from_micros(0);

/// How many keys are read at a time.
const STEP: u32 = 100;

impl UseCases {
    /// Makes a tenant with its owner and his first key, whose text is returned this once.
    pub async fn create_tenant(
        &self,
        request: &RequestContext,
        new: Input<NewTenant>,
    ) -> Result<(Credential, KeyText), UseCaseError> {
        let new = new
            .judged(|new, faults| {
                if !is_slug(&new.slug) {
                    let detail = "a slug has 1 to 63 lower-case letters, digits and hyphens";
                    faults.push(Fault::new("/slug", FaultCode::InvalidFormat, detail));
                }
                if let Some(name) = &new.name {
                    judge_name("/name", name, faults);
                }
                if !is_address(&new.owner_email) {
                    faults.push(no_email("/owner/email"));
                }
                if let Some(name) = &new.owner_name {
                    judge_name("/owner/name", name, faults);
                }
            })
            .accepted()?;
        let key = mint_key(&*self.ids);
        let text = key.text.clone();
        Ok((self.add_tenant(request, new, "first", key).await?, text))
    }

    /// Reads tenants, newest first.
    pub async fn tenants(&self, page: PageRequest) -> Result<Page<Tenant>, UseCaseError> {
        Ok(self.stores.identities.tenants(page).await?)
    }

    /// Finds a tenant by its slug.
    pub async fn tenant(&self, slug: &str) -> Result<Tenant, UseCaseError> {
        let found = self.stores.identities.tenant_by_slug(slug).await?;
        found.ok_or(UseCaseError::NotFound)
    }

    /// Suspends a tenant or lets it work again.
    pub async fn set_tenant_status(
        &self,
        request: &RequestContext,
        tenant: TenantId,
        status: Input<TenantStatus>,
    ) -> Result<Tenant, UseCaseError> {
        let identities = &self.stores.identities;
        if status.is_faulty() && identities.tenant(tenant).await?.is_none() {
            return Err(UseCaseError::NotFound);
        }
        let status = status.accepted()?;
        let mut audit = self.operator_audit(tenant, Action::TenantUpdate, tenant.0);
        audit.detail = Map::from_iter([("status".to_owned(), json!(status))]);
        let audit = request.noted(audit);
        let changed = identities.set_tenant_status(tenant, status, audit).await?;
        if status == TenantStatus::Active {
            self.signals.queued();
        }
        Ok(changed)
    }

    /// Adds a user to a tenant.
    pub async fn create_user(
        &self,
        tenant: TenantId,
        new: Input<NewUser>,
    ) -> Result<User, UseCaseError> {
        let new = new.judged(judge_user).accepted()?;
        let user = self.new_user(tenant, new);
        let mut audit = self.operator_audit(tenant, Action::UserCreate, user.id.0);
        audit.detail = told(Some(user.role), None);
        Ok(self.stores.identities.create_user(user, audit).await?)
    }

    /// Finds a user of a tenant by his address.
    pub async fn user_by_email(&self, tenant: TenantId, email: &str) -> Result<User, UseCaseError> {
        let found = self.stores.identities.user_by_email(tenant, email).await?;
        found.ok_or(UseCaseError::NotFound)
    }

    /// Disables a user: his keys are refused, and his runs end.
    pub async fn disable_user(&self, tenant: TenantId, user: UserId) -> Result<User, UseCaseError> {
        let patch = UserPatch {
            status: Some(UserStatus::Disabled),
            ..UserPatch::default()
        };
        let mut audit = self.operator_audit(tenant, Action::UserUpdate, user.0);
        audit.detail = told(None, patch.status);
        let identities = &self.stores.identities;
        Ok(identities
            .update_user(None, tenant, user, patch, audit)
            .await?)
    }

    /// Makes a key of a user, whose text is returned this once.
    pub async fn create_key(
        &self,
        user: &User,
        name: &str,
        expires_at: Option<Timestamp>,
    ) -> Result<(ApiKey, KeyText), UseCaseError> {
        let draft = KeyDraft {
            name: name.to_owned(),
            user: Some(user.id),
            expires_at,
        };
        let draft = Input::new(draft)
            .judged(|draft, faults| self.judge_key(draft, faults))
            .accepted()?;
        let minted = mint_key(&*self.ids);
        let text = minted.text.clone();
        let key = ApiKey {
            expires_at: draft.expires_at,
            ..self.new_key(user, &draft.name, minted)
        };
        Ok((self.add_key(key).await?, text))
    }

    /// Reads the users of a tenant, newest first.
    pub async fn users_of(
        &self,
        tenant: TenantId,
        page: PageRequest,
    ) -> Result<Page<User>, UseCaseError> {
        Ok(self.stores.identities.users(tenant, None, page).await?)
    }

    /// Reads the keys of a tenant, or only those of that user, newest first.
    pub async fn keys_of(
        &self,
        tenant: TenantId,
        user: Option<UserId>,
        page: PageRequest,
    ) -> Result<Page<ApiKey>, UseCaseError> {
        Ok(self.stores.identities.keys(tenant, user, page).await?)
    }

    /// Revokes the key of that name, and tells which it is; doing it again changes nothing.
    pub async fn revoke_key(&self, name: &KeyName) -> Result<ApiKey, UseCaseError> {
        let identities = &self.stores.identities;
        let found = match name {
            KeyName::Prefix(prefix) => identities.credential(prefix).await?.map(|it| it.key),
            KeyName::Id(id) => identities.key_of_any_tenant(*id).await?,
        };
        let key = found.ok_or(UseCaseError::NotFound)?;
        let audit = self.operator_audit(key.tenant_id, Action::KeyRevoke, key.id.0);
        identities.revoke_key(key.tenant_id, key.id, audit).await?;
        Ok(key)
    }

    /// Sees to it that the tenant `default`, its owner and this key exist. Doing it again, or in several
    /// processes at once, changes nothing.
    pub async fn ensure_bootstrap(&self, key: KeyText) -> Result<(), UseCaseError> {
        let key = key.minted();
        let identities = &self.stores.identities;
        loop {
            if let Some(found) = identities.credential(&key.prefix).await? {
                return if found.key.secret_hash == key.secret_hash {
                    Ok(())
                } else {
                    Err(UseCaseError::PrefixTaken)
                };
            }
            match self.add_default_key("bootstrap", key.clone()).await {
                // Another process was faster with a part of it.
                Err(
                    UseCaseError::SlugTaken | UseCaseError::EmailTaken | UseCaseError::PrefixTaken,
                ) => {}
                done => return done.map(drop),
            }
        }
    }

    /// A new key of the owner of the tenant `default`, who are made if they are not there. Those that he has
    /// stay as they are.
    pub async fn new_default_key(&self, name: &str) -> Result<(Credential, KeyText), UseCaseError> {
        let minted = mint_key(&*self.ids);
        let text = minted.text.clone();
        Ok((self.add_default_key(name, minted).await?, text))
    }

    /// The same in the place of those that bear its name, which open nothing any more.
    pub async fn replace_default_key(
        &self,
        name: &str,
    ) -> Result<(Credential, KeyText), UseCaseError> {
        let (credential, text) = self.new_default_key(name).await?;
        let Credential { key, user, tenant } = &credential;
        let identities = &self.stores.identities;
        let mut page = PageRequest {
            limit: STEP,
            after: None,
        };
        loop {
            let keys = identities.keys(tenant.id, Some(user.id), page).await?;
            for old in keys.items {
                if old.name == name && old.id != key.id && old.revoked_at.is_none() {
                    let audit = self.operator_audit(tenant.id, Action::KeyRevoke, old.id.0);
                    identities.revoke_key(tenant.id, old.id, audit).await?;
                }
            }
            page.after = keys.next;
            if page.after.is_none() {
                return Ok((credential, text));
            }
        }
    }

    /// Adds a key of the owner of the tenant `default`, who are made if they are not there.
    async fn add_default_key(
        &self,
        name: &str,
        key: MintedKey,
    ) -> Result<Credential, UseCaseError> {
        let identities = &self.stores.identities;
        let Some(tenant) = identities.tenant_by_slug(BOOTSTRAP_TENANT).await? else {
            let new = NewTenant {
                slug: BOOTSTRAP_TENANT.to_owned(),
                name: None,
                owner_email: BOOTSTRAP_OWNER.to_owned(),
                owner_name: None,
            };
            let nobody = RequestContext::default();
            return self.add_tenant(&nobody, new, name, key).await;
        };
        let found = identities.user_by_email(tenant.id, BOOTSTRAP_OWNER).await?;
        let user = if let Some(owner) = found {
            owner
        } else {
            let new = NewUser {
                email: BOOTSTRAP_OWNER.to_owned(),
                name: None,
                role: Role::Owner,
            };
            self.create_user(tenant.id, Input::new(new)).await?
        };
        let key = self.add_key(self.new_key(&user, name, key)).await?;
        Ok(Credential { key, user, tenant })
    }

    async fn add_tenant(
        &self,
        request: &RequestContext,
        new: NewTenant,
        key_name: &str,
        key: MintedKey,
    ) -> Result<Credential, UseCaseError> {
        let tenant = Tenant {
            id: TenantId(self.ids.uuid()),
            name: new.name.unwrap_or_else(|| new.slug.clone()),
            slug: new.slug,
            status: TenantStatus::Active,
            created_at: UNSET,
            updated_at: UNSET,
        };
        let owner = NewUser {
            email: new.owner_email,
            name: new.owner_name,
            role: Role::Owner,
        };
        let owner = self.new_user(tenant.id, owner);
        let key = self.new_key(&owner, key_name, key);
        let audit = self.operator_audit(tenant.id, Action::TenantCreate, tenant.id.0);
        let audit = request.noted(audit);
        let identities = &self.stores.identities;
        Ok(identities.create_tenant(tenant, owner, key, audit).await?)
    }

    async fn add_key(&self, key: ApiKey) -> Result<ApiKey, UseCaseError> {
        let mut audit = self.operator_audit(key.tenant_id, Action::KeyCreate, key.id.0);
        audit.detail = Map::from_iter([("user_id".to_owned(), json!(key.user_id))]);
        Ok(self.stores.identities.create_key(None, key, audit).await?)
    }

    pub(super) fn new_user(&self, tenant: TenantId, new: NewUser) -> User {
        User {
            id: UserId(self.ids.uuid()),
            tenant_id: tenant,
            name: new.name.unwrap_or_else(|| new.email.clone()),
            email: new.email,
            role: new.role,
            status: UserStatus::Active,
            created_at: UNSET,
            updated_at: UNSET,
        }
    }

    pub(super) fn new_key(&self, user: &User, name: &str, minted: MintedKey) -> ApiKey {
        ApiKey {
            id: ApiKeyId(self.ids.uuid()),
            tenant_id: user.tenant_id,
            user_id: user.id,
            name: name.to_owned(),
            prefix: minted.prefix,
            secret_hash: minted.secret_hash,
            created_at: UNSET,
            expires_at: None,
            revoked_at: None,
            last_used_at: None,
        }
    }
}

/// Notes what is wrong with a user who is to be added.
pub(super) fn judge_user(new: &NewUser, faults: &mut Vec<Fault>) {
    if !is_address(&new.email) {
        faults.push(no_email("/email"));
    }
    if let Some(name) = &new.name {
        judge_name("/name", name, faults);
    }
}

fn no_email(pointer: &str) -> Fault {
    let detail = "an address reads somebody@somewhere";
    Fault::new(pointer, FaultCode::InvalidFormat, detail)
}

#[cfg(test)]
mod tests;
