//! The users of a tenant: seen, added and changed by those who administer it; a member is there for
//! himself, and may name himself.

use hango_domain::UserId;
use hango_domain::access::Role;
use hango_domain::people::{User, UserStatus};
use hango_ports::identity_store::UserPatch;
use hango_ports::page::{Page, PageRequest};
use serde_json::{Map, Value, json};

use super::admin::judge_user;
use super::input::judge_name;
use super::{Action, Caller, Input, NewUser, UseCaseError, UseCases};

impl UseCases {
    /// Reads the users that the caller sees, newest first.
    pub async fn users(
        &self,
        caller: &Caller,
        page: PageRequest,
    ) -> Result<Page<User>, UseCaseError> {
        let scope = &caller.scope;
        let only = (!scope.role.administers()).then_some(scope.user);
        let identities = &self.stores.identities;
        Ok(identities.users(scope.tenant, only, page).await?)
    }

    /// Reads a user.
    pub async fn user(&self, caller: &Caller, user: UserId) -> Result<User, UseCaseError> {
        let scope = &caller.scope;
        if !scope.sees_user(user) {
            return Err(UseCaseError::NotFound);
        }
        let found = self.stores.identities.user(scope.tenant, user).await?;
        found.ok_or(UseCaseError::NotFound)
    }

    /// Adds a user to the caller's tenant.
    pub async fn add_user(
        &self,
        caller: &Caller,
        new: Input<NewUser>,
    ) -> Result<User, UseCaseError> {
        caller.must_administer()?;
        let new = new.judged(judge_user).accepted()?;
        if !caller.scope.role.manages(new.role) {
            return Err(UseCaseError::Forbidden);
        }
        let user = self.new_user(caller.scope.tenant, new);
        let mut audit = self.caller_audit(caller, Action::UserCreate, user.id.0);
        audit.detail = told(Some(user.role), None);
        Ok(self.stores.identities.create_user(user, audit).await?)
    }

    /// Changes a user.
    pub async fn update_user(
        &self,
        caller: &Caller,
        user: UserId,
        patch: Input<UserPatch>,
    ) -> Result<User, UseCaseError> {
        let found = self.user(caller, user).await?;
        let scope = caller.scope;
        if !scope.may_change(&found, None, None) {
            return Err(UseCaseError::Forbidden);
        }
        let patch = patch
            .judged(|patch, faults| {
                if let Some(name) = &patch.name {
                    judge_name("/name", name, faults);
                }
            })
            .accepted()?;
        let mut audit = self.caller_audit(caller, Action::UserUpdate, user.0);
        audit.detail = told(patch.role, patch.status);
        let identities = &self.stores.identities;
        // What is asked for he may do or not: the store knows, which has the user as he is then.
        Ok(identities
            .update_user(Some(scope), scope.tenant, user, patch, audit)
            .await?)
    }
}

/// What an audit row tells of a user: not his name, which is his own.
pub(super) fn told(role: Option<Role>, status: Option<UserStatus>) -> Map<String, Value> {
    let role = role.map(|role| ("role".to_owned(), json!(role)));
    let status = status.map(|status| ("status".to_owned(), json!(status)));
    role.into_iter().chain(status).collect()
}
