//! Opening and closing a store; how its connections are made.
//!
//! Opening does not connect: a server that starts before its database does is not ready and tries
//! again, it does not end.
//!
//! # Poolers
//!
//! Where [`direct_url`](Options::direct_url) is given, the other URL goes through a pooler in
//! transaction mode, whose server connections change from transaction to transaction. So nothing there
//! belongs to a session:
//!
//! * Settings are not sent at start-up (a pooler refuses those that it cannot keep track of) but with
//!   `begin`, in the same round trip, for the transaction alone. A statement without a transaction has
//!   only the client's own bound there, and its plan may be one for small tables; an operator gives the
//!   role what he wants of the settings (`alter role … set enable_seqscan = off`).
//! * Prepared statements are used: the pooler must keep track of them, as `PgBouncer` does from 1.21 on.
//! * Migrations, the listener and the kept connection take the direct URL.
//!
//! Without a pooler the settings are the session's, sent once when it starts.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use hango_ports::Clock;
use hango_ports::store::BoxError;
use sqlx::postgres::PgConnectOptions;
use thiserror::Error;
use tokio::runtime::Handle;

use crate::PostgresStore;
use crate::clock::StoreClock;
use crate::lane::Lane;
use crate::pool::{Limits, Pool};
use crate::runs::HeldRuns;

/// Every statement of this crate stays prepared.
const STATEMENTS: usize = 256;

/// A connection that lay idle for less is used without asking whether it lives.
const FRESH: Duration = Duration::from_secs(1);

/// Connections that are not the pool's: the kept one, and the listener's.
const RESERVED: u32 = 2;

/// What a session that is not behind a pooler begins with. Nothing waits or hangs for long, and a
/// process that has vanished, or stands still in a transaction, keeps its locks no longer than that: as
/// long as a claimer that was stopped has a session locked, nobody else claims its run.
///
/// A statement is planned once, in general: each is written so that it goes by an index whatever its
/// parameters are, and may not read a table whole that is small when it is planned, because it will not
/// stay so. Without this a statement with a `limit` would be planned at every execution, and one that is
/// planned by a young server would be slow until the next analysis.
pub(crate) const SETTINGS: [(&str, &str); 10] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("jit", "off"),
    ("lock_timeout", "5s"),
    ("statement_timeout", "10s"),
    ("idle_in_transaction_session_timeout", "2s"),
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
    ("tcp_user_timeout", "20000"),
];

/// The kept connection waits less for a lock: as long as a holder's write takes, which has the row of
/// a lease that is to be renewed, and no longer than all others of the process can wait behind it.
const LANE_LOCK_TIMEOUT: (&str, &str) = ("lock_timeout", "250ms");

/// The same behind a pooler, for one transaction; its connections are the pooler's to keep alive.
const BEGIN_POOLED: &str = "begin; \
    set local plan_cache_mode = 'force_generic_plan'; \
    set local enable_seqscan = off; \
    set local jit = off; \
    set local lock_timeout = '5s'; \
    set local statement_timeout = '10s'; \
    set local idle_in_transaction_session_timeout = '2s'";

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// `postgres://…`, perhaps through a pooler in transaction mode.
    pub url: String,
    /// Where the other goes through such a pooler: the database itself.
    pub direct_url: Option<String>,
    /// The most connections of this process, all of them: at least 3.
    pub max_connections: u32,
    /// How long a caller waits for a connection, and for a statement's answer.
    pub patience: Duration,
    /// What stands in for the database's clock; for tests.
    pub clock: Option<Arc<dyn Clock>>,
}

impl Options {
    /// The options that fit a server.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            direct_url: None,
            max_connections: 10,
            patience: Duration::from_secs(5),
            clock: None,
        }
    }
}

/// Why a store was not opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// A URL is not one of PostgreSQL.
    #[error("{what} is not a URL like postgres://user:password@host:5432/database")]
    Url {
        /// Which one.
        what: &'static str,
        /// What is wrong with it.
        source: BoxError,
    },
    /// There are too few connections.
    #[error("{given} connections are too few: a process needs at least {least}")]
    TooFewConnections {
        /// How many it was given.
        given: u32,
        /// How many it needs.
        least: u32,
    },
    /// The system gave no thread.
    #[error("the system gave no thread for the kept connection")]
    NoThread(#[source] std::io::Error),
}

impl PostgresStore {
    /// Opens the store in the present runtime, in which its pool will work. Nothing is connected yet.
    ///
    /// # Panics
    ///
    /// Outside of a runtime.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let least = RESERVED + 1;
        if options.max_connections < least {
            return Err(OpenError::TooFewConnections {
                given: options.max_connections,
                least,
            });
        }
        let url = parse("the database URL", &options.url)?;
        let direct = match &options.direct_url {
            Some(direct) => parse("the direct database URL", direct)?,
            None => url.clone(),
        };
        let direct = direct.options(SETTINGS);
        let pooled = options
            .direct_url
            .is_some_and(|direct| direct != options.url);
        let limits = Limits {
            connections: options.max_connections - RESERVED,
            patience: options.patience,
            fresh: FRESH,
            connect: if pooled { url } else { direct.clone() },
            begin: if pooled { BEGIN_POOLED } else { "begin" },
        };
        let lane = Lane::new(Limits {
            connect: direct.clone().options([LANE_LOCK_TIMEOUT]),
            begin: "begin",
            ..limits.clone()
        });
        let holders = Pool::new(limits, Handle::current());
        Ok(Self {
            pool: holders.of_many(),
            holders,
            lane: lane.map_err(OpenError::NoThread)?,
            clock: StoreClock::new(options.clock),
            held: HeldRuns::default(),
            aside: Arc::default(),
            direct,
        })
    }

    /// Lets the work that has begun end, refuses more, and closes every connection.
    pub async fn close(&self) {
        self.pool.close().await;
        self.lane.close().await;
    }
}

/// Fails where `url` is not one that a store can be opened with.
pub fn check_url(url: &str) -> Result<(), OpenError> {
    parse("this", url).map(drop)
}

/// How to connect to `url`.
fn parse(what: &'static str, url: &str) -> Result<PgConnectOptions, OpenError> {
    let refused = |source| OpenError::Url { what, source };
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    if !matches!(scheme, Some("postgres" | "postgresql")) {
        return Err(refused("it has another scheme".into()));
    }
    let options = PgConnectOptions::from_str(url).map_err(|error| refused(error.into()))?;
    let options = match options.get_application_name() {
        Some(_) => options,
        None => options.application_name("hango"),
    };
    // Not sent at all: a pooler may refuse it, and the server's own default loses nothing.
    Ok(options
        .extra_float_digits(None)
        .statement_cache_capacity(STATEMENTS))
}

#[cfg(test)]
mod tests;
