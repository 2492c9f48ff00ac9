//! Models behind OpenAI's protocols, OpenAI's own and those of the many servers that speak them.
//!
//! What all providers over HTTP have in common is in `hango_provider_http`; here is what is these
//! protocols' own: `chat` completions, which nearly everybody speaks, and `responses`, in which models
//! that reason get their reasoning back. An operator says which protocol ([`Api`]), and what is odd about
//! a server ([`Quirk`]).

mod api;
mod chat;
mod provider;
mod quirk;
mod responses;
#[cfg(feature = "testing")]
pub mod testing;

pub use api::{Api, UnknownApi};
pub use hango_provider_http::{Settings, SettingsError};
pub use provider::OpenAiProvider;
pub use quirk::{Quirk, UnknownQuirk};
