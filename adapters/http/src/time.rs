//! Moments as callers see them: RFC 3339, in UTC, with microseconds.

use chrono::{DateTime, Datelike, SecondsFormat};
use hango_domain::Timestamp;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// A moment.
#[derive(Clone, Copy, Debug, ToSchema)]
#[schema(value_type = String, format = DateTime)]
pub(crate) struct Time(pub(crate) Timestamp);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Beyond what the calendar knows there is only its end.
        let at = DateTime::from_timestamp_micros(self.0.as_micros());
        let at = at.unwrap_or(DateTime::<chrono::Utc>::MAX_UTC);
        serializer.serialize_str(&at.to_rfc3339_opts(SecondsFormat::Micros, true))
    }
}

/// The moment that `text` is in RFC 3339, to the microsecond, wherever it was said.
#[must_use]
pub fn parse(text: &str) -> Option<Timestamp> {
    let at = DateTime::parse_from_rfc3339(text).ok()?.to_utc();
    // Where it was said it may be another year: one of five digits could not be told again.
    (0..10_000).contains(&at.year()).then_some(())?;
    Some(Timestamp::from_micros(at.timestamp_micros()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_one_that_can_be_told_again() {
        assert!(parse("2026-01-02T03:04:05.000006+01:00").is_some());
        for odd in [
            "9999-12-31T23:59:59-23:59",
            "0000-01-01T00:00:00+23:59",
            "soon",
        ] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }
}
