//! Opening the configured store.

use std::sync::Arc;

use anyhow::Context;
use hango_ports::Clock;
use hango_sqlite::{Options, SqliteStore};

use crate::config::Settings;

/// Connections that do not read: the writer's, and the one that changes the schema.
const NOT_READERS: u32 = 2;

/// Opens the store. `execute` takes it for this process alone, and makes it where there is none.
pub(crate) async fn open(
    settings: &Settings,
    clock: Arc<dyn Clock>,
    execute: bool,
) -> anyhow::Result<Arc<SqliteStore>> {
    let options = Options {
        readers: settings
            .database_max_connections
            .saturating_sub(NOT_READERS),
        ..Options::new(clock, execute)
    };
    let store = SqliteStore::open(&settings.database, options)
        .await
        .context("cannot open the store")?;
    Ok(Arc::new(store))
}
