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

/// What the connection is given time for.
#[derive(Clone, Copy)]
pub(super) struct Timing {
    /// How long nothing may be heard before it has to say that it lives.
    pub(super) silence: Duration,
    /// How long it may take to say so, and to be made.
    pub(super) patience: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(10),
            patience: Duration::from_secs(5),
        }
    }
}

/// The first wait before another connection is made, and the longest.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// A connection that listens.
pub(super) struct Listener {
    listener: PgListener,
    timing: Timing,
}

impl Listener {
    /// Makes one, however long that takes.
    pub(super) async fn connect(options: &PgConnectOptions, timing: Timing) -> Self {
        let mut wait = FIRST_WAIT;
        let mut complained = false;
        loop {
            let made = timeout(timing.patience, listen(options, timing)).await;
            let error = match made {
                Ok(Ok(listener)) => {
                    if complained {
                        tracing::info!("hints of other processes are heard again");
                    }
                    return Self { listener, timing };
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
            match timeout(self.timing.silence, self.listener.try_recv()).await {
                Ok(Ok(Some(heard))) => return Some(heard.payload().to_owned()),
                Ok(Err(error)) => {
                    tracing::debug!(%error, "the listening connection failed");
                    return None;
                }
                Err(_) if self.lives().await => {}
                Ok(Ok(None)) | Err(_) => return None,
            }
        }
    }

    async fn lives(&mut self) -> bool {
        let answer = self.listener.execute("select 1");
        let answer = timeout(self.timing.patience, answer).await;
        matches!(answer, Ok(Ok(_)))
    }
}

async fn listen(options: &PgConnectOptions, timing: Timing) -> Result<PgListener, sqlx::Error> {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(timing.patience)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options.clone());
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use hango_test_database::TestDatabase;
    use tokio::time::Instant;

    use super::*;
    use crate::testing::Proxy;

    #[tokio::test]
    async fn a_connection_whose_other_end_went_away_without_a_word_is_given_up() {
        let database = TestDatabase::new().await;
        let proxy = Proxy::before(database.url()).await;
        let timing = Timing {
            silence: Duration::from_millis(200),
            patience: Duration::from_millis(500),
        };
        let mut listener = Listener::connect(&proxy.through(database.url()), timing).await;

        // Alive, it may be silent for much longer.
        let silent = timeout(timing.silence * 4, listener.heard()).await;
        assert!(silent.is_err(), "a living connection was given up");
        proxy.cut();
        let begun = Instant::now();

        assert_eq!(listener.heard().await, None);
        assert!(begun.elapsed() < 2 * (timing.silence + timing.patience));
    }
}
