//! What a run's layers remember between turns, attempts and processes.

/// The format in which this build stores a run's memory; it reads this one and every older one.
pub const MEMORY_VERSION: u32 = 1;
