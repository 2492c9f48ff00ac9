//! A clock that stands until it is moved.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hango_domain::Timestamp;
use hango_ports::Clock;

/// Where the clock stands at first: a moment with microseconds, so that a store which rounds is found.
const START: i64 = 1_760_000_000_123_457;

/// The clock of a check: time passes when the check says so.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl Default for ManualClock {
    fn default() -> Self {
        Self(AtomicI64::new(START))
    }
}

impl ManualClock {
    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        let later = self.now().plus(by);
        self.0.store(later.as_micros(), Ordering::SeqCst);
    }

    /// Lets time pass, all but its last microsecond.
    pub fn almost(&self, span: Duration) {
        self.advance(span.saturating_sub(Duration::from_micros(1)));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}
