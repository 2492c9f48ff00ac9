//! Every store port on SQLite, the embedded default: nothing to install, nothing lost in a crash.
//!
//! * One `writer`: all changes go through one thread with the one connection that writes, and
//!   what waits there is committed together. Readers have connections of their own beside it (WAL).
//! * The rules are the domain's. A change of a run loads its row, asks
//!   [`Run::apply`](hango_domain::run::Run::apply) and stores what that answers, in one exclusive
//!   transaction; SQL repeats the fence, and the table makes illegal rows impossible.
//! * Rows are decoded in one place (`rows`), and what cannot be decoded names its column.
//! * Ids are hyphenated text, moments are microseconds, structures are JSON: an operator can read the
//!   file with any SQLite tool.

mod agents;
mod audit;
mod error;
mod file;
mod idempotency;
mod identities;
mod messages;
mod migrate;
mod open;
mod rows;
mod runs;
mod sessions;
#[cfg(test)]
mod testing;
mod usage;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hango_domain::queue::SetAside;
use hango_ports::store::{Connections, StoreHealth};
use hango_ports::{Clock, StoreFailure, Stores};
use sqlx::SqlitePool;

pub use migrate::{MigrateError, Migration, migrations};
pub use open::{OpenError, Options};

use crate::error::Error;
use crate::writer::{Urgency, Writer};

/// All stores of one SQLite file. Made by [`SqliteStore::open`].
pub struct SqliteStore {
    writer: Writer,
    readers: SqlitePool,
    clock: Arc<dyn Clock>,
    /// The runs that it could not read.
    aside: Arc<SetAside>,
    path: PathBuf,
    execute: bool,
    patience: Duration,
}

impl SqliteStore {
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

#[async_trait]
impl StoreHealth for SqliteStore {
    /// Goes through the writer: its thread has to live and to get the lock for writing.
    async fn check(&self) -> Result<(), StoreFailure> {
        self.writer
            .write(Urgency::Normal, async |conn| {
                sqlx::query("select id from tenants limit 1")
                    .fetch_optional(conn)
                    .await
                    .map_err(Error::from)?;
                Ok(())
            })
            .await
    }

    /// Those of readers.
    fn connections(&self) -> Option<Connections> {
        let limit = self.readers.options().get_max_connections() as usize;
        let open = self.readers.size() as usize;
        Some(Connections {
            in_use: open.saturating_sub(self.readers.num_idle()),
            limit,
        })
    }
}
