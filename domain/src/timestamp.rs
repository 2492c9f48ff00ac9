//! Moments, as the stores keep them.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Microseconds since the Unix epoch, UTC.
///
/// Microseconds because that is what the coarser store keeps: a value read back equals the value
/// written, so tests compare with `==`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Wraps a count of microseconds since the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The instant `span` later, at the far end of time if that overflows.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(micros(span)))
    }

    /// The instant `span` earlier, at the beginning of time if that overflows.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(micros(span)))
    }

    /// How long after `earlier` this is; zero if it is not after.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// RFC 3339 in UTC, to the second, for sentences: `2026-01-02T03:04:05Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY: i64 = 24 * 60 * 60;
        let seconds = self.0.div_euclid(1_000_000);
        let (day, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let (year, month, day) = civil(day);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"
        )
    }
}

/// Year, month and day of the `day`-th day after the Unix epoch. Years are counted from March here, so that
/// the leap day is the last of one, and in eras of 400, which all have the same days.
const fn civil(day: i64) -> (i64, i64, i64) {
    const ERA: i64 = 146_097;
    let day = day + 719_468;
    let era = day.div_euclid(ERA);
    let day = day.rem_euclid(ERA);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    if month < 10 {
        (era * 400 + year, month + 3, day)
    } else {
        (era * 400 + year + 1, month - 9, day)
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_as_the_calendar_has_it() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_210_096, "2024-02-29T12:34:56Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] {
            let at = Timestamp::from_micros(seconds * 1_000_000 + 999_999);
            assert_eq!(at.to_string(), text);
        }
        // Nothing overflows at the ends of time.
        for end in [i64::MIN, i64::MAX] {
            assert!(Timestamp::from_micros(end).to_string().ends_with('Z'));
        }
    }
}
