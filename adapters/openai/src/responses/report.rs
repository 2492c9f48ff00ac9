//! What an error means that comes within a stream: `response.failed`, or an event `error`.
//!
//! * Its code decides. What the codes of all providers mean, [`Origin`] knows; here are those that this
//!   API alone has: they are about the request, which will be refused again.
//! * A rate limit says in words for people how long it holds.

use std::time::Duration;

use hango_domain::model::{ModelFailure, ModelFailureKind};
use hango_provider_http::{Origin, error_of};
use serde_json::Value;

/// How the codes begin that are about the request.
const OF_THE_REQUEST: [&str; 9] = [
    "bio_policy",
    "cyber_policy",
    "data_residency",
    "empty_image",
    "failed_to_download",
    "image_",
    "invalid_",
    "unsupported_",
    "usage_not_included",
];

/// What stands before the time that a rate limit lasts.
const BEFORE_THE_WAIT: [&str; 2] = ["try again in", "retry after"];

/// The failure that a payload reports.
pub(crate) fn failure(origin: &Origin, payload: &Value) -> ModelFailure {
    let error = error_of(payload).unwrap_or(payload);
    let word = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    let failure = origin.reported(payload);
    if failure.kind != ModelFailureKind::Unavailable {
        return failure;
    }
    if OF_THE_REQUEST
        .iter()
        .any(|code| word("code").starts_with(code))
    {
        return ModelFailure {
            kind: ModelFailureKind::Rejected,
            ..failure
        };
    }
    ModelFailure {
        retry_after: failure.retry_after.or_else(|| wait(word("message"))),
        ..failure
    }
}

/// How long a text asks to wait: `1.5s`, `20ms`, `6m0s`, `26 seconds`.
fn wait(text: &str) -> Option<Duration> {
    let text = text.to_ascii_lowercase();
    let mut rest = BEFORE_THE_WAIT
        .iter()
        .find_map(|before| Some(text.split_once(before)?.1))?
        .trim_start();
    let mut wait = None;
    loop {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, behind) = rest.split_at(number.unwrap_or(rest.len()));
        let behind = behind.trim_start();
        let unit = behind.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, behind) = behind.split_at(unit.unwrap_or(behind.len()));
        let (Ok(number), Some(seconds)) = (number.parse::<f64>(), seconds(unit)) else {
            return wait;
        };
        let more = Duration::try_from_secs_f64(number * seconds).ok()?;
        wait = Some(wait.unwrap_or(Duration::ZERO).saturating_add(more));
        rest = behind;
    }
}

/// How many seconds a unit has.
fn seconds(unit: &str) -> Option<f64> {
    match unit {
        "ms" | "millisecond" | "milliseconds" => Some(0.001),
        "s" | "second" | "seconds" => Some(1.0),
        "m" | "minute" | "minutes" => Some(60.0),
        "h" | "hour" | "hours" => Some(3600.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn r3_a_code_says_whether_another_try_may_help() {
        use ModelFailureKind::{Auth, ContextExceeded, Rejected, Unavailable};
        for (code, kind) in [
            ("context_length_exceeded", ContextExceeded),
            ("insufficient_quota", Rejected),
            ("invalid_prompt", Rejected),
            ("bio_policy", Rejected),
            ("cyber_policy", Rejected),
            ("data_residency_mismatch", Rejected),
            ("image_content_policy_violation", Rejected),
            ("unsupported_image_media_type", Rejected),
            ("usage_not_included", Rejected),
            ("invalid_api_key", Auth),
            ("rate_limit_exceeded", Unavailable),
            ("server_error", Unavailable),
            ("vector_store_timeout", Unavailable),
            ("server_is_overloaded", Unavailable),
            ("of_tomorrow", Unavailable),
        ] {
            let error = json!({"code": code, "message": "Sorry."});
            let nested = failure(&Origin::named("p"), &json!({"error": error}));
            assert_eq!(nested.kind, kind, "{code}");
            assert_eq!(nested.message, "provider p reported an error: Sorry.");
            assert_eq!(failure(&Origin::named("p"), &error), nested, "{code}");
        }
    }

    #[test]
    fn r3_the_delay_of_a_rate_limit_is_read_out_of_its_words() {
        for (words, millis) in [
            ("Please try again in 1.5s. Visit …", Some(1500)),
            ("Please try again in 20ms.", Some(20)),
            ("Please try again in 6m0s.", Some(360_000)),
            ("Please try again in 1h1m1.5s", Some(3_661_500)),
            ("Try again in 35 seconds.", Some(35_000)),
            ("Please retry after 1 second. To increase …", Some(1000)),
            ("Please try again in a moment.", None),
            ("Please try again in 5 fortnights.", None),
            ("Please try again in 1.2.3s.", None),
            (&format!("Please try again in 1{}s.", "0".repeat(400)), None),
            ("", None),
        ] {
            let error = json!({"code": "rate_limit_exceeded", "message": words});
            let failure = failure(&Origin::named("p"), &error);
            let expected = millis.map(Duration::from_millis);
            assert_eq!(failure.retry_after, expected, "{words}");
        }
    }

    #[test]
    fn what_is_final_has_no_delay() {
        let error = json!({"code": "insufficient_quota", "message": "Please try again in 1s."});

        let failure = failure(&Origin::named("p"), &error);

        assert_eq!(
            (failure.kind, failure.retry_after),
            (ModelFailureKind::Rejected, None)
        );
    }
}
