//! Hints between processes, by LISTEN and NOTIFY: faster than the poll, never instead of it.
//!
//! * [`announce`](WakeUp::announce) only notes the hint. What was noted is sent by a task of its own, as
//!   one notification, and the next not before a short while: a `NOTIFY` inside of the commits that it
//!   tells of would have them wait for each other (measured: a quarter is left at 32 clients).
//! * It is sent over any connection, a pooler's too, and without waiting for the disk: who loses it
//!   polls.
//! * It is heard on a connection of its own, past a pooler ([`hearing`]), and only where somebody asks
//!   for the [`next`](WakeUp::next) hint: a process that executes nothing listens to nobody.

mod hearing;
mod message;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use hango_ports::WakeUp;
use hango_ports::wake_up::Hint;
use sqlx::postgres::PgConnectOptions;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::PostgresStore;
use crate::error::Error;
use crate::pool::Pool;
use hearing::{Listener, Timing};
use message::Message;

/// The channel of all processes of a database.
const CHANNEL: &str = "hango";

/// The time between two notifications of a process; hints that are given meanwhile become one.
const SPACING: Duration = Duration::from_millis(5);

/// How long the last hints may take to be sent when the process ends.
const LAST_HINTS: Duration = Duration::from_secs(1);

/// The hints of one process to and from the others.
pub struct PostgresWakeUp {
    outbox: Arc<Outbox>,
    sending: TaskTracker,
    /// What is to be sent is sent, and then nothing more.
    ending: CancellationToken,
    /// The sending task does not outlive this.
    _ends: DropGuard,
    inbox: tokio::sync::Mutex<Inbox>,
}

/// What this process has to tell.
struct Outbox {
    /// By which it knows its own notifications.
    me: Uuid,
    noted: Mutex<Message>,
    given: Notify,
}

/// What others told.
struct Inbox {
    me: Uuid,
    direct: PgConnectOptions,
    listener: Option<Listener>,
    heard: VecDeque<Hint>,
}

impl PostgresStore {
    /// The hints between this process, which is `me` and nobody else, and all others of the database.
    ///
    /// # Panics
    ///
    /// Outside of a runtime.
    #[must_use]
    pub fn wake_up(&self, me: Uuid) -> PostgresWakeUp {
        let outbox = Arc::new(Outbox {
            me,
            noted: Mutex::new(Message::new(me)),
            given: Notify::new(),
        });
        let ending = CancellationToken::new();
        let sending = TaskTracker::new();
        sending.spawn(send(Arc::clone(&outbox), self.pool.clone(), ending.clone()));
        sending.close();
        PostgresWakeUp {
            outbox,
            sending,
            _ends: ending.clone().drop_guard(),
            ending,
            inbox: tokio::sync::Mutex::new(Inbox {
                me,
                direct: self.direct.clone(),
                listener: None,
                heard: VecDeque::new(),
            }),
        }
    }
}

impl PostgresWakeUp {
    /// Sends what is still to be sent, for a moment at most, and listens no more. To be done before the
    /// store is closed.
    pub async fn close(&self) {
        self.ending.cancel();
        let closed = async {
            self.sending.wait().await;
            self.inbox.lock().await.listener = None;
        };
        if tokio::time::timeout(LAST_HINTS, closed).await.is_err() {
            tracing::debug!("the last hints were not sent; their runs are found by the poll");
        }
    }
}

#[async_trait]
impl WakeUp for PostgresWakeUp {
    fn announce(&self, hint: Hint) {
        self.outbox.lock().add(hint);
        self.outbox.given.notify_one();
    }

    /// Dropping the future gives the connection up. The next one makes another, and says that hints may
    /// have been missed.
    async fn next(&self) -> Hint {
        let mut inbox = self.inbox.lock().await;
        loop {
            if let Some(hint) = inbox.heard.pop_front() {
                return hint;
            }
            inbox.hear().await;
        }
    }
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Message> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was noted, if anything.
    fn take(&self) -> Option<Message> {
        let mut noted = self.lock();
        let taken = std::mem::replace(&mut *noted, Message::new(self.me));
        (!taken.is_empty()).then_some(taken)
    }
}

impl Inbox {
    /// Waits for something to be heard.
    async fn hear(&mut self) {
        let Some(mut listener) = self.listener.take() else {
            let listener = Listener::connect(&self.direct, Timing::default()).await;
            self.listener = Some(listener);
            // Whatever was said before has not been heard.
            self.heard.push_back(Hint::Missed);
            return;
        };
        if let Some(payload) = listener.heard().await {
            self.listener = Some(listener);
            self.heard.extend(message::hints(&payload, self.me));
        }
    }
}

/// Sends what is noted, until the end.
async fn send(outbox: Arc<Outbox>, pool: Pool, ending: CancellationToken) {
    loop {
        tokio::select! {
            () = outbox.given.notified() => {}
            () = ending.cancelled() => {}
        }
        // In this order: what is noted from now on is not promised to anybody.
        let last = ending.is_cancelled();
        if let Some(message) = outbox.take()
            && let Err(error) = notify(&pool, message.to_payload()).await
        {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "a hint was not sent; what it is about is found by the poll"
            );
        }
        if last {
            return;
        }
        tokio::time::sleep(SPACING).await;
    }
}

/// Nobody needs a hint after a crash, so its commit waits for no disk.
async fn notify(pool: &Pool, payload: String) -> Result<(), Error> {
    pool.run(move |conn| {
        let notify =
            sqlx::query("select set_config('synchronous_commit', 'off', true), pg_notify($1, $2)");
        let notify = notify.bind(CHANNEL).bind(payload.clone());
        async move {
            notify.execute(conn).await?;
            Ok(())
        }
        .boxed()
    })
    .await
}
