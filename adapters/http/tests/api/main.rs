//! The HTTP contract, held: requests to the router over the memory store.

#![expect(
    clippy::unwrap_used,
    reason = "what cannot go wrong in a test fails it"
)]

mod agents;
mod bodies;
mod conventions;
mod lists;
mod runs;
mod serving;
mod sessions;
mod support;
mod tenancy;
