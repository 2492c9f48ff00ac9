//! Points in time that can be compared with what the store and the API say: the machine's wall clock, in
//! microseconds.

use std::time::{Duration, SystemTime};

/// A point in time.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Moment(pub(crate) i64);

impl Moment {
    /// The present one.
    #[expect(
        clippy::disallowed_methods,
        reason = "the tests have clocks of their own"
    )]
    pub(crate) fn now() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self(micros(since.unwrap_or_default()))
    }

    /// The one that an answer of the API tells, as it tells all of them.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let parsed = chrono::DateTime::parse_from_rfc3339(text).ok()?;
        Some(Self(parsed.timestamp_micros()))
    }

    /// That much later.
    pub(crate) fn plus(self, time: Duration) -> Self {
        Self(self.0 + micros(time))
    }

    /// That much earlier.
    pub(crate) fn minus(self, time: Duration) -> Self {
        Self(self.0 - micros(time))
    }

    /// How long after `earlier` it is; zero if it is not.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0 - earlier.0).unwrap_or_default())
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
