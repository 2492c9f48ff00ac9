//! The clocks and the source of identities: the one place that asks the system for them; and how a
//! moment is written.

use std::time::{Instant, SystemTime};

use chrono::{DateTime, SecondsFormat};
use hango_domain::{SpanId, Timestamp, TraceId};
use hango_ports::{Clock, Ids};
use uuid::Uuid;

/// The clock of leases: wall time at the start plus monotonic time since, so that a jump of the wall
/// clock changes nothing. A lease neither ends early nor lasts longer because of one.
pub(crate) struct SteadyClock {
    wall: Timestamp,
    start: Instant,
}

impl SteadyClock {
    /// A clock that is right now.
    pub(crate) fn new() -> Self {
        Self {
            wall: WallClock.now(),
            start: Instant::now(),
        }
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        self.wall.plus(self.start.elapsed())
    }
}

/// The time as people have it: what a tool tells, and by what keys expire. After the machine slept it
/// is right, which the steady clock is not.
pub(crate) struct WallClock;

impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_micros(0).plus(since_epoch)
    }
}

/// A moment for people: RFC 3339, in UTC, with microseconds.
pub(crate) fn written(at: Timestamp) -> String {
    DateTime::from_timestamp_micros(at.as_micros())
        .unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// Identities by the system's clock and randomness.
pub(crate) struct SystemIds;

impl Ids for SystemIds {
    #[expect(clippy::disallowed_methods, reason = "this is where ids are made")]
    fn uuid(&self) -> Uuid {
        Uuid::now_v7()
    }

    fn secret(&self) -> [u8; 32] {
        random()
    }

    fn trace_id(&self) -> TraceId {
        TraceId(random())
    }

    fn span_id(&self) -> SpanId {
        SpanId(random())
    }
}

/// Bytes that nobody can guess, not all of them zero.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    while bytes == [0; N] {
        getrandom::fill(&mut bytes).expect("the system has a source of randomness");
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_goes_back() {
        let clock = SteadyClock::new();

        let told: Vec<_> = (0..1000).map(|_| clock.now()).collect();

        assert!(told.is_sorted());
    }

    #[test]
    fn ids_sort_by_age() {
        let ids: Vec<_> = (0..1000).map(|_| SystemIds.uuid()).collect();

        assert!(ids.is_sorted_by(|older, newer| older < newer));
    }

    #[test]
    fn secrets_differ() {
        assert_ne!(SystemIds.secret(), SystemIds.secret());
    }
}
