//! Models behind the OpenAI chat completions protocol, OpenAI's own and those of the many servers that
//! speak it.
//!
//! A call is one `POST {base_url}/chat/completions` with `stream: true`. On its way back the answer
//! passes three stations, each a module that can be tested alone:
//!
//! * `wire` turns the response's bytes into server-sent events, within limits of time and size;
//! * `chunk` gives an event's JSON its types, as forgiving as the servers are various;
//! * `mapping` turns chunks into hango's [`StreamEvent`](hango_domain::model::StreamEvent)s, with
//!   `calls` telling the fragments of several tool calls apart.
//!
//! `request` is the way out, `failure` says what an error means. Nothing here tries again: the engine
//! alone decides that. Nothing here tells the key, or an address that might hold one, to anybody.
//!
//! reqwest is built without a cryptography provider: whoever starts the process installs one first.

mod calls;
mod chunk;
mod failure;
mod mapping;
mod provider;
mod request;
mod wire;

#[cfg(test)]
mod fixtures;

pub use provider::{OpenAiProvider, Settings, SettingsError};
