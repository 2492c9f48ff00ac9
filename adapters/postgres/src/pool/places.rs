//! The places of a pool, and the connections that wait in them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hango_ports::store::Connections;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use crate::error::{Error, may_connect_soon};

/// How long the answer may take to whether a connection lives.
const PING: Duration = Duration::from_secs(1);

/// How long a connection may lie idle.
const IDLE: Duration = Duration::from_mins(10);

/// How long a connection is used: another server, or a pooler, gets its share of them in time.
const LIFE: Duration = Duration::from_mins(30);

/// How soon, and how seldom, a server that is not there yet is tried again.
const RETRY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

/// What a pool keeps to.
#[derive(Clone)]
pub(crate) struct Limits {
    /// The most connections.
    pub(crate) connections: u32,
    /// How long to wait for one.
    pub(crate) patience: Duration,
    /// A connection that lay idle for longer is asked whether it lives.
    pub(crate) fresh: Duration,
    /// How one is made.
    pub(crate) connect: PgConnectOptions,
    /// What a transaction begins with.
    pub(crate) begin: &'static str,
}

impl Limits {
    /// How long a connection may be in use. The server ends a statement and a lock sooner.
    pub(crate) fn longest_use(&self) -> Duration {
        self.patience * 3
    }
}

/// The places. A clone is the same.
#[derive(Clone)]
pub(crate) struct Places(Arc<Inner>);

struct Inner {
    limits: Limits,
    free: Arc<Semaphore>,
    /// The connections that wait, the one that was used last at the end.
    waiting: Mutex<Vec<Waiting>>,
    closed: AtomicBool,
}

struct Waiting {
    conn: PgConnection,
    made: Instant,
    since: Instant,
}

/// A connection in use, and its place. Dropped, it is closed hard.
pub(crate) struct Held {
    conn: PgConnection,
    made: Instant,
    places: Places,
    place: OwnedSemaphorePermit,
    /// The turn of one of the many.
    turn: Option<OwnedSemaphorePermit>,
}

impl Places {
    pub(crate) fn new(limits: Limits) -> Self {
        let free = Semaphore::new(limits.connections as usize);
        Self(Arc::new(Inner {
            limits,
            free: Arc::new(free),
            waiting: Mutex::default(),
            closed: AtomicBool::new(false),
        }))
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(crate) fn connections(&self) -> Connections {
        let limit = self.limits().connections as usize;
        Connections {
            in_use: limit.saturating_sub(self.0.free.available_permits()),
            limit,
        }
    }

    /// A connection that lives, in a place that became free; for one of the many when it is his turn.
    pub(crate) async fn take(&self, turns: Option<&Arc<Semaphore>>) -> Result<Held, Error> {
        let mut refused = None;
        let taken = async {
            let turn = match turns {
                Some(turns) => Some(turns.clone().acquire_owned().await),
                None => None,
            };
            let mut held = self.wait(&mut refused).await?;
            held.turn = turn.transpose().map_err(|_| Error::Closed)?;
            Ok(held)
        };
        let taken = timeout(self.limits().patience, taken).await;
        taken.unwrap_or_else(|_| Err(refused.map_or(Error::NoConnection, Error::Sql)))
    }

    /// Waits for a connection; `refused` is why none could be made up to now.
    async fn wait(&self, refused: &mut Option<sqlx::Error>) -> Result<Held, Error> {
        if self.0.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        let place = self.0.free.clone().acquire_owned().await;
        let place = place.map_err(|_| Error::Closed)?;
        let waiting = self.waiting().pop();
        if let Some(mut waiting) = waiting {
            let fresh = waiting.since.elapsed() < self.limits().fresh;
            if fresh || lives(&mut waiting.conn).await {
                return Ok(self.held(waiting.conn, waiting.made, place));
            }
            self.doubt_all();
        }
        let mut pause = RETRY.0;
        loop {
            match self.limits().connect.connect().await {
                Ok(conn) => return Ok(self.held(conn, Instant::now(), place)),
                Err(error) if may_connect_soon(&error) => *refused = Some(error),
                Err(error) => return Err(error.into()),
            }
            if self.0.closed.load(Ordering::Acquire) {
                return Err(Error::Closed);
            }
            sleep(pause).await;
            pause = (pause * 2).min(RETRY.1);
        }
    }

    fn held(&self, conn: PgConnection, made: Instant, place: OwnedSemaphorePermit) -> Held {
        Held {
            conn,
            made,
            places: self.clone(),
            place,
            turn: None,
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        let waiting = self.0.waiting.lock();
        waiting.unwrap_or_else(PoisonError::into_inner)
    }

    /// One was lost: those that wait may be as well, and others are soon made.
    fn doubt_all(&self) {
        self.waiting().clear();
    }

    /// How many places are free.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.0.free.available_permits()
    }

    /// Waits until every place is free, or for as long as a use may take; then closes what waits.
    pub(crate) async fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
        let all = self.0.free.acquire_many(self.limits().connections);
        let ended = timeout(self.limits().longest_use(), all).await;
        self.0.free.close();
        if ended.is_err() {
            tracing::warn!("work with the database goes on while its connections are closed");
        }
        let waiting = std::mem::take(&mut *self.waiting());
        for waiting in waiting {
            if let Ok(Err(error)) = timeout(PING, waiting.conn.close()).await {
                tracing::debug!(%error, "a connection was not closed cleanly");
            }
        }
    }
}

impl Held {
    pub(crate) fn conn(&mut self) -> &mut PgConnection {
        &mut self.conn
    }

    /// Lets others use the connection, and gives up those that nobody did for long.
    pub(crate) fn give_back(self) {
        if self.made.elapsed() > LIFE {
            return;
        }
        let mut waiting = self.places.waiting();
        let needless = |waiting: &Waiting| waiting.since.elapsed() > IDLE;
        let needless = waiting.iter().take_while(|one| needless(one)).count();
        waiting.drain(..needless);
        waiting.push(Waiting {
            conn: self.conn,
            made: self.made,
            since: Instant::now(),
        });
        drop(waiting);
        // Only now, or the next one would make another connection.
        drop(self.place);
        drop(self.turn);
    }

    /// Closes the connection, and those that wait.
    pub(crate) fn lost(self) {
        self.places.doubt_all();
    }
}

async fn lives(conn: &mut PgConnection) -> bool {
    matches!(timeout(PING, conn.ping()).await, Ok(Ok(())))
}
