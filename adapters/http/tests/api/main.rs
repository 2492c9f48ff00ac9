//! The HTTP contract, held: requests to the router over the memory store.

#![expect(
    clippy::unwrap_used,
    reason = "what cannot go wrong in a test fails it"
)]

mod agents;
mod audit;
mod bodies;
mod connections;
mod conventions;
mod explain;
mod hostile;
mod idempotency;
mod keys;
mod lists;
mod openapi;
mod operators;
mod rates;
mod runs;
mod serving;
mod sessions;
mod support;
mod tenancy;
mod traces;
mod usage;
mod users;
