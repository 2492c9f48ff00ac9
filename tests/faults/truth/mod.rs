//! The truth outside of hango: what its provider, its tools and its clients saw, each in a log of its
//! own. Whatever hango says afterwards is compared with these.

pub(crate) mod client;
pub(crate) mod provider;
pub(crate) mod tools;
