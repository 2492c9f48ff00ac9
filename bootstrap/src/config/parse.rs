//! How values read. Every function takes the trimmed text of one value and answers with the value or
//! with what is wrong about it, never repeating the text: it may be a secret.

use std::fmt::Display;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use hango_application::use_cases::{AdminToken, KeyText};
use hango_domain::layers::RepeatCall;
use hango_domain::retention::Retention;
use secrecy::SecretString;
use url::Url;

/// What a parser answers.
pub(super) type Parsed<T> = Result<T, String>;

/// Units of a duration with their milliseconds, the larger first; `m` behind `ms`, which ends like it.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("ms", 1), ("m", 60_000), ("s", 1000)];

/// Nothing here is meant to last longer, and the clocks can still add it.
const LONGEST: Duration = Duration::from_hours(100 * 366 * 24);

/// An empty text is `None`, any other one is read by `parse`.
pub(super) fn optional<T>(parse: impl Fn(&str) -> Parsed<T>) -> impl Fn(&str) -> Parsed<Option<T>> {
    move |text| (!text.is_empty()).then(|| parse(text)).transpose()
}

/// A span of time such as `90s`; zero is one.
pub(super) fn duration(text: &str) -> Parsed<Duration> {
    let malformed = || "not a duration such as 90s, 500ms, 5m or 1h".to_owned();
    let (digits, millis) = UNITS
        .iter()
        .find_map(|(unit, millis)| Some((text.strip_suffix(unit)?, millis)))
        .ok_or_else(malformed)?;
    if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
        return Err(malformed());
    }
    digits
        .parse()
        .ok()
        .and_then(|count: u64| count.checked_mul(*millis))
        .map(Duration::from_millis)
        .filter(|span| *span <= LONGEST)
        .ok_or_else(|| "longer than a century".to_owned())
}

/// A span of time that is not zero.
pub(super) fn span(text: &str) -> Parsed<Duration> {
    match duration(text)? {
        Duration::ZERO => Err("must be longer than nothing".to_owned()),
        span => Ok(span),
    }
}

/// How long what is over is kept.
pub(super) fn retention(text: &str) -> Parsed<Retention> {
    Retention::new(duration(text)?).ok_or_else(|| {
        let least = write_duration(Retention::LEAST);
        format!(
            "below {least}: callers could not read how their runs ended; say {least} or more, or \
             leave it out to keep everything"
        )
    })
}

/// How a duration is written: the largest unit that holds it exactly.
pub(super) fn write_duration(span: Duration) -> String {
    let total = span.as_millis();
    let (unit, millis) = [UNITS[0], UNITS[2], UNITS[3]]
        .into_iter()
        .find(|(_, millis)| total > 0 && total.is_multiple_of(u128::from(*millis)))
        .unwrap_or(UNITS[1]);
    format!("{}{unit}", total / u128::from(millis))
}

/// A whole number from `least` on, to `most`.
pub(super) fn number<T: FromStr + PartialOrd + Display>(
    least: T,
    most: T,
) -> impl Fn(&str) -> Parsed<T> {
    move |text| {
        text.parse()
            .ok()
            .filter(|number| (&least..=&most).contains(&number))
            .ok_or_else(|| format!("not a whole number from {least} to {most}"))
    }
}

/// A number that the layer takes.
pub(super) fn repeat_call_threshold(text: &str) -> Parsed<u32> {
    let (least, most) = RepeatCall::THRESHOLDS.into_inner();
    number(least, most)(text)
}

/// `true` or `false`.
pub(super) fn switch(text: &str) -> Parsed<bool> {
    text.parse()
        .map_err(|_| "neither true nor false".to_owned())
}

/// An address to listen on.
pub(super) fn address(text: &str) -> Parsed<SocketAddr> {
    text.parse()
        .map_err(|_| "not an IP address and port such as 127.0.0.1:8080".to_owned())
}

/// Any text.
#[expect(clippy::unnecessary_wraps, reason = "parsers share one signature")]
pub(super) fn text(text: &str) -> Parsed<String> {
    Ok(text.to_owned())
}

/// Any text that nobody may see.
#[expect(clippy::unnecessary_wraps, reason = "parsers share one signature")]
pub(super) fn secret(text: &str) -> Parsed<SecretString> {
    Ok(text.into())
}

/// The address of an HTTP server.
pub(super) fn http_url(text: &str) -> Parsed<Url> {
    let url: Url = text
        .parse()
        .map_err(|_| "not a URL such as https://host/path".to_owned())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("neither an http:// nor an https:// URL".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user or password; put them into a header".to_owned());
    }
    if url.fragment().is_some() {
        return Err("must not hold a fragment".to_owned());
    }
    Ok(url)
}

/// A whole API key that an operator chose.
pub(super) fn api_key(text: &str) -> Parsed<KeyText> {
    KeyText::parse(text).map_err(|error| error.to_string())
}

/// A token that an operator chose.
pub(super) fn admin_token(text: &str) -> Parsed<AdminToken> {
    AdminToken::parse(text).map_err(|error| error.to_string())
}

/// Items between commas.
pub(super) fn list<T>(item: impl Fn(&str) -> Parsed<T>) -> impl Fn(&str) -> Parsed<Vec<T>> {
    move |text| {
        text.split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| item(part).map_err(|what| format!("{part:?} is {what}")))
            .collect()
    }
}

/// What a type of its own reads.
pub(super) fn typed<T: FromStr<Err: Display>>(text: &str) -> Parsed<T> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

#[cfg(test)]
mod tests;
