//! Tenants, users and keys.

use std::time::Duration;

use hango_domain::access::Role;
use hango_domain::people::{Tenant, TenantStatus, User, UserStatus};
use hango_domain::{TenantId, UserId};
use hango_ports::identity_store::{Credential, IdentityStoreError, UserPatch};
use hango_ports::page::PageRequest;

use crate::Fixture;

const ALL: PageRequest = PageRequest {
    limit: 100,
    after: None,
};

/// A tenant comes with its first owner and his key, dated by the store.
pub async fn a_tenant_is_added_with_its_owner_and_his_key(fixture: Fixture) {
    let (tenant, at) = (fixture.new_tenant(), fixture.now());
    let owner = fixture.new_user(tenant.id, Role::Owner);
    let key = fixture.new_key(&owner);
    let scope = fixture.tenant().await;
    let audit = fixture.audit(&scope, "tenant.create", tenant.id.0);
    let identities = &fixture.stores.identities;

    let made = identities
        .create_tenant(tenant.clone(), owner.clone(), key.clone(), audit)
        .await;

    let mut expected = Credential {
        key,
        user: owner,
        tenant,
    };
    expected.key.created_at = at;
    (expected.user.created_at, expected.user.updated_at) = (at, at);
    (expected.tenant.created_at, expected.tenant.updated_at) = (at, at);
    assert_eq!(made.expect("all is new"), expected);
    let found = identities.credential(&expected.key.prefix).await;
    assert_eq!(found.expect("reads work"), Some(expected.clone()));
    let found = identities.tenant_by_slug(&expected.tenant.slug).await;
    assert_eq!(found.expect("reads work"), Some(expected.tenant.clone()));
    let found = identities.tenant(expected.tenant.id).await;
    assert_eq!(found.expect("reads work"), Some(expected.tenant));
    let found = identities
        .user(expected.user.tenant_id, expected.user.id)
        .await;
    assert_eq!(found.expect("reads work"), Some(expected.user));
    let none = identities.credential("nobodyhasit_").await;
    assert_eq!(none.expect("reads work"), None);
}

/// Slugs of tenants are unique; what is refused leaves nothing.
pub async fn a_tenants_slug_is_taken_once(fixture: Fixture) {
    let identities = &fixture.stores.identities;
    let first = fixture.tenant().await;
    let tenants = identities.tenants(ALL).await.expect("reads work");
    let tenant = Tenant {
        slug: tenants.items[0].slug.clone(),
        ..fixture.new_tenant()
    };
    let owner = fixture.new_user(tenant.id, Role::Owner);
    let key = fixture.new_key(&owner);
    let prefix = key.prefix.clone();
    let audit = fixture.audit(&first, "tenant.create", tenant.id.0);

    let refused = identities.create_tenant(tenant, owner, key, audit).await;

    assert!(matches!(refused, Err(IdentityStoreError::SlugTaken)));
    assert_eq!(identities.tenants(ALL).await.expect("reads work"), tenants);
    let found = identities.credential(&prefix).await;
    assert_eq!(found.expect("reads work"), None);
}

/// An address is taken once in a tenant, and free in every other.
pub async fn an_address_is_taken_once_in_its_tenant(fixture: Fixture) {
    let identities = &fixture.stores.identities;
    let (one, two) = (fixture.tenant().await, fixture.tenant().await);
    let first = fixture.new_user(one.tenant, Role::Member);
    let named = |tenant| User {
        email: first.email.clone(),
        ..fixture.new_user(tenant, Role::Member)
    };
    let create = async |user: User, by| {
        let audit = fixture.audit(by, "user.create", user.id.0);
        identities.create_user(user, audit).await
    };
    let first = create(first.clone(), &one).await.expect("all is new");

    let again = create(named(one.tenant), &one).await;
    assert!(matches!(again, Err(IdentityStoreError::EmailTaken)));
    let elsewhere = create(named(two.tenant), &two).await.expect("it is free");
    let nowhere = create(
        fixture.new_user(TenantId(fixture.uuid()), Role::Member),
        &one,
    )
    .await;
    assert!(matches!(nowhere, Err(IdentityStoreError::NotFound)));

    for (tenant, user) in [(one.tenant, first), (two.tenant, elsewhere)] {
        let found = identities.user_by_email(tenant, &user.email).await;
        assert_eq!(found.expect("reads work"), Some(user));
    }
}

/// A user is found in his tenant only.
pub async fn a_user_is_there_for_his_tenant_only(fixture: Fixture) {
    let identities = &fixture.stores.identities;
    let (one, two) = (fixture.tenant().await, fixture.tenant().await);

    let found = identities.user(two.tenant, one.user).await;
    assert_eq!(found.expect("reads work"), None);
    let audit = fixture.audit(&two, "user.update", one.user.0);
    let patch = UserPatch::default();
    let updated = identities
        .update_user(None, two.tenant, one.user, patch, audit)
        .await;
    assert!(matches!(updated, Err(IdentityStoreError::NotFound)));
    let stranger = User {
        tenant_id: two.tenant,
        id: one.user,
        ..fixture.new_user(two.tenant, Role::Member)
    };
    let key = fixture.new_key(&stranger);
    let audit = fixture.audit(&two, "key.create", key.id.0);
    let refused = identities.create_key(None, key, audit).await;
    assert!(matches!(refused, Err(IdentityStoreError::NotFound)));
    let keys = identities.keys(two.tenant, Some(one.user), ALL).await;
    assert_eq!(keys.expect("reads work").items, []);
    let users = identities.users(two.tenant, Some(one.user), ALL).await;
    assert_eq!(users.expect("reads work").items, []);
}

/// A change of a user replaces what it names, and dates it.
pub async fn a_user_is_changed_in_what_is_named(fixture: Fixture) {
    let identities = &fixture.stores.identities;
    let owner = fixture.tenant().await;
    let member = fixture.user(&owner, Role::Member).await;
    let before = identities.user(owner.tenant, member.user).await;
    let before = before.expect("reads work").expect("he is there");
    fixture.clock.advance(Duration::from_secs(5));

    let patch = UserPatch {
        name: Some("Ärmel".to_owned()),
        role: Some(Role::Admin),
        status: None,
    };
    fixture.change_user(&owner, member.user, patch).await;

    let expected = User {
        name: "Ärmel".to_owned(),
        role: Role::Admin,
        updated_at: fixture.now(),
        ..before
    };
    let found = identities.user(owner.tenant, member.user).await;
    assert_eq!(found.expect("reads work"), Some(expected));
}

/// A tenant keeps one active owner: the last one is neither demoted nor disabled.
pub async fn the_last_active_owner_stays_one(fixture: Fixture) {
    let identities = &fixture.stores.identities;
    let owner = fixture.tenant().await;
    let second = fixture.user(&owner, Role::Owner).await;
    let demoted = UserPatch {
        role: Some(Role::Admin),
        ..UserPatch::default()
    };
    let disabled = UserPatch {
        status: Some(UserStatus::Disabled),
        ..UserPatch::default()
    };
    let change = async |user: UserId, patch: &UserPatch| {
        let audit = fixture.audit(&owner, "user.update", user.0);
        let patch = patch.clone();
        identities
            .update_user(None, owner.tenant, user, patch, audit)
            .await
    };

    change(second.user, &disabled)
        .await
        .expect("another one stays");
    let before = identities.user(owner.tenant, owner.user).await;
    for patch in [&demoted, &disabled] {
        let refused = change(owner.user, patch).await;
        assert!(matches!(refused, Err(IdentityStoreError::LastOwner)));
    }
    let after = identities.user(owner.tenant, owner.user).await;
    assert_eq!(after.expect("reads work"), before.expect("reads work"));
    change(second.user, &demoted)
        .await
        .expect("he is not active");
}

/// Two owners who demote each other at once leave one.
pub async fn owners_who_demote_each_other_leave_one(fixture: Fixture) {
    let identities = &fixture.stores.identities;
    for _ in 0..10 {
        let one = fixture.tenant().await;
        let two = fixture.user(&one, Role::Owner).await;
        let demote = async |user: UserId| {
            let audit = fixture.audit(&one, "user.update", user.0);
            let patch = UserPatch {
                role: Some(Role::Member),
                ..UserPatch::default()
            };
            identities
                .update_user(None, one.tenant, user, patch, audit)
                .await
        };

        let both = futures::future::join(demote(one.user), demote(two.user)).await;

        let made = [both.0.is_ok(), both.1.is_ok()];
        assert_eq!(made.iter().filter(|made| **made).count(), 1);
    }
}

/// Who may change a user is asked of what he is when he is changed, not of what he was when he was read.
pub async fn a_user_is_changed_by_those_who_may_as_he_is_then(fixture: Fixture) {
    let identities = &fixture.stores.identities;
    let owner = fixture.tenant().await;
    let admin = fixture.user(&owner, Role::Admin).await;
    let promoted = fixture.user(&owner, Role::Member).await;
    let patch = UserPatch {
        role: Some(Role::Owner),
        ..UserPatch::default()
    };
    let change = async |by, user: UserId, patch: &UserPatch| {
        let audit = fixture.audit(&owner, "user.update", user.0);
        let patch = patch.clone();
        identities
            .update_user(Some(by), owner.tenant, user, patch, audit)
            .await
    };
    change(owner, promoted.user, &patch)
        .await
        .expect("an owner may");
    let before = identities.user(owner.tenant, promoted.user).await;

    let disabled = UserPatch {
        status: Some(UserStatus::Disabled),
        ..UserPatch::default()
    };
    for (user, patch) in [(promoted.user, &disabled), (admin.user, &patch)] {
        let refused = change(admin, user, patch).await;
        assert!(matches!(refused, Err(IdentityStoreError::Forbidden)));
    }

    let after = identities.user(owner.tenant, promoted.user).await;
    assert_eq!(after.expect("reads work"), before.expect("reads work"));
}

/// Tenants and users are listed newest first, page by page, and a user by himself.
pub async fn tenants_and_users_are_listed_newest_first(fixture: Fixture) {
    let identities = &fixture.stores.identities;
    let first = fixture.tenant().await;
    let second = fixture.tenant().await;
    fixture.clock.advance(Duration::from_secs(1));
    let third = fixture.tenant().await;
    let mut expected = vec![first.user];
    for n in 0..3 {
        expected.insert(0, fixture.user(&first, Role::Member).await.user);
        // Some share their moment with the one before.
        fixture.clock.advance(Duration::from_micros(n % 2));
    }
    fixture.set_tenant(&second, TenantStatus::Suspended).await;

    let (mut tenants, mut users, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let page = identities.tenants(PageRequest { limit: 2, after }).await;
        let page = page.expect("reads work");
        assert!(page.items.len() <= 2);
        tenants.extend(page.items.iter().map(|tenant| tenant.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    loop {
        let request = PageRequest { limit: 1, after };
        let page = identities.users(first.tenant, None, request).await;
        let page = page.expect("reads work");
        users.extend(page.items.iter().map(|user| user.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }

    assert_eq!(tenants, [third.tenant, second.tenant, first.tenant]);
    assert_eq!(users, expected);
    let himself = identities.users(first.tenant, Some(first.user), ALL).await;
    let himself = himself.expect("reads work");
    let found = identities.user(first.tenant, first.user).await;
    assert_eq!(
        himself.items.first(),
        found.expect("reads work").as_ref(),
        "as he is"
    );
    assert_eq!((himself.items.len(), himself.next), (1, None));
}
