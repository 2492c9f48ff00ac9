//! Requests that carry an idempotency key: what the first one made is the answer of each that repeats it.

use hango_domain::SessionId;
use hango_ports::StoreFailure;
use hango_ports::idempotency::{FirstAnswer, IdempotencyKey, Repeated};
use serde::de::DeserializeOwned;

use super::{Caller, UseCaseError, UseCases};

/// What a request made, or another before it that had its key.
#[derive(Clone, Debug, PartialEq)]
pub struct Made<T> {
    /// The thing, as it was when it was made.
    pub thing: T,
    /// Whether it was made before.
    pub replayed: bool,
}

impl<T> Made<T> {
    /// What was made now.
    pub(super) const fn new(thing: T) -> Self {
        Self {
            thing,
            replayed: false,
        }
    }
}

impl UseCases {
    /// What to answer where the key of a request was used before. For a `session` that is not there for the
    /// caller, any more or at all, nothing: what was in it went with it.
    pub(super) async fn repeated<T: DeserializeOwned>(
        &self,
        caller: &Caller,
        session: Option<SessionId>,
        once: Option<&IdempotencyKey>,
        repeated: Repeated,
    ) -> Result<Made<T>, UseCaseError> {
        if let Some(session) = session {
            self.session(caller, session).await?;
        }
        if let Repeated::Answered(first) = &repeated
            && once.is_some_and(|key| key.body == first.body)
        {
            let thing = read(caller, first)?;
            return Ok(Made {
                thing,
                replayed: true,
            });
        }
        Err(repeated.into())
    }
}

impl From<Repeated> for UseCaseError {
    fn from(repeated: Repeated) -> Self {
        match repeated {
            Repeated::Answered(_) => Self::IdempotencyKeyReused,
            Repeated::InFlight => Self::IdempotencyInFlight,
        }
    }
}

fn read<T: DeserializeOwned>(caller: &Caller, first: &FirstAnswer) -> Result<T, StoreFailure> {
    T::deserialize(&first.answer).map_err(|error| StoreFailure::Corrupt {
        table: "idempotency_keys",
        column: "answer",
        row: format!("user {}", caller.scope.user),
        source: error.into(),
    })
}
