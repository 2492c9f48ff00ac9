//! The connection that listens.
//!
//! It is asked now and then whether it still lives: one whose other end went away without a word would
//! be silent for ever, and silence is what it says most of the time. One that failed is given up, with
//! the pool of one that the driver's listener needs, and a new one is made until one succeeds.

use std::time::Duration;

use sqlx::Executor;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::time::timeout;

use super::CHANNEL;

/// How long nothing may be heard before the connection has to say that it lives.
const SILENCE: Duration = Duration::from_secs(10);

/// How long it may take to say so, and to be made.
const PATIENCE: Duration = Duration::from_secs(5);

/// The first wait before another connection is made, and the longest.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// A connection that listens.
pub(super) struct Listener(PgListener);

impl Listener {
    /// Makes one, however long that takes.
    pub(super) async fn connect(options: &PgConnectOptions) -> Self {
        let mut wait = FIRST_WAIT;
        let mut complained = false;
        loop {
            let made = timeout(PATIENCE, listen(options)).await;
            let error = match made {
                Ok(Ok(listener)) => {
                    if complained {
                        tracing::info!("hints of other processes are heard again");
                    }
                    return Self(listener);
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
            };
            if !complained {
                tracing::warn!(
                    error,
                    "hints of other processes cannot be heard; what they are about is found by the poll"
                );
                complained = true;
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// Waits for a notification; `None` when the connection has failed.
    pub(super) async fn heard(&mut self) -> Option<String> {
        loop {
            match timeout(SILENCE, self.0.try_recv()).await {
                Ok(Ok(Some(heard))) => return Some(heard.payload().to_owned()),
                Ok(Ok(None)) => return None,
                Ok(Err(error)) => {
                    tracing::debug!(%error, "the listening connection failed");
                    return None;
                }
                Err(_) if self.lives().await => {}
                Err(_) => return None,
            }
        }
    }

    async fn lives(&mut self) -> bool {
        let answer = timeout(PATIENCE, self.0.execute("select 1")).await;
        matches!(answer, Ok(Ok(_)))
    }
}

async fn listen(options: &PgConnectOptions) -> Result<PgListener, sqlx::Error> {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(PATIENCE)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options.clone());
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    Ok(listener)
}
