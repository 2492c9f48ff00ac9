//! Whose clock decides: the database's, in production; in tests one that they move.
//!
//! A process's wall clock is used nowhere. SQL asks for the time where it needs it:
//! `coalesce($n, now())` with [`given`](StoreClock::given) for `$n`, in a statement of its own, or
//! `clock_timestamp()` in place of `now()` inside a transaction of several, where `now()` stands still.
//! A statement that tells the time hands it to [`told`](StoreClock::told), and
//! [`now`](StoreClock::now) carries it on by the monotonic clock until the next one does.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use hango_domain::Timestamp;
use hango_ports::Clock;
use sqlx::PgConnection;

use crate::error::Error;
use crate::rows::{moment, timestamp};

/// An answer that comes late tells a time that is past; only one further back than this says that the
/// database's clock was set back.
const SET_BACK: Duration = Duration::from_secs(1);

/// The store's clock.
#[derive(Clone)]
pub(crate) struct StoreClock {
    given: Option<Arc<dyn Clock>>,
    told: Arc<Mutex<Option<Told>>>,
}

/// What the database said, and when it was heard.
#[derive(Clone, Copy)]
struct Told {
    time: Timestamp,
    heard: Instant,
}

impl Told {
    fn carried_on(self) -> Timestamp {
        self.time.plus(self.heard.elapsed())
    }
}

impl StoreClock {
    /// The database's clock, or `given` in its place.
    pub(crate) fn new(given: Option<Arc<dyn Clock>>) -> Self {
        Self {
            given,
            told: Arc::default(),
        }
    }

    /// The moment that stands in for the database's time; `None` where the database is to decide.
    pub(crate) fn given(&self) -> Option<DateTime<Utc>> {
        self.given.as_ref().map(|clock| moment(clock.now()))
    }

    /// The present moment, as the database last told it; `None` as long as it has not.
    pub(crate) fn now(&self) -> Option<Timestamp> {
        match &self.given {
            Some(clock) => Some(clock.now()),
            None => self.told_last().map(Told::carried_on),
        }
    }

    /// Asks for the present moment; inside of a transaction it is behind the locks that were waited for.
    pub(crate) async fn ask(&self, conn: &mut PgConnection) -> Result<Timestamp, Error> {
        if let Some(clock) = &self.given {
            return Ok(clock.now());
        }
        let now = sqlx::query_scalar("select clock_timestamp()")
            .fetch_one(conn)
            .await?;
        let now = timestamp(now);
        self.told(now);
        Ok(now)
    }

    /// Takes the time that a statement told.
    pub(crate) fn told(&self, time: Timestamp) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let ahead = |told: Told| {
            let carried_on = told.carried_on();
            carried_on > time && carried_on.since(time) < SET_BACK
        };
        if !told.is_some_and(ahead) {
            *told = Some(Told {
                time,
                heard: Instant::now(),
            });
        }
    }

    fn told_last(&self) -> Option<Told> {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_micros(1_760_000_000_000_000);

    #[test]
    fn nothing_is_known_before_the_database_told_the_time() {
        assert_eq!(StoreClock::new(None).now(), None);
    }

    #[test]
    fn the_time_goes_on_between_statements() {
        let clock = StoreClock::new(None);
        clock.told(NOON);

        assert!(clock.now() >= Some(NOON));
        assert!(clock.now() < Some(NOON.plus(Duration::from_mins(1))));
    }

    #[test]
    fn an_answer_that_comes_late_does_not_set_the_clock_back() {
        let clock = StoreClock::new(None);
        clock.told(NOON);
        clock.told(NOON.minus(SET_BACK / 2));

        assert!(clock.now() >= Some(NOON));
    }

    #[test]
    fn a_database_whose_clock_was_set_is_followed() {
        let clock = StoreClock::new(None);
        let hour = Duration::from_hours(1);
        clock.told(NOON);
        clock.told(NOON.minus(hour));
        assert!(clock.now() < Some(NOON.minus(hour / 2)));

        clock.told(NOON.plus(hour));
        assert!(clock.now() >= Some(NOON.plus(hour)));
    }
}
