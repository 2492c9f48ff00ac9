//! Strings of an event, for `#[serde(deserialize_with = …)]`.
//!
//! `serde_json` collects a string that has an escape in a buffer of its own, which doubles as it grows: a
//! long one would be there several times. These are read in no more memory than they take.

use hango_domain::json;
use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::wire::MAX_READ;

/// How long the name of a member may be. Names too are collected so.
pub(crate) const MAX_NAME: usize = 64 << 10;

/// A string that must be there.
pub fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    of(raw).ok_or_else(|| D::Error::custom("no string"))
}

/// A string that may be absent or `null`; the member needs `default` too.
pub fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let raw = Option::<&RawValue>::deserialize(deserializer)?;
    let string = |raw| of(raw).ok_or_else(|| D::Error::custom("no string"));
    raw.map(string).transpose()
}

/// The string that a value is, if it is one.
#[must_use]
pub fn of(raw: &RawValue) -> Option<String> {
    if !raw.get().starts_with('"') {
        return None;
    }
    match json::read(raw.get(), MAX_READ) {
        Ok(Value::String(string)) => Some(string),
        Ok(_) | Err(_) => None,
    }
}

/// Whether the name of a member is longer than any has to be.
pub(crate) fn has_long_name(json: &str) -> bool {
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(begin) = bytes[at..].iter().position(|byte| *byte == b'"') {
        let start = at + begin + 1;
        at = start;
        while let Some(byte) = bytes.get(at).filter(|byte| **byte != b'"') {
            at += if *byte == b'\\' { 2 } else { 1 };
        }
        let length = at - start;
        at = (at + 1).min(bytes.len());
        if length > MAX_NAME
            && json
                .get(at..)
                .is_some_and(|it| it.trim_start().starts_with(':'))
        {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Words {
        #[serde(deserialize_with = "required")]
        one: String,
        #[serde(default, deserialize_with = "optional")]
        more: Option<String>,
    }

    #[test]
    fn strings_are_read_as_others_are_and_halves_of_pairs_too() {
        let words = |json: &str| {
            let words = serde_json::from_str(json).ok();
            words.map(|Words { one, more }| (one, more))
        };
        let both = |one: &str, more: Option<&str>| Some((one.to_owned(), more.map(str::to_owned)));

        assert_eq!(words(r#"{"one":"a\n"}"#), both("a\n", None));
        assert_eq!(words(r#"{"one":"","more":null}"#), both("", None));
        assert_eq!(
            words(r#"{"one": "\ud83d","more":"b"}"#),
            both("\u{fffd}", Some("b"))
        );
        for wrong in [
            r"{}",
            r#"{"one":null}"#,
            r#"{"one":1}"#,
            r#"{"one":"","more":[]}"#,
        ] {
            assert_eq!(words(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_long_name_is_told_from_a_long_text() {
        let long = "\\\"x".repeat(MAX_NAME);
        for (json, expected) in [
            (format!("{{\"{long}\" :1}}"), true),
            (format!("{{\"a\":\"\",\"{long}\":1}}"), true),
            (format!("{{\"a\":\"{long}\",\"b\":1}}"), false),
            (format!("{{\"a\":\"{long}"), false),
            (format!("\"{long}\\"), false),
        ] {
            assert_eq!(has_long_name(&json), expected);
        }
    }
}
