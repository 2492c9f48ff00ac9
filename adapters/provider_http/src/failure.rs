//! What an error of the server means, whether it comes as a status or within a stream.
//!
//! * The status decides; where there is none, the error's own code does, then its type, then its words.
//! * A rate limit passes, a quota does not: a 429 that speaks of a quota and does not say when to come
//!   back is final.
//! * What people read is short, on one line, and free of the key. Of what a server says, no more than a
//!   few KiB are looked at.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use hango_domain::json::{self, Unreadable};
use hango_domain::model::{FailureCause, ModelFailure, ModelFailureKind};
use http::{HeaderMap, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::wire::{MAX_READ, size};

/// Shorter ones are no secrets but words, and would be found everywhere.
const SHORTEST_SECRET: usize = 8;

/// How much of what a server said is looked at.
const MAX_HEARD: usize = 8 << 10;

/// How much of what a server said is shown.
const MAX_MESSAGE_CHARS: usize = 500;

/// How much of a request's id is shown.
const MAX_ID_CHARS: usize = 100;

/// What servers call a conversation that is too long.
const CONTEXT_WORDS: [&str; 9] = [
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "prompt is too long",
    "exceeds max length",
    "request_too_large",
    "input is too long",
    "context window",
    "context length",
];

/// What servers call an account that has nothing left.
const QUOTA_WORDS: [&str; 5] = [
    "insufficient_quota",
    "billing_error",
    "credit balance",
    "insufficient balance",
    "billing_hard_limit",
];

/// Which server an answer came from, as its failures name it.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The provider's name in the configuration.
    pub provider: String,
    /// What must never be shown.
    pub secrets: Vec<SecretString>,
    /// The server's id of the request, for whoever asks its operators.
    pub request_id: Option<String>,
}

impl Origin {
    /// A provider of that name, which has no secrets.
    #[must_use]
    pub fn named(provider: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            secrets: Vec::new(),
            request_id: None,
        }
    }

    /// A failure of `kind`; `message` goes on where "provider x" left off.
    #[must_use]
    pub fn failure(&self, kind: ModelFailureKind, message: &str) -> ModelFailure {
        let mut message = format!("provider {} {message}", self.provider);
        if let Some(id) = &self.request_id {
            message = format!("{message} (request {id})");
        }
        ModelFailure::new(kind, message)
    }

    /// What came is not the protocol; `what` says how, `text` is the beginning of it.
    #[must_use]
    pub fn garbled(&self, what: &str, text: &str) -> ModelFailure {
        let message = format!("sent {what}: {}", self.quote(text, 120));
        self.failure(ModelFailureKind::Protocol, &message)
    }

    /// Reads JSON that the server sent; `what` it is must not be. Half a surrogate pair is no failure.
    pub fn read(&self, what: &str, json: &str) -> Result<Value, ModelFailure> {
        json::read(json, MAX_READ).map_err(|unreadable| match unreadable {
            Unreadable::NotJson => self.garbled(&format!("{what} that is not JSON"), json),
            Unreadable::TooLarge(limit) => {
                let message = format!("sent {what} that takes more than {} to read", size(limit));
                self.failure(ModelFailureKind::Protocol, &message)
            }
        })
    }

    /// Notes that an event of a kind that nobody knows was passed over: the protocol may have new ones.
    /// What is in it stays unsaid.
    pub fn passes_over(&self, kind: &str, bytes: usize) {
        let (provider, kind) = (self.provider.as_str(), self.quote(kind, MAX_ID_CHARS));
        tracing::debug!(
            provider,
            kind,
            bytes,
            "passed over an event of an unknown kind"
        );
    }

    /// What `payload` reports, which came within a stream, or in place of an answer.
    #[must_use]
    pub fn reported(&self, payload: &Value) -> ModelFailure {
        self.judged(None, payload, None)
    }

    /// An answer with a status that is no success.
    pub(crate) fn refused(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &str,
    ) -> ModelFailure {
        let wait = retry_after(headers);
        let payload = match json::read(body, MAX_READ) {
            Ok(json) => json,
            Err(_) if is_html(body) => Value::Null,
            Err(_) => Value::from(beginning(body)),
        };
        self.judged(Some(status.as_u16()), &payload, wait)
    }

    fn judged(&self, status: Option<u16>, payload: &Value, wait: Option<Duration>) -> ModelFailure {
        let error = error_of(payload).unwrap_or(payload);
        let code = member(error, "code");
        let status = status.or_else(|| code.parse().ok().filter(|code| (400..600).contains(code)));
        let text = match error {
            Value::String(text) => beginning(text).to_owned(),
            _ => member(error, "message"),
        };
        let class = member(error, "type");
        let words = format!("{code} {class} {text}").to_lowercase();
        let kind = match status {
            Some(status) => kind_of_status(status, &words, wait.is_some()),
            None => kind_of_report(&class, &words),
        };
        let answered = match status {
            Some(status) => format!("answered {status}"),
            None => "reported an error".to_owned(),
        };
        let message = match self.quote(&text, MAX_MESSAGE_CHARS) {
            text if text.is_empty() => answered,
            text => format!("{answered}: {text}"),
        };
        let failure = self.of_request(payload).failure(kind, &message);
        ModelFailure {
            retry_after: wait,
            cause: status.map_or(FailureCause::Other, FailureCause::Status),
            ..failure
        }
    }

    /// The same with the request's id that a payload names, where none is known.
    fn of_request(&self, payload: &Value) -> Cow<'_, Self> {
        match self.quote(&member(payload, "request_id"), MAX_ID_CHARS) {
            id if self.request_id.is_none() && !id.is_empty() => Cow::Owned(Self {
                request_id: Some(id),
                ..self.clone()
            }),
            _ => Cow::Borrowed(self),
        }
    }

    /// The beginning of what a server said, on one line. One that quotes its client's headers would
    /// put the key into every log.
    fn quote(&self, text: &str, max_chars: usize) -> String {
        let secrets = self.secrets.iter().map(ExposeSecret::expose_secret);
        let secrets = secrets.filter(|secret| secret.len() >= SHORTEST_SECRET);
        let heard = beginning(text);
        let mut shown = secrets.clone().fold(heard.to_owned(), |text, secret| {
            text.replace(secret, "[key]")
        });
        if heard.len() >= MAX_HEARD - 3 {
            // It may end with the beginning of one.
            let longest = secrets.map(str::len).max().unwrap_or(0);
            let end = shown.len().saturating_sub(longest);
            shown.truncate(shown.floor_char_boundary(end));
        }
        one_line(&shown, max_chars)
    }
}

/// The error that a payload reports, if it reports one.
#[must_use]
pub fn error_of(payload: &Value) -> Option<&Value> {
    let of = |value: &'_ Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::Array(_) => true,
    };
    let own = payload.get("error");
    let choice = payload.pointer("/choices/0/error");
    if let Some(error) = own.or(choice).filter(|error| of(error)) {
        return Some(error);
    }
    (member(payload, "object") == "error").then_some(payload)
}

/// Whether a body is a page for people, as proxies send it.
pub(crate) fn is_html(body: &str) -> bool {
    body.trim_start().starts_with('<')
}

fn kind_of_status(status: u16, words: &str, says_when: bool) -> ModelFailureKind {
    match status {
        401 | 403 => ModelFailureKind::Auth,
        402 => ModelFailureKind::Rejected,
        429 if any(&QUOTA_WORDS, words) => ModelFailureKind::Rejected,
        429 if words.contains("quota") && !says_when => ModelFailureKind::Rejected,
        429 => ModelFailureKind::Unavailable,
        _ if any(&CONTEXT_WORDS, words) => ModelFailureKind::ContextExceeded,
        408 | 409 | 425 | 500.. => ModelFailureKind::Unavailable,
        _ => ModelFailureKind::Rejected,
    }
}

/// What an error without a status means, by its type or, where that says nothing, by all its words.
fn kind_of_report(class: &str, words: &str) -> ModelFailureKind {
    if any(&CONTEXT_WORDS, words) {
        return ModelFailureKind::ContextExceeded;
    }
    match class {
        "rate_limit_error" | "overloaded_error" | "api_error" | "timeout_error" => {
            ModelFailureKind::Unavailable
        }
        "authentication_error" | "permission_error" => ModelFailureKind::Auth,
        "invalid_request_error" | "not_found_error" | "billing_error" => ModelFailureKind::Rejected,
        _ if any(&["authentication", "permission", "invalid_api_key"], words) => {
            ModelFailureKind::Auth
        }
        _ if any(&QUOTA_WORDS, words)
            || any(&["invalid_request", "not_found", "content_policy"], words) =>
        {
            ModelFailureKind::Rejected
        }
        _ => ModelFailureKind::Unavailable,
    }
}

fn any(needles: &[&str], text: &str) -> bool {
    needles.iter().any(|needle| text.contains(needle))
}

/// As much of a text as is looked at.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_HEARD)]
}

/// The beginning of a member as text; empty if there is none.
fn member(value: &Value, name: &str) -> String {
    match value.get(name) {
        Some(Value::String(text)) => beginning(text).to_owned(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// The beginning of a text, with each run of white space and control characters as one space.
fn one_line(text: &str, max_chars: usize) -> String {
    let words = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty());
    let line = words.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// How long the server asks to wait: in milliseconds, in seconds, or until a date by its own clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |name: &str| text(name)?.parse::<f64>().ok();
    let date = |name: &str| httpdate::parse_http_date(text(name)?).ok();

    let millis = number("retry-after-ms").map(|millis| millis / 1000.0);
    if let Some(seconds) = millis.or_else(|| number("retry-after")) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = date("retry-after")?;
    let now = date("date").unwrap_or_else(here);
    Some(until.duration_since(now).unwrap_or_default())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a server that does not tell its own time can only mean everybody's"
)]
fn here() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests;
