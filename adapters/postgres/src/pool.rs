//! The connections of a process, and what is done with them.
//!
//! * Every use is a task of its own in the pool's runtime, so that a caller who is dropped interrupts
//!   nothing: a handler whose client has gone, a renewal whose beat is over. (In the driver a `begin`
//!   that is dropped can leave a transaction open on a connection that others get: its issue 4385.)
//! * Every use is bounded in time, and so is the wait for a connection. A connection whose use did not
//!   end well is closed hard and never used again; its place is free at once. (The driver's own pool
//!   asks each connection whether it lives when it takes it back, which costs a round trip, and waits
//!   for the answer without end where a socket died silently: its issue 4349.)
//! * A connection that lay idle for a while is asked whether it lives before it is used. When one was
//!   lost, those that wait are closed as well. The one that was used last goes first, so that the
//!   others can be given up.
//! * Work that another transaction got in the way of is repeated a few times, whole; so is what could not
//!   begin, because its connection was lost, or prepared for a schema that has changed since; and what
//!   changes nothing if it was done before, whatever became of it.

mod places;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use hango_ports::store::Connections;
use sqlx::{Connection, PgConnection};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tracing::Instrument;

use crate::error::{Error, is_conflict, is_lost, is_outdated, spoils};
use crate::pool::places::Places;

pub(crate) use places::Limits;

/// How often work is repeated that others got in the way of, or that did not begin.
const REPEATS: u32 = 5;

/// How long the first repeat waits at most; each further one twice as long.
const PAUSE: Duration = Duration::from_millis(20);

/// What work is, and so when it may be repeated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// It changes nothing, or nothing a second time: whenever the connection was lost.
    Repeatable,
    /// One statement changes something, and may have done so when the connection was lost: never then.
    Statement,
    /// It changes nothing before its `begin` is answered: when the connection was lost before that.
    Transaction,
}

/// Connections, made when they are needed. A clone is the same pool.
#[derive(Clone)]
pub(crate) struct Pool {
    places: Places,
    runtime: Handle,
    /// Whose turn it is, where this is for the [many](Pool::of_many).
    turns: Option<Arc<Semaphore>>,
}

impl Pool {
    /// An empty pool, whose work runs in `runtime`.
    pub(crate) fn new(limits: Limits, runtime: Handle) -> Self {
        Self {
            places: Places::new(limits),
            runtime,
            turns: None,
        }
    }

    /// How many connections are in use now.
    pub(crate) fn connections(&self) -> Connections {
        self.places.connections()
    }

    /// The same connections, for those who may be many at once: all of them together leave one to
    /// others, if there are several. Whoever holds a run, or claims one, does not stand behind a crowd
    /// while his lease goes by.
    pub(crate) fn of_many(&self) -> Self {
        let turns = self.places.limits().connections.saturating_sub(1).max(1);
        Self {
            turns: Some(Arc::new(Semaphore::new(turns as usize))),
            ..self.clone()
        }
    }

    /// Runs `work`, which reads, on a connection. It may run several times.
    pub(crate) async fn read<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, Result<T, E>> + Send + Sync + 'static,
        T: Send + 'static,
        E: From<Error> + std::error::Error + Send + Sync + 'static,
    {
        self.perform(Kind::Repeatable, work).await
    }

    /// Runs `work`, which is one statement, on a connection. It may run several times, and one that was
    /// executed before changes nothing, and says so.
    pub(crate) async fn repeat<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, Result<T, E>> + Send + Sync + 'static,
        T: Send + 'static,
        E: From<Error> + std::error::Error + Send + Sync + 'static,
    {
        self.perform(Kind::Repeatable, work).await
    }

    /// Runs `work`, of which one statement at most changes anything, on a connection. It may run several
    /// times, where the database is known to have undone it.
    pub(crate) async fn run<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, Result<T, E>> + Send + Sync + 'static,
        T: Send + 'static,
        E: From<Error> + std::error::Error + Send + Sync + 'static,
    {
        self.perform(Kind::Statement, work).await
    }

    /// Runs `work` in a transaction (read committed), which is committed if it is `Ok` and undone if it
    /// is not. It may run several times. An error of a statement has undone the transaction already:
    /// `work` must not turn it into `Ok`.
    pub(crate) async fn transact<T, E, F>(&self, work: F) -> Result<T, E>
    where
        F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, Result<T, E>> + Send + Sync + 'static,
        T: Send + 'static,
        E: From<Error> + std::error::Error + Send + Sync + 'static,
    {
        self.perform(Kind::Transaction, work).await
    }

    /// Lets the work that has begun end, as long as it may take, refuses more, and closes the
    /// connections.
    pub(crate) async fn close(&self) {
        let places = self.places.clone();
        let closing = self.runtime.spawn(async move { places.close().await });
        if closing.await.is_err() {
            tracing::warn!("the connections to the database were not closed");
        }
    }

    async fn perform<T, E, F>(&self, kind: Kind, work: F) -> Result<T, E>
    where
        F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, Result<T, E>> + Send + Sync + 'static,
        T: Send + 'static,
        E: From<Error> + std::error::Error + Send + Sync + 'static,
    {
        let pool = self.clone();
        let task = async move { repeatedly(&pool, kind, &work).await };
        let done = self.runtime.spawn(task.in_current_span()).await;
        // It panicked, or the runtime ends.
        done.unwrap_or_else(|_| Err(Error::Interrupted.into()))
    }
}

/// What became of a use of a connection, besides its result.
struct Fate {
    /// There was a connection. Where there was none, it has been waited for as long as may be.
    connected: bool,
    /// Something may have been done.
    begun: bool,
    /// The connection is as it was before.
    sound: bool,
}

/// Does the work, and again where that does no harm and it may succeed now.
async fn repeatedly<T, E, F>(pool: &Pool, kind: Kind, work: &F) -> Result<T, E>
where
    F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, Result<T, E>>,
    E: From<Error> + std::error::Error + 'static,
{
    let mut repeats = 0;
    loop {
        let mut fate = Fate {
            connected: false,
            begun: false,
            sound: true,
        };
        let done = once(pool, kind, work, &mut fate).await;
        let again = done.as_ref().err().is_some_and(|error| {
            let does_no_harm = kind == Kind::Repeatable || !fate.begun;
            is_conflict(error)
                || is_outdated(error)
                || (is_lost(error) && fate.connected && does_no_harm)
        });
        if !again || repeats == REPEATS {
            return done;
        }
        sleep(jittered(PAUSE * 2_u32.pow(repeats))).await;
        repeats += 1;
    }
}

/// Does the work once.
async fn once<T, E, F>(pool: &Pool, kind: Kind, work: &F, fate: &mut Fate) -> Result<T, E>
where
    F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, Result<T, E>>,
    E: From<Error> + std::error::Error + 'static,
{
    let mut held = pool.places.take(pool.turns.as_ref()).await?;
    fate.connected = true;
    let limits = pool.places.limits();
    let using = async {
        if kind == Kind::Transaction {
            in_transaction(held.conn(), limits.begin, work, fate).await
        } else {
            fate.begun = true;
            work(held.conn()).await
        }
    };
    let done = timeout(limits.longest_use(), using).await;
    let done = done.unwrap_or_else(|_| Err(Error::NoAnswer.into()));
    if fate.sound && !done.as_ref().err().is_some_and(|error| spoils(error)) {
        held.give_back();
    } else {
        held.lost();
    }
    done
}

async fn in_transaction<T, E, F>(
    conn: &mut PgConnection,
    begin: &'static str,
    work: &F,
    fate: &mut Fate,
) -> Result<T, E>
where
    F: for<'c> Fn(&'c mut PgConnection) -> BoxFuture<'c, Result<T, E>>,
    E: From<Error>,
{
    // A `begin` of several statements that is refused half-way leaves a transaction open, and the driver
    // does not know of it.
    fate.sound = false;
    let transaction = conn.begin_with(begin).await;
    let mut transaction = transaction.map_err(Error::from)?;
    fate.sound = true;
    fate.begun = true;
    match work(&mut transaction).await {
        Ok(done) => {
            transaction.commit().await.map_err(Error::from)?;
            Ok(done)
        }
        Err(error) => {
            // Where it cannot be undone, closing the connection undoes it.
            fate.sound = transaction.rollback().await.is_ok();
            Err(error)
        }
    }
}

/// A moment between none and `most`, so that those who got in each other's way do not do so again.
fn jittered(most: Duration) -> Duration {
    let dice = RandomState::new().hash_one(0_u8);
    most.mul_f64(f64::from(u8::try_from(dice % 256).unwrap_or_default()) / 255.0)
}
