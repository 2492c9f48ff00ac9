//! What can go wrong with PostgreSQL, and what it means to whoever asked a port.

use hango_ports::StoreFailure;
use hango_ports::agent_store::AgentStoreError;
use hango_ports::identity_store::IdentityStoreError;
use hango_ports::run_store::RunStoreError;
use hango_ports::session_store::SessionStoreError;
use hango_ports::store::BoxError;
use thiserror::Error;

// https://www.postgresql.org/docs/current/errcodes-appendix.html
const SERIALIZATION_FAILURE: &str = "40001";
const DEADLOCK: &str = "40P01";
const LOCK_NOT_AVAILABLE: &str = "55P03";
const DISK_FULL: &str = "53100";
const DATA_CORRUPTED: &str = "XX001";
const INDEX_CORRUPTED: &str = "XX002";
const TOO_MANY_CONNECTIONS: &str = "53300";
/// Somebody left a transaction open that has failed.
const FAILED_TRANSACTION: &str = "25P02";
/// The server is a standby, perhaps since a failover.
const READ_ONLY: &str = "25006";
/// Among others: a statement was prepared before the schema was changed.
const FEATURE_NOT_SUPPORTED: &str = "0A000";
/// A prepared statement is not there: behind a pooler that does not keep track of them.
const UNKNOWN_STATEMENT: &str = "26000";
/// What `acting_key` raises, which is the schema's own.
const ACTOR_REFUSED: &str = "ZH001";
const CLASS_INTERNAL: &str = "XX";
/// Data that its type does not hold.
const CLASS_DATA: &str = "22";
/// Rows that the schema forbids.
const CLASS_CONSTRAINT: &str = "23";
/// A connection that is not one any more.
const CLASS_CONNECTION: &str = "08";
/// The server is shut down, was restarted, or starts.
const CLASS_INTERVENTION: &str = "57P0";

/// What went wrong.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// PostgreSQL, or the driver, said so.
    #[error(transparent)]
    Sql(#[from] sqlx::Error),
    /// A stored value is not what its column holds.
    #[error("{table}.{column} of {row} cannot be read")]
    Unreadable {
        table: &'static str,
        column: &'static str,
        row: String,
        source: sqlx::Error,
    },
    /// No connection became free in time.
    #[error("no connection to the database became free in time")]
    NoConnection,
    /// The work was not done in time; its connection was closed.
    #[error("the database did not answer in time")]
    NoAnswer,
    /// It is a standby, or was set to be so.
    #[error("the database takes no changes")]
    ReadOnly,
    /// The task that did the work ended before it.
    #[error("the work was interrupted")]
    Interrupted,
    /// The store was closed.
    #[error("the store was closed")]
    Closed,
}

impl Error {
    /// The name of the constraint that would have been broken.
    pub(crate) fn constraint(&self) -> Option<&str> {
        match self {
            Self::Sql(error) => error.as_database_error()?.constraint(),
            _ => None,
        }
    }
}

/// The SQLSTATE; none for what did not come from the server.
pub(crate) fn code(error: &sqlx::Error) -> Option<String> {
    let code = error.as_database_error()?.code()?;
    Some(code.into_owned())
}

/// What the driver said, at the bottom of an error of a port or of this crate.
pub(crate) fn driver<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e sqlx::Error> {
    let mut chain = std::iter::successors(Some(error), |error| error.source());
    chain.find_map(|error| match error.downcast_ref::<Error>() {
        Some(Error::Sql(driver)) => Some(driver),
        _ => error.downcast_ref::<sqlx::Error>(),
    })
}

/// Whether another transaction was in the way: the database has undone everything, and the same may
/// work now.
pub(crate) fn is_conflict(error: &(dyn std::error::Error + 'static)) -> bool {
    let code = driver(error).and_then(code);
    code.is_some_and(|code| code == SERIALIZATION_FAILURE || code == DEADLOCK)
}

/// Whether what the connection prepared is of no use any more, since the schema was changed or the server
/// is another one: nothing was done, and a new connection prepares it anew.
pub(crate) fn is_outdated(error: &(dyn std::error::Error + 'static)) -> bool {
    let code = driver(error).and_then(code);
    code.is_some_and(|code| code == FEATURE_NOT_SUPPORTED || code == UNKNOWN_STATEMENT)
}

/// Whether a lock was not to be had in time.
pub(crate) fn is_lock_timeout(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| code == LOCK_NOT_AVAILABLE)
}

/// Whether the connection is not one any more. Nobody knows what became of what was asked last.
pub(crate) fn is_lost(error: &(dyn std::error::Error + 'static)) -> bool {
    match driver(error) {
        Some(sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::Tls(_)) => true,
        Some(error) => code(error).is_some_and(|code| {
            code.starts_with(CLASS_CONNECTION) || code.starts_with(CLASS_INTERVENTION)
        }),
        None => false,
    }
}

/// Whether a connection is better not used again after this error: it is lost, it is of no use, or nobody
/// knows how it stands.
pub(crate) fn spoils(error: &(dyn std::error::Error + 'static)) -> bool {
    if is_lost(error) || is_outdated(error) {
        return true;
    }
    let mut chain = std::iter::successors(Some(error), |error| error.source());
    if chain.any(|error| {
        matches!(
            error.downcast_ref(),
            Some(Error::NoAnswer | Error::ReadOnly)
        )
    }) {
        return true;
    }
    let code = driver(error).and_then(code);
    code.is_some_and(|code| {
        code == READ_ONLY || code == FAILED_TRANSACTION || code.starts_with(CLASS_INTERNAL)
    })
}

/// Whether a server that cannot be reached may be there soon: it starts, or has no room at the moment.
pub(crate) fn may_connect_soon(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        error => code(error).is_some_and(|code| {
            code == TOO_MANY_CONNECTIONS || code.starts_with(CLASS_INTERVENTION)
        }),
    }
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
                    source: source.into(),
                };
            }
            Error::Sql(source) => {
                let code = code(&source).unwrap_or_default();
                match code.as_str() {
                    ACTOR_REFUSED => return Self::ActorRefused,
                    DISK_FULL => return Self::OutOfSpace(source.into()),
                    DATA_CORRUPTED | INDEX_CORRUPTED => return in_database("file", source),
                    // Whatever the callers did, the schema does not hold it: no retry helps.
                    code if code.starts_with(CLASS_CONSTRAINT) => {
                        return in_database("constraint", source);
                    }
                    code if code.starts_with(CLASS_DATA) => return in_database("value", source),
                    _ => source.into(),
                }
            }
            other => other.into(),
        };
        Self::Unavailable(source)
    }
}

fn in_database(column: &'static str, source: sqlx::Error) -> StoreFailure {
    StoreFailure::Corrupt {
        table: "database",
        column,
        row: "an unknown row".to_owned(),
        source: source.into(),
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
