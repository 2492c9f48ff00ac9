//! The keys of users: everybody has his own, and those who administer a tenant see to all of its.
//!
//! A key speaks for its user with his rights as they are when it is used. So nobody makes one for a user
//! whom he could not change: an admin with a key of an owner would be one. To revoke one takes rights away
//! and gives none, so an admin may revoke an owner's.

use hango_domain::people::ApiKey;
use hango_domain::{ApiKeyId, Timestamp, UserId};
use hango_ports::page::{Page, PageRequest};
use serde_json::{Map, json};

use super::input::judge_name;
use super::{Action, Caller, Fault, FaultCode, Input, KeyText, UseCaseError, UseCases, mint_key};

/// A key to be made.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct KeyDraft {
    /// Its name for people.
    pub name: String,
    /// Whose it is to be; the caller's own if nobody is named.
    pub user: Option<UserId>,
    /// From when on it is refused; `None` for never.
    pub expires_at: Option<Timestamp>,
}

impl UseCases {
    /// Reads the keys that the caller sees, newest first.
    pub async fn api_keys(
        &self,
        caller: &Caller,
        page: PageRequest,
    ) -> Result<Page<ApiKey>, UseCaseError> {
        let scope = &caller.scope;
        let user = (!scope.role.administers()).then_some(scope.user);
        let identities = &self.stores.identities;
        Ok(identities.keys(scope.tenant, user, page).await?)
    }

    /// Makes a key, whose text is returned this once.
    pub async fn create_api_key(
        &self,
        caller: &Caller,
        draft: Input<KeyDraft>,
    ) -> Result<(ApiKey, KeyText), UseCaseError> {
        let draft = draft
            .judged(|draft, faults| self.judge_key(draft, faults))
            .accepted()?;
        let user = self
            .user(caller, draft.user.unwrap_or(caller.scope.user))
            .await?;
        let minted = mint_key(&*self.ids);
        let text = minted.text.clone();
        let key = ApiKey {
            expires_at: draft.expires_at,
            ..self.new_key(&user, &draft.name, minted)
        };
        let mut audit = self.caller_audit(caller, Action::KeyCreate, key.id.0);
        audit.detail = Map::from_iter([("user_id".to_owned(), json!(key.user_id))]);
        let key = self
            .stores
            .identities
            .create_key(Some(caller.scope), key, audit)
            .await?;
        Ok((key, text))
    }

    /// Revokes a key; doing it again changes nothing.
    pub async fn revoke_api_key(
        &self,
        caller: &Caller,
        key: ApiKeyId,
        sent: Input<()>,
    ) -> Result<(), UseCaseError> {
        let (identities, tenant) = (&self.stores.identities, caller.scope.tenant);
        let found = identities.key(tenant, key).await?;
        found
            .filter(|key| caller.scope.sees_user(key.user_id))
            .ok_or(UseCaseError::NotFound)?;
        sent.accepted()?;
        let audit = self.caller_audit(caller, Action::KeyRevoke, key.0);
        Ok(identities.revoke_key(tenant, key, audit).await?)
    }

    /// Notes what is wrong with a key that is to be made.
    pub(super) fn judge_key(&self, draft: &KeyDraft, faults: &mut Vec<Fault>) {
        judge_name("/name", &draft.name, faults);
        if draft.expires_at.is_some_and(|end| end <= self.clock.now()) {
            let detail = "this is over already";
            faults.push(Fault::new("/expires_at", FaultCode::OutOfRange, detail));
        }
    }
}
