//! What the tests stand on: the real process, a provider and a tool server that keep their own logs, a
//! client, and a checker that compares all of them with what hango says.

pub(crate) mod api;
pub(crate) mod collector;
pub(crate) mod gate;
pub(crate) mod hango;
pub(crate) mod history;
pub(crate) mod home;
pub(crate) mod messages;
pub(crate) mod provider;
pub(crate) mod reply;
pub(crate) mod store;
pub(crate) mod strict;
pub(crate) mod tools;
pub(crate) mod until;
pub(crate) mod world;
