//! The engine over the in-memory store, a scripted provider and tools that are watched.
//!
//! Where a test speaks of time it runs on tokio's paused clock, and the store's clock goes with it;
//! where it speaks of renewal, whose thread has real time of its own, times are short and conditions
//! are waited for. Nothing sleeps for a fixed time and hopes.

mod batches;
mod cancel;
mod census;
mod crashes;
mod deadlines;
mod deltas;
mod drain;
mod founding;
mod gate;
mod hints;
mod layers;
mod leases;
mod life;
mod processes;
mod pruning;
mod queue;
mod retries;
mod standing;
mod support;
mod unprepared;
mod writes;
