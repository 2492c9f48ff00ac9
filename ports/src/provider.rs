//! Where models are asked.

use std::pin::Pin;

use async_trait::async_trait;
use futures_core::Stream;
use hango_domain::model::{ModelCall, ModelFailure, StreamEvent};

/// An answer as it arrives. The stream is complete only if it held a stop before its end; whether it
/// did is for the accumulator to say. Dropping it closes the connection.
pub type AnswerStream = Pin<Box<dyn Stream<Item = Result<StreamEvent, ModelFailure>> + Send>>;

/// Where a server is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServerAddress {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// A model provider that an operator configured.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait Provider: Send + Sync {
    /// The kind of its protocol, for people.
    fn kind(&self) -> &'static str;

    /// Where its server is, for people; `None` if it has none.
    fn server(&self) -> Option<ServerAddress> {
        None
    }

    /// Sends a call. Returns when the answer begins; an error is one try that failed, and the engine
    /// alone decides whether there is another.
    ///
    /// The adapter limits the wait for a connection, for the first byte and between two.
    async fn stream(&self, call: ModelCall) -> Result<AnswerStream, ModelFailure>;
}
