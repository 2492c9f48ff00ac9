//! What an error of the server means, whether it comes as a status or within a stream.
//!
//! * The status decides; where there is none, the error's own code does.
//! * A rate limit passes, a quota does not: a 429 that speaks of a quota and does not say when to come
//!   back is final.
//! * What people read is short, on one line, and free of the key.

use std::time::{Duration, SystemTime};

use hango_domain::model::{ModelFailure, ModelFailureKind};
use http::{HeaderMap, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

/// How much of what a server said is shown.
const MAX_MESSAGE_CHARS: usize = 500;

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
const QUOTA_WORDS: [&str; 4] = [
    "insufficient_quota",
    "credit balance",
    "insufficient balance",
    "billing_hard_limit",
];

/// Which server an answer came from, as its failures name it.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// The provider's name in the configuration.
    pub(crate) provider: String,
    /// What must never be shown.
    pub(crate) secrets: Vec<SecretString>,
    /// The server's id of the request, for whoever asks its operators.
    pub(crate) request_id: Option<String>,
}

impl Origin {
    /// A failure of `kind`; `message` goes on where "provider x" left off.
    pub(crate) fn failure(&self, kind: ModelFailureKind, message: &str) -> ModelFailure {
        let mut message = format!("provider {} {message}", self.provider);
        if let Some(id) = &self.request_id {
            message = format!("{message} (request {id})");
        }
        ModelFailure::new(kind, message)
    }

    /// What came is not the protocol; `what` says how, `text` is the beginning of it.
    pub(crate) fn garbled(&self, what: &str, text: &str) -> ModelFailure {
        let message = format!("sent {what}: {}", self.quote(text, 120));
        self.failure(ModelFailureKind::Protocol, &message)
    }

    /// An error that the server reported within a stream, or in place of an answer.
    pub(crate) fn reported(&self, error: &Value) -> ModelFailure {
        self.judged(None, error, None)
    }

    /// An answer with a status that is no success.
    pub(crate) fn refused(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &str,
    ) -> ModelFailure {
        let wait = retry_after(headers);
        let json: Option<Value> = serde_json::from_str(body).ok();
        let error = json.as_ref().map(|json| error_of(json).unwrap_or(json));
        match error {
            Some(error) => self.judged(Some(status.as_u16()), error, wait),
            None if is_html(body) => self.judged(Some(status.as_u16()), &Value::Null, wait),
            None => self.judged(Some(status.as_u16()), &Value::from(body), wait),
        }
    }

    fn judged(&self, status: Option<u16>, error: &Value, wait: Option<Duration>) -> ModelFailure {
        let code = member(error, "code");
        let status = status.or_else(|| code.parse().ok().filter(|code| (400..600).contains(code)));
        let text = match error {
            Value::String(text) => text.clone(),
            _ => member(error, "message"),
        };
        let words = format!("{code} {} {text}", member(error, "type")).to_lowercase();
        let kind = match status {
            Some(status) => kind_of_status(status, &words, wait.is_some()),
            None => kind_of_words(&words),
        };
        let answered = match status {
            Some(status) => format!("answered {status}"),
            None => "reported an error".to_owned(),
        };
        let message = match self.quote(&text, MAX_MESSAGE_CHARS) {
            text if text.is_empty() => answered,
            text => format!("{answered}: {text}"),
        };
        ModelFailure {
            retry_after: wait,
            ..self.failure(kind, &message)
        }
    }

    /// The beginning of what a server said, on one line. One that quotes its client's headers would
    /// put the key into every log.
    fn quote(&self, text: &str, max_chars: usize) -> String {
        let secrets = self.secrets.iter().map(ExposeSecret::expose_secret);
        let text = secrets
            .filter(|secret| !secret.is_empty())
            .fold(text.to_owned(), |text, secret| {
                text.replace(secret, "[key]")
            });
        one_line(&text, max_chars)
    }
}

/// The error that a payload reports, if it reports one.
pub(crate) fn error_of(payload: &Value) -> Option<&Value> {
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

fn kind_of_words(words: &str) -> ModelFailureKind {
    if any(&CONTEXT_WORDS, words) {
        ModelFailureKind::ContextExceeded
    } else if any(&["authentication", "permission", "invalid_api_key"], words) {
        ModelFailureKind::Auth
    } else if any(&QUOTA_WORDS, words)
        || any(&["invalid_request", "not_found", "content_policy"], words)
    {
        ModelFailureKind::Rejected
    } else {
        ModelFailureKind::Unavailable
    }
}

fn any(needles: &[&str], text: &str) -> bool {
    needles.iter().any(|needle| text.contains(needle))
}

/// A member as text; empty if there is none.
fn member(value: &Value, name: &str) -> String {
    match value.get(name) {
        Some(Value::String(text)) => text.clone(),
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
