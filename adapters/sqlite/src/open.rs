//! Opening and closing a database.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hango_ports::Clock;
use hango_ports::store::BoxError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection, SqliteConnection};
use thiserror::Error;

use crate::error::{CANTOPEN, CORRUPT, NOTADB, READONLY, code};
use crate::writer::Writer;
use crate::{SqliteStore, file};

/// The oldest SQLite that is safe: before it, a reset of the write-ahead log could lose a commit.
const OLDEST_SAFE: [u32; 3] = [3, 51, 3];

/// Every statement of this crate stays prepared.
const STATEMENTS: usize = 256;

/// How a database is opened.
#[derive(Clone)]
pub struct Options {
    /// What leases are measured with, and rows dated.
    pub clock: Arc<dyn Clock>,
    /// Whether this process will execute runs or change the schema, which one process at a time may do,
    /// and which makes a database where there is none. An administrator's tool says no, and works
    /// beside a running server.
    pub execute: bool,
    /// The most connections that read at once.
    pub readers: u32,
    /// How long a connection waits for another process that writes, and a caller for a connection.
    pub patience: Duration,
}

impl Options {
    /// The options that fit a server, or a tool beside one.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, execute: bool) -> Self {
        Self {
            clock,
            execute,
            readers: 4,
            patience: Duration::from_secs(5),
        }
    }
}

/// Why a database was not opened. Nothing was changed.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process executes runs on it.
    #[error(
        "another hango process executes runs on {}: stop it first, or use another file",
        path.display()
    )]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// There is none, and nobody asked to make one.
    #[error(
        "there is no database at {}: start the server or migrate once, or correct the path",
        path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file or its directory cannot be read and written.
    #[error(
        "{} cannot be used: this process must be able to read and write it, and to make files beside it",
        path.display()
    )]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: BoxError,
    },
    /// The file is not a whole SQLite database.
    #[error(
        "{} is not a whole SQLite database: restore it from a backup, or move it away to begin anew",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        source: BoxError,
    },
    /// The SQLite library is one that can lose commits.
    #[error("SQLite {found} can lose commits in write-ahead mode: 3.51.3 or newer is needed")]
    OldSqlite {
        /// Its version.
        found: String,
    },
    /// Something else; it may help to try again.
    #[error("{} could not be opened", path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// What the driver said.
        source: BoxError,
    },
}

impl OpenError {
    /// What an error of the driver means while `path` is being opened.
    pub(crate) fn of(path: &Path, error: sqlx::Error) -> Self {
        let path = path.to_owned();
        let code = code(&error);
        let source = error.into();
        match code {
            Some(READONLY | CANTOPEN) => Self::Unusable { path, source },
            Some(CORRUPT | NOTADB) => Self::Damaged { path, source },
            _ => Self::Failed { path, source },
        }
    }
}

impl SqliteStore {
    /// Opens the database at `path`; its schema is what [`migrate`](Self::migrate) last made of it.
    pub async fn open(path: impl Into<PathBuf>, options: Options) -> Result<Self, OpenError> {
        let path = file::behind_links(path.into());
        let lock = file::prepare(&path, options.execute).await?;
        let of_driver = |error| OpenError::of(&path, error);

        let mut conn = SqliteConnection::connect_with(&writing(&path, options.patience))
            .await
            .map_err(of_driver)?;
        inspect(&path, &mut conn).await?;
        let writer = Writer::start(conn, lock).map_err(|error| of_driver(error.into()))?;

        let readers = SqlitePoolOptions::new()
            .max_connections(options.readers)
            .acquire_timeout(options.patience)
            .test_before_acquire(false)
            .connect_lazy_with(reading(&path, options.patience));
        Ok(Self {
            writer,
            readers,
            clock: options.clock,
            aside: Arc::default(),
            path,
            execute: options.execute,
            patience: options.patience,
        })
    }

    /// Finishes the changes that wait, refuses others, and closes the file: all of it is in one piece
    /// then, unless another process has it open.
    pub async fn close(&self) {
        self.readers.close().await;
        // The last connection that closes is the one that may write, so that it empties the log.
        self.writer.close().await;
    }

    /// Reads the whole database and tells the first thing that is wrong with it, if any. Takes as long
    /// as reading the file.
    pub async fn verify(&self) -> Result<(), OpenError> {
        let found: Vec<String> = sqlx::query_scalar("pragma integrity_check(1)")
            .fetch_all(&self.readers)
            .await
            .map_err(|error| OpenError::of(&self.path, error))?;
        match found.as_slice() {
            [word] if word == "ok" => Ok(()),
            _ => Err(OpenError::Damaged {
                path: self.path.clone(),
                source: found.join("; ").into(),
            }),
        }
    }
}

/// How a connection that writes is opened: a commit is on the disk when it is answered.
pub(crate) fn writing(path: &Path, patience: Duration) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(patience)
        .statement_cache_capacity(STATEMENTS)
        .pragma("temp_store", "memory")
        .pragma("journal_size_limit", "67108864")
}

fn reading(path: &Path, patience: Duration) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .busy_timeout(patience)
        .statement_cache_capacity(STATEMENTS)
        .pragma("temp_store", "memory")
}

/// Refuses a library that is not safe, a file that is damaged where everything begins, and one that
/// cannot be written.
async fn inspect(path: &Path, conn: &mut SqliteConnection) -> Result<(), OpenError> {
    let of_driver = |error| OpenError::of(path, error);
    let version: String = sqlx::query_scalar("select sqlite_version()")
        .fetch_one(&mut *conn)
        .await
        .map_err(of_driver)?;
    check_version(&version)?;
    for statement in [
        "begin immediate",
        "select count(*) from sqlite_schema",
        "rollback",
    ] {
        sqlx::query(statement)
            .execute(&mut *conn)
            .await
            .map_err(of_driver)?;
    }
    Ok(())
}

fn check_version(found: &str) -> Result<(), OpenError> {
    let parts: Vec<u32> = found
        .split('.')
        .map_while(|part| part.parse().ok())
        .collect();
    if parts.as_slice() >= OLDEST_SAFE.as_slice() {
        Ok(())
    } else {
        Err(OpenError::OldSqlite {
            found: found.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sqlite_that_can_lose_commits_is_refused() {
        for found in ["3.51.2", "3.9.0", "3.50.99", "2.99.99", ""] {
            let refused = check_version(found);
            assert!(
                matches!(refused, Err(OpenError::OldSqlite { .. })),
                "{found}"
            );
        }
        for found in ["3.51.3", "3.51.10", "3.52.0", "4.0.0"] {
            assert!(check_version(found).is_ok(), "{found}");
        }
    }
}
