//! Keys, and whom they speak for.

use std::time::Duration;

use hango_domain::access::Role;
use hango_domain::people::{TenantStatus, UserStatus};
use hango_domain::{ApiKeyId, TenantId};
use hango_ports::identity_store::{IdentityStoreError, UserPatch};

use crate::Fixture;

/// A key's prefix is unique among all tenants.
pub async fn a_keys_prefix_is_taken_once(fixture: Fixture) {
    let identities = &fixture.stores.identities;
    let (one, two) = (fixture.tenant().await, fixture.tenant().await);
    let taken = identities.keys(one.tenant, None).await.expect("reads work");
    let user = identities.user(two.tenant, two.user).await;
    let user = user.expect("reads work").expect("the owner is there");
    let mut key = fixture.new_key(&user);
    key.prefix.clone_from(&taken[0].prefix);
    let audit = fixture.audit(&two, "key.create", key.id.0);

    let refused = identities.create_key(key, audit).await;

    assert!(matches!(refused, Err(IdentityStoreError::PrefixTaken)));
    let keys = identities.keys(two.tenant, None).await.expect("reads work");
    assert_eq!(keys.len(), 1);
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
    let key = identities.create_key(key, audit).await.expect("all is new");
    let keys = identities.keys(owner.tenant, Some(owner.user)).await;
    let keys = keys.expect("reads work");
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], key);
    let revoke = async |key: ApiKeyId| {
        let audit = fixture.audit(&owner, "key.revoke", key.0);
        identities.revoke_key(key, audit).await
    };

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

/// The last use of a key is known to the minute.
pub async fn a_keys_use_is_noted_to_the_minute(fixture: Fixture) {
    let identities = &fixture.stores.identities;
    let (owner, other) = (fixture.tenant().await, fixture.tenant().await);
    let last_used_of = async |tenant| {
        let keys = identities.keys(tenant, None).await;
        keys.expect("reads work")[0].last_used_at
    };
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
    let keys = identities
        .keys(owner.tenant, None)
        .await
        .expect("reads work");
    fixture.set_tenant(&owner, TenantStatus::Suspended).await;
    let disabled = UserPatch {
        status: Some(UserStatus::Disabled),
        ..UserPatch::default()
    };
    fixture.change_user(&owner, owner.user, disabled).await;

    let found = identities.credential(&keys[0].prefix).await;

    let found = found.expect("reads work").expect("the key is there");
    assert_eq!(found.tenant.status, TenantStatus::Suspended);
    assert_eq!(found.user.status, UserStatus::Disabled);
    let audit = fixture.audit(&owner, "tenant.update", owner.tenant.0);
    let nowhere = TenantId(fixture.uuid());
    let unknown = identities
        .set_tenant_status(nowhere, TenantStatus::Active, audit)
        .await;
    assert!(matches!(unknown, Err(IdentityStoreError::NotFound)));
}
