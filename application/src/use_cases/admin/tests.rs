//! What an operator does, over fakes of the stores.

use std::sync::Arc;

use hango_ports::Stores;
use hango_ports::identity_store::{IdentityStoreError, MockIdentityStore};

use super::super::RequestContext;
use super::super::fixtures::world;
use super::*;

fn key(secret: char) -> KeyText {
    let secret: String = std::iter::repeat_n(secret, 43).collect();
    KeyText::parse(&format!("hk_bootstrap001_{secret}")).unwrap()
}

#[tokio::test]
async fn a_bootstrap_key_opens_the_default_tenant_however_often_it_is_made() {
    let use_cases = world(|stores| stores).use_cases;
    for _ in 0..3 {
        use_cases.ensure_bootstrap(key('a')).await.unwrap();
    }

    let key = key('a');
    let opened = use_cases.authenticate(key.expose(), RequestContext::default());
    let caller = opened.await.unwrap();

    assert_eq!(caller.credential.tenant.slug, BOOTSTRAP_TENANT);
    assert_eq!(caller.credential.user.email, BOOTSTRAP_OWNER);
    assert_eq!(caller.scope.role, Role::Owner);
    let all = PageRequest {
        limit: 9,
        after: None,
    };
    assert_eq!(use_cases.tenants(all).await.unwrap().items.len(), 1);
    let other = use_cases.ensure_bootstrap(self::key('b')).await;
    assert!(matches!(other, Err(UseCaseError::PrefixTaken)), "{other:?}");
}

#[tokio::test]
async fn a_second_bootstrap_key_is_one_more_key_of_the_same_owner() {
    let use_cases = world(|stores| stores).use_cases;
    let second = KeyText::parse(&format!("hk_bootstrap002_{}", "b".repeat(43))).unwrap();
    use_cases.ensure_bootstrap(key('a')).await.unwrap();
    use_cases.ensure_bootstrap(second.clone()).await.unwrap();

    let open = async |key: &KeyText| {
        let opened = use_cases.authenticate(key.expose(), RequestContext::default());
        opened.await.unwrap().scope.user
    };

    assert_eq!(open(&key('a')).await, open(&second).await);
}

#[tokio::test]
async fn a_bootstrap_that_another_process_made_meanwhile_is_done() {
    let key = key('a');
    let mut made = world(|stores| stores).credential(Role::Owner);
    made.key.secret_hash = key.clone().minted().secret_hash;
    let mut identities = MockIdentityStore::new();
    identities
        .expect_credential()
        .times(1)
        .returning(|_| Ok(None));
    identities
        .expect_credential()
        .times(1)
        .return_once(move |_| Ok(Some(made)));
    identities
        .expect_tenant_by_slug()
        .times(1)
        .returning(|_| Ok(None));
    identities
        .expect_create_tenant()
        .times(1)
        .returning(|_, _, _, _| Err(IdentityStoreError::SlugTaken));
    let world = world(|stores| Stores {
        identities: Arc::new(identities),
        ..stores
    });

    assert!(world.use_cases.ensure_bootstrap(key).await.is_ok());
}

#[tokio::test]
async fn a_new_default_key_leaves_those_before_as_they_are_and_one_in_their_place_does_not() {
    let use_cases = world(|stores| stores).use_cases;
    use_cases.ensure_bootstrap(key('a')).await.unwrap();
    let (_, first) = use_cases.new_default_key("quickstart").await.unwrap();
    let (_, second) = use_cases.new_default_key("quickstart").await.unwrap();

    let open = async |key: &KeyText| {
        let opened = use_cases.authenticate(key.expose(), RequestContext::default());
        opened.await.map(|caller| caller.scope.user)
    };

    let owner = open(&key('a')).await.unwrap();
    assert_ne!(first, second);
    assert_eq!(open(&first).await.unwrap(), owner);
    assert_eq!(open(&second).await.unwrap(), owner);

    let (_, third) = use_cases.replace_default_key("quickstart").await.unwrap();

    for replaced in [&first, &second] {
        assert!(open(replaced).await.is_err());
    }
    for good in [&third, &key('a')] {
        assert_eq!(open(good).await.unwrap(), owner, "another name's stay");
    }
}

#[tokio::test]
async fn a_tenant_needs_a_slug_and_somebody_to_write_to() {
    let use_cases = world(|stores| stores).use_cases;
    let new = NewTenant {
        slug: "Not A Slug".to_owned(),
        name: Some(" ".to_owned()),
        owner_email: "nobody".to_owned(),
        owner_name: Some("\u{202e}".to_owned()),
    };

    let nobody = RequestContext::default();
    let refused = use_cases.create_tenant(&nobody, Input::new(new)).await;

    let Err(UseCaseError::Invalid(faults)) = refused else {
        panic!("{refused:?}");
    };
    let at: Vec<_> = faults.iter().map(|fault| &*fault.pointer).collect();
    assert_eq!(at, ["/slug", "/name", "/owner/email", "/owner/name"]);
}
