//! What the tests have in common.

mod clock;
mod provider;
mod settings;
mod store;
mod tools;
mod wait;
mod watch;
mod world;

pub(crate) use provider::{Call, Say, asks, says};
pub(crate) use settings::{failed_with, settings, texts};
pub(crate) use store::{Fault, lease_of};
pub(crate) use tools::Does;
pub(crate) use world::{Process, World};
