//! What can go wrong with SQLite, and what it means to whoever asked a port.

use std::sync::Arc;

use hango_ports::StoreFailure;
use hango_ports::agent_store::AgentStoreError;
use hango_ports::identity_store::IdentityStoreError;
use hango_ports::run_store::RunStoreError;
use hango_ports::session_store::SessionStoreError;
use hango_ports::store::BoxError;
use thiserror::Error;

// https://www.sqlite.org/rescode.html; the low byte of an extended code is the primary one.
pub(crate) const READONLY: i32 = 8;
pub(crate) const CORRUPT: i32 = 11;
pub(crate) const FULL: i32 = 13;
pub(crate) const CANTOPEN: i32 = 14;
pub(crate) const CONSTRAINT: i32 = 19;
pub(crate) const NOTADB: i32 = 26;

/// What went wrong. A clone tells the same to everybody whose changes were to be committed together.
#[derive(Clone, Debug, Error)]
pub(crate) enum Error {
    /// SQLite, or the driver, said so.
    #[error(transparent)]
    Sql(Arc<sqlx::Error>),
    /// A stored value is not what its column holds.
    #[error("{table}.{column} of {row} cannot be read: {source}")]
    Unreadable {
        table: &'static str,
        column: &'static str,
        row: String,
        source: Arc<sqlx::Error>,
    },
    /// Who asks for the change may not make it any more.
    #[error("who asks may not act any more")]
    ActorRefused,
    /// The writer ended before it answered.
    #[error("the writer has ended")]
    Closed,
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(Arc::new(error))
    }
}

/// SQLite's primary result code; `None` for what did not come from it.
pub(crate) fn code(error: &sqlx::Error) -> Option<i32> {
    let code = error.as_database_error()?.code()?;
    code.parse::<i32>().ok().map(|code| code & 0xff)
}

impl From<Error> for StoreFailure {
    fn from(error: Error) -> Self {
        let source: BoxError = match error {
            Error::Unreadable {
                table,
                column,
                row,
                source,
            } => {
                return Self::Corrupt {
                    table,
                    column,
                    row,
                    source: Box::new(source),
                };
            }
            Error::Sql(source) => match code(&source) {
                Some(FULL) => return Self::OutOfSpace(Box::new(source)),
                Some(CORRUPT | NOTADB) => return in_database("file", source),
                // Whatever the callers did, it would have broken what the schema holds: no retry helps.
                Some(CONSTRAINT) => return in_database("constraint", source),
                _ => Box::new(source),
            },
            Error::ActorRefused => return Self::ActorRefused,
            Error::Closed => Box::new(error),
        };
        Self::Unavailable(source)
    }
}

fn in_database(column: &'static str, source: Arc<sqlx::Error>) -> StoreFailure {
    StoreFailure::Corrupt {
        table: "database",
        column,
        row: "an unknown row".to_owned(),
        source: Box::new(source),
    }
}

macro_rules! failure_of {
    ($($port:ident)*) => {$(
        impl From<Error> for $port {
            fn from(error: Error) -> Self {
                Self::Failure(error.into())
            }
        }
    )*};
}

failure_of!(AgentStoreError IdentityStoreError RunStoreError SessionStoreError);
