//! What people, models and tools said to each other.
//!
//! A conversation is a list of [`Message`]s; a message is a list of [`Block`]s. Everything a
//! provider knows that hango does not is kept in [`ProviderData`], and sent back only to where it
//! came from.

mod block;
#[cfg(test)]
mod fixtures;
mod message;
mod repair;
mod unique;
mod usage;
mod validate;

pub(crate) use block::json_bytes;
pub use block::{Block, ProviderData};
pub use message::{Message, NewMessage, Role};
pub use repair::{Repair, Repaired, dangling_results, repair};
pub(crate) use unique::UniqueIds;
pub use usage::{StopReason, Usage};
pub use validate::{Illegal, is_blank, validate};
