//! Every store port on PostgreSQL: for work that matters to more than one machine.
//!
//! * The rules are the domain's. SQL repeats a fence or a selection in literal text that names the
//!   rule; the tables make illegal rows impossible.
//! * Several processes share the database, so every check is a lock, or a condition on the row that is
//!   updated: a statement's subqueries are read before it waits for a lock.
//! * A change is one statement where it can be one. Every use of a connection runs in a task of its
//!   own (`pool`), which dropping the caller does not interrupt and whose time is bounded.
//! * One connection is kept for renewals and sweeps (`lane`), on a runtime of its own.
//! * The database's clock decides every moment (`clock`), unless a test brings one.
//! * Rows are decoded in one place (`rows`), and what cannot be decoded names its column.

mod agents;
mod audit;
mod clock;
mod error;
mod health;
mod idempotency;
mod identities;
mod lane;
mod messages;
mod migrate;
mod open;
mod pages;
mod pool;
mod rows;
mod runs;
mod sessions;
mod start;
mod statement;
#[cfg(test)]
mod testing;
mod usage;
mod wake_up;

use std::sync::Arc;

use hango_domain::queue::SetAside;
use hango_ports::Stores;
use sqlx::postgres::PgConnectOptions;

pub use migrate::{MigrateError, Migration, migrations};
pub use open::{OpenError, Options, check_url};
pub use wake_up::PostgresWakeUp;

use crate::clock::StoreClock;
use crate::lane::Lane;
use crate::pool::Pool;
use crate::runs::HeldRuns;

/// All stores of one PostgreSQL database. Made by [`PostgresStore::open`].
pub struct PostgresStore {
    /// Connections for whoever asks.
    pub(crate) pool: Pool,
    /// The same, for those who claim and hold runs.
    pub(crate) holders: Pool,
    /// The connection for renewals, sweeps and cancels.
    pub(crate) lane: Lane,
    /// What leases are measured with.
    pub(crate) clock: StoreClock,
    /// What it remembers of the runs that it holds.
    pub(crate) held: HeldRuns,
    /// The runs that it could not read.
    pub(crate) aside: Arc<SetAside>,
    /// How to connect past a pooler.
    pub(crate) direct: PgConnectOptions,
}

impl PostgresStore {
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
}
