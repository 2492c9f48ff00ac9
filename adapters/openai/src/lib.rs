//! Models behind the OpenAI chat completions protocol, OpenAI's own and those of the many servers that
//! speak it.
//!
//! A call is one `POST {base_url}/chat/completions` with `stream: true`. What all providers over HTTP
//! have in common is in `hango_provider_http`; here is what is this protocol's own:
//!
//! * `request` is the way out;
//! * `chunk` gives an event's JSON its types, as forgiving as the servers are various;
//! * `mapping` turns chunks into hango's [`StreamEvent`](hango_domain::model::StreamEvent)s, with
//!   `calls` telling the fragments of several tool calls apart.

mod calls;
mod chunk;
mod mapping;
mod provider;
mod request;

#[cfg(test)]
mod cuts;

pub use hango_provider_http::{Settings, SettingsError};
pub use provider::OpenAiProvider;
