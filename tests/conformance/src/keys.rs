//! Keys, and whom they speak for.

use std::time::Duration;

use hango_domain::access::Role;
use hango_domain::people::{ApiKey, TenantStatus, UserStatus};
use hango_domain::{ApiKeyId, TenantId, UserId};
use hango_ports::identity_store::{IdentityStoreError, UserPatch};
use hango_ports::page::PageRequest;

use crate::Fixture;

/// All keys of a tenant, or of one user of it.
async fn keys(fixture: &Fixture, tenant: TenantId, user: Option<UserId>) -> Vec<ApiKey> {
    let all = PageRequest {
        limit: 100,
        after: None,
    };
    let keys = fixture.stores.identities.keys(tenant, user, all).await;
    keys.expect("reads work").items
}

/// A key's prefix is unique among all tenants.
pub async fn a_keys_prefix_is_taken_once(fixture: Fixture) {
    let identities = &fixture.stores.identities;
    let (one, two) = (fixture.tenant().await, fixture.tenant().await);
    let taken = keys(&fixture, one.tenant, None).await;
    let user = identities.user(two.tenant, two.user).await;
    let user = user.expect("reads work").expect("the owner is there");
    let mut key = fixture.new_key(&user);
    key.prefix.clone_from(&taken[0].prefix);
    let audit = fixture.audit(&two, "key.create", key.id.0);

    let refused = identities.create_key(None, key, audit).await;

    assert!(matches!(refused, Err(IdentityStoreError::PrefixTaken)));
    assert_eq!(keys(&fixture, two.tenant, None).await.len(), 1);
}

/// Whoever may speak for a user makes keys of his, as he is then: an admin of a member, and of no owner.
pub async fn a_key_is_made_by_who_may_act_for_its_user(fixture: Fixture) {
    let identities = &fixture.stores.identities;
    let owner = fixture.tenant().await;
    let admin = fixture.user(&owner, Role::Admin).await;
    let member = fixture.user(&owner, Role::Member).await;
    let make = async |of: UserId| {
        let user = identities.user(owner.tenant, of).await;
        let user = user.expect("reads work").expect("he is there");
        let key = fixture.new_key(&user);
        let audit = fixture.audit(&admin, "key.create", key.id.0);
        identities.create_key(Some(admin), key, audit).await
    };

    make(member.user).await.expect("an admin may");
    let refused = make(owner.user).await;

    assert!(matches!(refused, Err(IdentityStoreError::Forbidden)));
    let of_owner = keys(&fixture, owner.tenant, Some(owner.user)).await;
    assert_eq!(of_owner.len(), 1);
}

/// Keys are listed newest first, and revoked once.
pub async fn a_key_is_revoked_once(fixture: Fixture) {
    let identities = &fixture.stores.identities;
    let owner = fixture.tenant().await;
    let user = identities.user(owner.tenant, owner.user).await;
    let user = user.expect("reads work").expect("the owner is there");
    fixture.clock.advance(Duration::from_secs(1));
    let key = fixture.new_key(&user);
    let audit = fixture.audit(&owner, "key.create", key.id.0);
    let key = identities
        .create_key(None, key, audit)
        .await
        .expect("all is new");
    let listed = keys(&fixture, owner.tenant, Some(owner.user)).await;
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0], key);
    let other = fixture.tenant().await;
    let revoke_in = async |tenant, key: ApiKeyId| {
        let audit = fixture.audit(&owner, "key.revoke", key.0);
        identities.revoke_key(tenant, key, audit).await
    };
    let revoke = async |key| revoke_in(owner.tenant, key).await;
    let foreign = revoke_in(other.tenant, key.id).await;
    assert!(matches!(foreign, Err(IdentityStoreError::NotFound)));
    let found = identities.key(owner.tenant, key.id).await;
    assert_eq!(found.expect("reads work").as_ref(), Some(&key));
    let found = identities.key(other.tenant, key.id).await;
    assert_eq!(found.expect("reads work"), None);

    revoke(key.id).await.expect("the key is there");
    let at = fixture.now();
    fixture.clock.advance(Duration::from_secs(1));
    revoke(key.id).await.expect("the key is there");

    let found = identities.credential(&key.prefix).await;
    let found = found.expect("reads work").map(|found| found.key.revoked_at);
    assert_eq!(found, Some(Some(at)));
    let unknown = revoke(ApiKeyId(fixture.uuid())).await;
    assert!(matches!(unknown, Err(IdentityStoreError::NotFound)));
}

/// Who has nothing but a key's id finds it, whosever it is.
pub async fn a_key_is_found_without_its_tenant(fixture: Fixture) {
    let identities = &fixture.stores.identities;
    for _ in 0..2 {
        let owner = fixture.tenant().await;
        let made = keys(&fixture, owner.tenant, None).await.remove(0);
        let found = identities.key_of_any_tenant(made.id).await;
        assert_eq!(found.expect("reads work"), Some(made));
    }
    let nobodys = ApiKeyId(fixture.uuid());
    let found = identities.key_of_any_tenant(nobodys).await;
    assert_eq!(found.expect("reads work"), None);
}

/// The last use of a key is known to the minute.
pub async fn a_keys_use_is_noted_to_the_minute(fixture: Fixture) {
    let identities = &fixture.stores.identities;
    let (owner, other) = (fixture.tenant().await, fixture.tenant().await);
    let last_used_of = async |tenant| keys(&fixture, tenant, None).await[0].last_used_at;
    let last_used = async || last_used_of(owner.tenant).await;
    assert_eq!(last_used().await, None);
    let key = owner.key.expect("the first owner has a key");

    for _ in 0..3 {
        identities.touch(key).await.expect("the key is there");
        let used = last_used().await.expect("it was noted");
        assert!(fixture.now().since(used) < Duration::from_mins(1));
        fixture.clock.advance(Duration::from_mins(1));
    }
    assert_eq!(last_used_of(other.tenant).await, None);
}

/// A credential shows its tenant and user as they are now.
pub async fn a_credential_is_as_all_of_it_is_now(fixture: Fixture) {
    let identities = &fixture.stores.identities;
    let owner = fixture.tenant().await;
    fixture.user(&owner, Role::Owner).await;
    let keys = keys(&fixture, owner.tenant, None).await;
    let disabled = UserPatch {
        status: Some(UserStatus::Disabled),
        ..UserPatch::default()
    };
    fixture.change_user(&owner, owner.user, disabled).await;
    fixture.set_tenant(&owner, TenantStatus::Suspended).await;

    let found = identities.credential(&keys[0].prefix).await;

    let found = found.expect("reads work").expect("the key is there");
    assert_eq!(found.tenant.status, TenantStatus::Suspended);
    assert_eq!(found.user.status, UserStatus::Disabled);
    let nowhere = TenantId(fixture.uuid());
    let audit = fixture.operator_audit(nowhere, "tenant.update");
    let unknown = identities
        .set_tenant_status(nowhere, TenantStatus::Active, audit)
        .await;
    assert!(matches!(unknown, Err(IdentityStoreError::NotFound)));
}

/// Keys are listed newest first, page by page, those of a tenant or of one user of it.
pub async fn keys_are_listed_newest_first(fixture: Fixture) {
    let identities = &fixture.stores.identities;
    let owner = fixture.tenant().await;
    let member = fixture.user(&owner, Role::Member).await;
    let mut made = vec![owner.key.expect("the first owner has a key")];
    for n in 0..4 {
        let user = if n % 2 == 0 { member.user } else { owner.user };
        let user = identities.user(owner.tenant, user).await;
        let key = fixture.new_key(&user.expect("reads work").expect("he is there"));
        made.insert(0, key.id);
        let audit = fixture.audit(&owner, "key.create", key.id.0);
        identities
            .create_key(None, key, audit)
            .await
            .expect("all is new");
        // Some share their moment with the one before.
        fixture.clock.advance(Duration::from_micros(n % 2));
    }
    let walk = async |user| {
        let (mut walked, mut after) = (Vec::new(), None);
        loop {
            let request = PageRequest { limit: 2, after };
            let page = identities.keys(owner.tenant, user, request).await;
            let page = page.expect("reads work");
            walked.extend(page.items.iter().map(|key| key.id));
            after = page.next;
            if after.is_none() {
                return walked;
            }
        }
    };

    assert_eq!(walk(None).await, made);
    assert_eq!(walk(Some(member.user)).await, [made[1], made[3]]);
    assert_eq!(walk(Some(UserId(fixture.uuid()))).await, []);
}
