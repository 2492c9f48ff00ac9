//! The configured store: the one place that knows that there are two kinds.

use std::fmt;
use std::sync::Arc;

use anyhow::Context;
use hango_ports::wake_up::Alone;
use hango_ports::{Clock, Ids as _, Stores, WakeUp};
use hango_postgres::{PostgresStore, PostgresWakeUp};
use hango_sqlite::SqliteStore;
use secrecy::ExposeSecret;

use crate::config::{Database, Settings};
use crate::system::SystemIds;

/// Connections of SQLite that do not read: the writer's, and the one that changes the schema.
const NOT_READERS: u32 = 2;

/// A store.
pub(crate) enum Store {
    /// A file.
    Sqlite(Arc<SqliteStore>),
    /// A database server, with the way to this database's other processes.
    Postgres(Arc<PostgresStore>, Arc<PostgresWakeUp>),
}

/// A step of the schema.
pub(crate) struct Step {
    version: i64,
    description: String,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.version, self.description)
    }
}

/// Why the schema could not be read or changed.
pub(crate) struct SchemaError {
    error: anyhow::Error,
    /// Whether it may succeed later although nobody does anything about it.
    pub(crate) passes: bool,
}

impl From<SchemaError> for anyhow::Error {
    fn from(error: SchemaError) -> Self {
        error.error
    }
}

impl From<hango_sqlite::MigrateError> for SchemaError {
    fn from(error: hango_sqlite::MigrateError) -> Self {
        Self {
            error: error.into(),
            // Its file is held, and nobody else is in the way.
            passes: false,
        }
    }
}

impl From<hango_postgres::MigrateError> for SchemaError {
    fn from(error: hango_postgres::MigrateError) -> Self {
        Self {
            passes: error.passes(),
            error: error.into(),
        }
    }
}

impl Store {
    /// Opens the store. `execute` takes an embedded one for this process alone, and makes it where there
    /// is none; `clock` is that one's. A server is not asked for anything yet: it may not be there.
    pub(crate) async fn open(
        settings: &Settings,
        clock: Arc<dyn Clock>,
        execute: bool,
    ) -> anyhow::Result<Self> {
        let connections = settings.database_max_connections;
        let opened = match &settings.database {
            Database::Sqlite(file) => {
                let options = hango_sqlite::Options {
                    readers: connections.saturating_sub(NOT_READERS),
                    ..hango_sqlite::Options::new(clock, execute)
                };
                let store = SqliteStore::open(file, options).await;
                store
                    .map(|store| Self::Sqlite(Arc::new(store)))
                    .map_err(anyhow::Error::from)
            }
            Database::Postgres(url) => {
                let direct = settings.database_direct.as_ref();
                let direct = direct.and_then(Database::url);
                let options = hango_postgres::Options {
                    direct_url: direct.map(|url| url.expose_secret().to_owned()),
                    max_connections: connections,
                    ..hango_postgres::Options::new(url.expose_secret())
                };
                let store = PostgresStore::open(options);
                store
                    .map(|store| {
                        let wake_up = store.wake_up(SystemIds.uuid());
                        Self::Postgres(Arc::new(store), Arc::new(wake_up))
                    })
                    .map_err(anyhow::Error::from)
            }
        };
        opened.context("cannot open the store")
    }

    /// This store as each of its ports.
    pub(crate) fn stores(&self) -> Stores {
        match self {
            Self::Sqlite(store) => store.stores(),
            Self::Postgres(store, _) => store.stores(),
        }
    }

    /// The way to the other processes of this store.
    pub(crate) fn wake_up(&self) -> Arc<dyn WakeUp> {
        match self {
            Self::Sqlite(_) => Arc::new(Alone),
            Self::Postgres(_, wake_up) => Arc::clone(wake_up) as _,
        }
    }

    /// Whether no other process can execute runs of it.
    pub(crate) fn is_exclusive(&self) -> bool {
        matches!(self, Self::Sqlite(_))
    }

    /// Brings the schema to what this build needs; the steps that this took.
    pub(crate) async fn migrate(&self) -> Result<Vec<Step>, SchemaError> {
        Ok(match self {
            Self::Sqlite(store) => steps(store.migrate().await?),
            Self::Postgres(store, _) => steps(store.migrate().await?),
        })
    }

    /// Takes the last `count` steps back, with all that they hold; which those were.
    pub(crate) async fn migrate_down(&self, count: usize) -> Result<Vec<Step>, SchemaError> {
        Ok(match self {
            Self::Sqlite(store) => steps(store.migrate_down(count).await?),
            Self::Postgres(store, _) => steps(store.migrate_down(count).await?),
        })
    }

    /// The steps that the schema lacks.
    pub(crate) async fn pending(&self) -> Result<Vec<Step>, SchemaError> {
        Ok(match self {
            Self::Sqlite(store) => steps(store.pending().await?),
            Self::Postgres(store, _) => steps(store.pending().await?),
        })
    }

    /// Closes it: what was begun is ended, the other processes are told what is left to them, and its
    /// connections go last.
    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(store) => store.close().await,
            Self::Postgres(store, wake_up) => {
                wake_up.close().await;
                store.close().await;
            }
        }
    }
}

/// The steps that a store lacks which is not there yet and would be made; `None` where it has to be
/// looked at.
pub(crate) fn all_steps(settings: &Settings) -> Option<Vec<Step>> {
    match &settings.database {
        Database::Sqlite(file) if !file.exists() => Some(steps(hango_sqlite::migrations())),
        Database::Sqlite(_) | Database::Postgres(_) => None,
    }
}

fn steps<M: Into<Step>>(migrations: Vec<M>) -> Vec<Step> {
    migrations.into_iter().map(Into::into).collect()
}

impl From<hango_sqlite::Migration> for Step {
    fn from(step: hango_sqlite::Migration) -> Self {
        Self {
            version: step.version,
            description: step.description,
        }
    }
}

impl From<hango_postgres::Migration> for Step {
    fn from(step: hango_postgres::Migration) -> Self {
        Self {
            version: step.version,
            description: step.description,
        }
    }
}
