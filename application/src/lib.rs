//! What hango does with its ports: the use cases of the API, and the engine that executes runs.
//!
//! * `use_cases` answer callers: each checks access, asks a store for one atomic change, and gives a
//!   hint to whoever waits for it.
//! * the engine executes: it claims, drives, renews, sweeps and drains.
//!
//! Nothing here knows which adapter is behind a port.

pub mod engine;
pub mod live;
pub mod signals;
mod story;
pub mod telemetry;
pub mod use_cases;
