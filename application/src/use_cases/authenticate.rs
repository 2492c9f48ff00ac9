//! Who is calling.
//!
//! Whatever is wrong with a key, its user or his tenant, the answer is one and the same. An unknown
//! prefix costs what a known one does.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hango_domain::people::{ApiKey, may_act};
use hango_domain::{ApiKeyId, Timestamp};
use hango_ports::StoreFailure;
use hango_ports::identity_store::IdentityStoreError;
use subtle::ConstantTimeEq;
use thiserror::Error;

use super::{Caller, RequestContext, UseCases, keys};

/// How often a key's use is noted at most.
const TOUCH_EVERY: Duration = Duration::from_mins(1);

/// Compared with when there is no such key. No secret is known to have this hash.
const NOBODY: [u8; 32] = [0; 32];

/// Why a caller was not let in.
#[derive(Debug, Error)]
pub enum Unauthenticated {
    /// He has no key that opens anything.
    #[error("the key opens nothing")]
    Refused,
    /// Nobody could look it up.
    #[error(transparent)]
    Failure(#[from] StoreFailure),
}

/// When keys were noted to be in use, so that not every request writes.
#[derive(Debug, Default)]
pub(super) struct Touches(Mutex<HashMap<ApiKeyId, Timestamp>>);

impl UseCases {
    /// Lets a caller in who presents a valid key.
    pub async fn authenticate(
        &self,
        key: &str,
        request: RequestContext,
    ) -> Result<Caller, Unauthenticated> {
        let (prefix, secret) = keys::parts(key).ok_or(Unauthenticated::Refused)?;
        let presented = keys::hash(secret);
        let found = match self.stores.identities.credential(prefix).await {
            Ok(found) => found,
            Err(IdentityStoreError::Failure(failure)) => return Err(failure.into()),
            Err(
                IdentityStoreError::NotFound
                | IdentityStoreError::SlugTaken
                | IdentityStoreError::EmailTaken
                | IdentityStoreError::PrefixTaken
                | IdentityStoreError::Forbidden
                | IdentityStoreError::LastOwner,
            ) => None,
        };
        let expected = found.as_ref().map_or(&NOBODY, |it| &it.key.secret_hash);
        let same = bool::from(presented.ct_eq(expected));
        let now = self.clock.now();
        let credential = found
            .filter(|it| same && may_act(&it.key, &it.user, &it.tenant, now))
            .ok_or(Unauthenticated::Refused)?;
        self.touch(&credential.key, now);
        Ok(Caller::new(credential, request))
    }

    /// Notes beside the request that the key is in use, if nobody did lately.
    fn touch(&self, key: &ApiKey, now: Timestamp) {
        let recent = |at: Timestamp| now.since(at) < TOUCH_EVERY;
        if key.last_used_at.is_some_and(recent) || !self.touches.begin(key.id, now) {
            return;
        }
        let identities = self.stores.identities.clone();
        let key = key.id;
        tokio::spawn(async move {
            if let Err(error) = identities.touch(key).await {
                tracing::debug!(%key, %error, "the use of a key was not noted");
            }
        });
    }
}

impl Touches {
    /// Whether `key` is to be noted now; then it is not again for a while.
    fn begin(&self, key: ApiKeyId, now: Timestamp) -> bool {
        let mut touched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = |at: Timestamp| now.since(at) < TOUCH_EVERY;
        if touched.get(&key).is_some_and(|at| recent(*at)) {
            return false;
        }
        touched.retain(|_, at| recent(*at));
        touched.insert(key, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hango_domain::access::Role;
    use hango_ports::Stores;
    use hango_ports::identity_store::MockIdentityStore;
    use uuid::Uuid;

    use super::super::fixtures::world;
    use super::*;

    #[test]
    fn a_key_in_constant_use_is_noted_once_a_minute() {
        let touches = Touches::default();
        let key = ApiKeyId(Uuid::from_u128(1));
        let begin = Timestamp::from_micros(0);

        let noted = (0..180)
            .filter(|second| touches.begin(key, begin.plus(Duration::from_secs(*second))))
            .count();

        assert_eq!(noted, 3);
        assert!(touches.begin(ApiKeyId(Uuid::from_u128(2)), begin));
    }

    #[tokio::test]
    async fn a_key_whose_use_cannot_be_noted_is_good_all_the_same() {
        let secret = "s".repeat(43);
        let mut credential = world(|stores| stores).credential(Role::Member);
        credential.key.secret_hash = keys::hash(&secret);
        let expected = credential.clone();
        let mut identities = MockIdentityStore::new();
        identities
            .expect_credential()
            .withf(|prefix| prefix == "bootstrap001")
            .returning(move |_| Ok(Some(credential.clone())));
        identities
            .expect_touch()
            .times(1)
            .returning(|_| Err(StoreFailure::Unavailable("gone".into()).into()));
        let world = world(|stores| Stores {
            identities: Arc::new(identities),
            ..stores
        });
        let key = format!("hk_bootstrap001_{secret}");

        for _ in 0..3 {
            let request = RequestContext::default();
            let caller = world.use_cases.authenticate(&key, request).await;
            assert_eq!(
                caller.ok().map(|caller| caller.credential),
                Some(expected.clone())
            );
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn nobody_is_called_unknown_because_the_store_is_gone() {
        let mut identities = MockIdentityStore::new();
        identities
            .expect_credential()
            .returning(|_| Err(StoreFailure::Unavailable("gone".into()).into()));
        let world = world(|stores| Stores {
            identities: Arc::new(identities),
            ..stores
        });
        let key = format!("hk_bootstrap001_{}", "s".repeat(43));

        let refused = world
            .use_cases
            .authenticate(&key, RequestContext::default())
            .await;

        assert!(
            matches!(refused, Err(Unauthenticated::Failure(_))),
            "{refused:?}"
        );
    }
}
