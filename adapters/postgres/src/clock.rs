//! Whose clock decides: the database's, in production; in tests one that they move.
//!
//! A process's wall clock is used nowhere. SQL asks for the time where it needs it:
//! `coalesce($n, now())` with [`given`](StoreClock::given) for `$n`, in a statement of its own, or
//! `clock_timestamp()` in place of `now()` inside a transaction of several, where `now()` stands still.
//! A statement that tells the time hands it to [`told`](StoreClock::told), with the moment before it was
//! sent, and [`now`](StoreClock::now) carries it on by the monotonic clock until the next one does. What is
//! carried on is behind the database's clock by no more than [`LATE`], and ahead of it only where that was
//! set back, until an answer comes in time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use hango_domain::Timestamp;
use hango_ports::Clock;
use sqlx::PgConnection;

use crate::error::Error;
use crate::rows::{moment, timestamp};

/// An answer that took longer to come says only how late it is at least.
const LATE: Duration = Duration::from_millis(100);

/// How much faster than the database's clock a process's own may run between two answers before it seems
/// that the database's was set back.
const DRIFT: Duration = Duration::from_millis(10);

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

    /// The present moment, as the database last told it; `None` as long as it has not, in time.
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
        let asked = Instant::now();
        let now = sqlx::query_scalar("select clock_timestamp()")
            .fetch_one(conn)
            .await?;
        let now = timestamp(now);
        self.told(now, asked);
        Ok(now)
    }

    /// Takes the time that a statement told, which was not sent before `asked`. The answer may have come
    /// as late as it wanted, to a process that was stopped for instance: the database's clock shows the
    /// time told at least, and at most that and the time since it was asked.
    pub(crate) fn told(&self, time: Timestamp, asked: Instant) {
        let heard = Instant::now();
        let took = heard.duration_since(asked);
        let at_most = time.plus(took).plus(DRIFT);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let takes = match told.map(Told::carried_on) {
            Some(now) if now < time => true,
            Some(now) if now <= at_most => false,
            Some(_) | None => took <= LATE,
        };
        if takes {
            *told = Some(Told { time, heard });
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
    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn nothing_is_known_before_the_database_told_the_time() {
        assert_eq!(StoreClock::new(None).now(), None);
    }

    #[test]
    fn the_time_goes_on_between_statements() {
        let clock = StoreClock::new(None);
        clock.told(NOON, Instant::now());

        assert!(clock.now() >= Some(NOON));
        assert!(clock.now() < Some(NOON.plus(MINUTE)));
    }

    #[test]
    fn an_answer_that_comes_late_does_not_set_the_clock_back() {
        let clock = StoreClock::new(None);
        clock.told(NOON, Instant::now());
        clock.told(NOON.minus(MINUTE), long_ago());

        assert!(clock.now() >= Some(NOON));
    }

    #[test]
    fn an_answer_that_comes_late_is_not_the_first_to_be_believed() {
        let clock = StoreClock::new(None);
        clock.told(NOON, long_ago());
        assert_eq!(clock.now(), None);

        clock.told(NOON, Instant::now());
        assert!(clock.now() >= Some(NOON));
    }

    #[test]
    fn an_answer_that_comes_late_says_that_it_is_later_than_was_thought() {
        let clock = StoreClock::new(None);
        clock.told(NOON, Instant::now());
        clock.told(NOON.plus(MINUTE), long_ago());

        assert!(clock.now() >= Some(NOON.plus(MINUTE)));
    }

    #[test]
    fn a_database_whose_clock_was_set_is_followed() {
        let clock = StoreClock::new(None);
        clock.told(NOON, Instant::now());
        clock.told(NOON.minus(MINUTE), Instant::now());
        assert!(clock.now() < Some(NOON.minus(MINUTE / 2)));

        clock.told(NOON.plus(MINUTE), Instant::now());
        assert!(clock.now() >= Some(NOON.plus(MINUTE)));
    }

    /// When a question was sent whose answer comes late.
    fn long_ago() -> Instant {
        let asked = Instant::now().checked_sub(LATE * 2);
        asked.expect("the machine started longer ago")
    }
}
