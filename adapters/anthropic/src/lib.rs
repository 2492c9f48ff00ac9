//! Models behind Anthropic's Messages API, Anthropic's own and those of other servers that speak it.
//!
//! A call is one `POST {base_url}/v1/messages` with `stream: true`. What all providers over HTTP have in
//! common is in `hango_provider_http`; here is what is this protocol's own:
//!
//! * `request` is the way out;
//! * `frame` tells an event's class: known, unknown, or corrupt;
//! * `mapping` turns frames into hango's [`StreamEvent`](hango_domain::model::StreamEvent)s: `blocks`
//!   puts the answer's blocks together out of their `members`, `bill` what they cost.
//!
//! What hango has no word for is kept: members of a block beside those it knows, and whole blocks of
//! other kinds. All of it goes back where it came from, to the same provider as the same model, and
//! nowhere else. So does reasoning, which its provider takes back unchanged or not at all.

mod bill;
mod blocks;
mod frame;
mod mapping;
mod members;
mod provider;
mod quirk;
mod request;
#[cfg(feature = "testing")]
pub mod testing;

#[cfg(test)]
mod cuts;

pub use hango_provider_http::{Settings, SettingsError};
pub use provider::AnthropicProvider;
pub use quirk::{Quirk, UnknownQuirk};
