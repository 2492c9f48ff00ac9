//! What providers have in common that are asked by an HTTP request and answer with server-sent events.
//!
//! A provider's own crate knows a protocol: how a call is [written](Protocol) as a request, and what the
//! events of an answer [mean](Dialect). Everything else is here, once:
//!
//! * `settings` is what an operator configures;
//! * `remote` is the HTTP client, and one call from request to the answer's beginning;
//! * `sse` turns bytes into events;
//! * `wire` turns a response into the answer's stream, within limits of time and size;
//! * `failure` says what an error means, whether it comes as a status or within a stream.
//!
//! Nothing here tries again: the engine alone decides that. Nothing here tells the key, or an address
//! that might hold one, to anybody.
//!
//! reqwest is built without a cryptography provider: whoever starts the process installs one first.

mod failure;
mod remote;
mod settings;
mod sse;
#[cfg(feature = "testing")]
pub mod testing;
mod wire;

pub use failure::{Origin, error_of};
pub use remote::{Protocol, Remote};
pub use settings::{Settings, SettingsError};
pub use sse::{Corrupt, Decoder, Event};
pub use wire::{Dialect, Flow, Patience, answer};
