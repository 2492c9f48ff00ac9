//! Keys by which callers repeat requests that make something, so that it is made once.
//!
//! A store keeps what came of a key in the transaction that makes it: so there is a first answer exactly
//! where something was made, and a refused request leaves none. A key is good for
//! [a day](hango_domain::retention::ANSWERS_KEPT), by the store's clock. Whose it is and what it is for
//! belongs to it: the same word of another user, or for another path, is another key.

use hango_domain::{TenantId, UserId};
use serde_json::Value;
use thiserror::Error;

/// A key that a caller gave a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IdempotencyKey {
    /// The tenant.
    pub tenant: TenantId,
    /// Whose key it is.
    pub user: UserId,
    /// What is asked for: the method and the path, which name no more than ids.
    pub call: String,
    /// The key itself.
    pub key: String,
    /// SHA-256 of the request's body.
    pub body: [u8; 32],
}

/// What the first request with a key got.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstAnswer {
    /// SHA-256 of that request's body.
    pub body: [u8; 32],
    /// What was made, as it was then.
    pub answer: Value,
}

/// Why nothing was made: there was a request with the same key before. Nothing was changed.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Repeated {
    /// It made something.
    #[error("the idempotency key was used before")]
    Answered(FirstAnswer),
    /// It is not done yet, and was waited for.
    #[error("the first request with this idempotency key is not answered yet")]
    InFlight,
}
