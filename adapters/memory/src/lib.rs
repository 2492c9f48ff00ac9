//! Every store port as the domain's own rules behind one mutex: the specification that other stores are
//! compared with, and what unit tests use. Nothing outlives the process.
//!
//! A method takes the lock, decides, and only then changes anything, so what is refused leaves no
//! trace. No method waits.

mod agents;
mod audit;
mod idempotency;
mod identities;
mod pages;
mod runs;
mod session_row;
mod sessions;
mod state;
mod usage;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hango_ports::store::StoreHealth;
use hango_ports::{Clock, StoreFailure, Stores};

use crate::state::State;

/// All stores of one database that is not one.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

impl MemoryStore {
    /// An empty store that measures leases, and dates what it keeps, with `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            state: Mutex::default(),
        }
    }

    /// This store as each of its ports.
    #[must_use]
    pub fn stores(self: &Arc<Self>) -> Stores {
        Stores {
            runs: self.clone(),
            sessions: self.clone(),
            agents: self.clone(),
            identities: self.clone(),
            audit: self.clone(),
            usage: self.clone(),
            health: self.clone(),
        }
    }

    /// A method that panicked changed nothing before, or all it had to: see the crate's rules.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl StoreHealth for MemoryStore {
    async fn check(&self) -> Result<(), StoreFailure> {
        Ok(())
    }
}
