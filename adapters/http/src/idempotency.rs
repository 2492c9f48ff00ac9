//! The `Idempotency-Key` of a request that makes something, and what tells that it was made before.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use hango_application::use_cases::{Caller, Fault, FaultCode, Input};
use hango_ports::idempotency::IdempotencyKey;
use http::HeaderName;
use http::request::Parts;
use sha2::{Digest, Sha256};

use crate::body::JsonBody;
use crate::envelope::only;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The most characters of a key.
const LONGEST: usize = 255;

/// What the header says: nothing, a key, or something that is none.
pub(crate) enum KeyHeader {
    None,
    Key(String),
    Malformed,
}

/// A header of an answer that was given before.
pub(crate) type Replayed = Option<[(HeaderName, &'static str); 1]>;

impl KeyHeader {
    /// The key, with all that belongs to it, of a `call`: a method and a path that names no more than ids.
    pub(crate) fn of(
        &self,
        caller: &Caller,
        call: impl Into<String>,
        body: &JsonBody,
    ) -> Option<IdempotencyKey> {
        let Self::Key(key) = self else { return None };
        Some(IdempotencyKey {
            tenant: caller.scope.tenant,
            user: caller.scope.user,
            call: call.into(),
            key: key.clone(),
            body: Sha256::digest(body.bytes()).into(),
        })
    }

    /// What was sent, with what is wrong with the header.
    pub(crate) fn judge<T>(&self, sent: Input<T>) -> Input<T> {
        sent.judged(|_, faults| {
            if matches!(self, Self::Malformed) {
                let detail = format!("a key is 1 to {LONGEST} visible ASCII characters, said once");
                let fault = Fault::new("/idempotency-key", FaultCode::InvalidFormat, detail);
                faults.push(fault);
            }
        })
    }
}

/// The header that says so, where an answer was given before.
pub(crate) fn replayed(replayed: bool) -> Replayed {
    replayed.then_some([(REPLAYED, "true")])
}

impl<S: Send + Sync> FromRequestParts<S> for KeyHeader {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        if !parts.headers.contains_key(KEY) {
            return Ok(Self::None);
        }
        let is_key = |key: &&str| {
            (1..=LONGEST).contains(&key.len()) && key.bytes().all(|c| c.is_ascii_graphic())
        };
        let key = only(&parts.headers, &KEY).filter(is_key);
        Ok(key.map_or(Self::Malformed, |key| Self::Key(key.to_owned())))
    }
}
