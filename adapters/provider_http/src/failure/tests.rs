use std::sync::{Arc, Mutex};

use hango_domain::model::ModelFailureKind::{
    Auth, ContextExceeded, Protocol, Rejected, Unavailable,
};
use http::header::RETRY_AFTER;
use serde_json::json;

use super::*;

/// What is written to the log meanwhile.
fn logged(work: impl FnOnce()) -> String {
    let log = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::clone(&log);
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || Written(Arc::clone(&writer)))
        .finish();
    tracing::subscriber::with_default(subscriber, work);
    let bytes = log.lock().expect("no writer has panicked").clone();
    String::from_utf8(bytes).expect("text")
}

struct Written(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no writer has panicked").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn origin() -> Origin {
    Origin {
        provider: "local".to_owned(),
        secrets: vec!["sk-secret".into()],
        request_id: None,
    }
}

fn refused(status: u16, body: &str) -> ModelFailure {
    let status = StatusCode::from_u16(status).expect("a status");
    origin().refused(status, &HeaderMap::new(), body)
}

fn waiting(headers: &[(&'static str, &str)]) -> Option<Duration> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, value.parse().expect("a header value"));
    }
    origin()
        .refused(StatusCode::TOO_MANY_REQUESTS, &map, "")
        .retry_after
}

#[test]
fn e6_and_e7_the_status_decides() {
    let table = [
        (302, Rejected),
        (400, Rejected),
        (401, Auth),
        (402, Rejected),
        (403, Auth),
        (404, Rejected),
        (408, Unavailable),
        (409, Unavailable),
        (413, Rejected),
        (422, Rejected),
        (425, Unavailable),
        (429, Unavailable),
        (500, Unavailable),
        (502, Unavailable),
        (503, Unavailable),
        (529, Unavailable),
    ];

    for (status, kind) in table {
        assert_eq!(refused(status, "").kind, kind, "{status}");
    }
}

#[test]
fn e5_a_quota_is_final_and_a_rate_is_not() {
    let body = |code: &str, message: &str| {
        json!({"error": {"message": message, "type": "requests", "code": code}}).to_string()
    };
    let quota = body("insufficient_quota", "You exceeded your current quota.");
    let rate = body("rate_limit_exceeded", "Rate limit reached for requests");

    assert_eq!(refused(429, &quota).kind, Rejected);
    assert_eq!(refused(429, &body("", "Quota exceeded.")).kind, Rejected);
    assert_eq!(refused(429, &rate).kind, Unavailable);
}

#[test]
fn e5_a_quota_that_comes_back_at_a_known_time_is_a_rate() {
    let headers = HeaderMap::from_iter([(RETRY_AFTER, "30".parse().expect("a header value"))]);

    let failure = origin().refused(StatusCode::TOO_MANY_REQUESTS, &headers, "quota exceeded");

    assert_eq!(failure.kind, Unavailable);
    assert_eq!(failure.retry_after, Some(Duration::from_secs(30)));
}

#[test]
fn e8_a_conversation_that_is_too_long_has_many_names() {
    for text in [
        "This model's maximum context length is 8192 tokens.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "Input is too long for requested model.",
        "the request exceeds the available context size, code exceed_context_size_error",
    ] {
        let body = json!({"error": {"message": text}}).to_string();

        assert_eq!(refused(400, &body).kind, ContextExceeded, "{text}");
    }
    let coded = json!({"error": {"code": "context_length_exceeded", "message": "x"}});
    assert_eq!(origin().reported(&coded["error"]).kind, ContextExceeded);
}

#[test]
fn e1_to_e3_the_wait_is_read_in_seconds_dates_and_milliseconds() {
    let second = Duration::from_secs(1);

    assert_eq!(waiting(&[]), None);
    assert_eq!(waiting(&[("retry-after", "5")]), Some(5 * second));
    assert_eq!(
        waiting(&[("retry-after", "5"), ("retry-after-ms", "1500")]),
        Some(Duration::from_millis(1500))
    );
    assert_eq!(
        waiting(&[
            ("date", "Wed, 21 Oct 2026 07:27:00 GMT"),
            ("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"),
        ]),
        Some(60 * second)
    );
    assert_eq!(
        waiting(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]),
        Some(Duration::ZERO)
    );
    assert_eq!(waiting(&[("retry-after", "soon")]), None);
    assert_eq!(waiting(&[("retry-after", "-1")]), None);
    assert_eq!(waiting(&[("retry-after", "1e300")]), None);
}

#[test]
fn o32_a_numeric_code_in_the_stream_is_a_status() {
    let kind = |error: Value| origin().reported(&error).kind;

    assert_eq!(
        kind(json!({"message": "slow down", "code": 429})),
        Unavailable
    );
    assert_eq!(kind(json!({"message": "who?", "code": "401"})), Auth);
    assert_eq!(
        kind(json!({"message": "no", "type": "invalid_request_error"})),
        Rejected
    );
    assert_eq!(
        kind(json!({"message": "Failed to parse input at pos 3"})),
        Unavailable
    );
    assert_eq!(kind(json!("it broke")), Unavailable);
}

#[test]
fn a28_the_type_of_an_error_decides_whatever_its_words_say() {
    let table = [
        ("invalid_request_error", Rejected),
        ("authentication_error", Auth),
        ("permission_error", Auth),
        ("not_found_error", Rejected),
        ("billing_error", Rejected),
        ("request_too_large", ContextExceeded),
        ("rate_limit_error", Unavailable),
        ("api_error", Unavailable),
        ("overloaded_error", Unavailable),
        ("timeout_error", Unavailable),
    ];

    for (class, kind) in table {
        let error = json!({"type": class, "message": "permission not_found invalid_request"});
        let payload = json!({"type": "error", "error": error});

        assert_eq!(origin().reported(&payload).kind, kind, "{class}");
    }
}

#[test]
fn a34_the_requests_id_is_told_wherever_it_stands() {
    let body = json!({
        "type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded"},
        "request_id": "req_body",
    });
    let of_header = Origin {
        request_id: Some("req_header".to_owned()),
        ..origin()
    };

    assert_eq!(
        origin().reported(&body).message,
        "provider local reported an error: Overloaded (request req_body)"
    );
    assert_eq!(
        of_header.reported(&body).message,
        "provider local reported an error: Overloaded (request req_header)"
    );
}

#[test]
fn a_payload_without_an_error_reports_none() {
    for payload in [
        json!({"choices": []}),
        json!({"error": null}),
        json!({"error": ""}),
        json!({"error": {}}),
    ] {
        assert_eq!(error_of(&payload), None, "{payload}");
    }
    let whole = json!({"object": "error", "message": "x", "code": 400});
    assert_eq!(error_of(&whole), Some(&whole));
}

#[test]
fn messages_are_one_short_line_without_the_key() {
    let body = format!("bad key\n\tsk-secret {}", "x".repeat(2000));

    let failure = Origin {
        request_id: Some("req_1".to_owned()),
        ..origin()
    }
    .refused(StatusCode::UNAUTHORIZED, &HeaderMap::new(), &body);

    let message = failure.message;
    assert!(message.starts_with("provider local answered 401: bad key [key] xxx"));
    assert!(message.ends_with("x… (request req_1)"));
    assert!(message.len() < 600);
}

#[test]
fn a_page_for_people_is_not_quoted() {
    let failure = refused(502, "<html><body>Bad Gateway</body></html>");

    assert_eq!(
        failure,
        ModelFailure::new(Unavailable, "provider local answered 502")
            .caused_by(FailureCause::Status(502))
    );
}

#[test]
fn what_is_not_the_protocol_is_quoted_shortly() {
    let failure = origin().garbled("an event that is not JSON", &"{".repeat(500));

    assert_eq!(failure.kind, Protocol);
    assert!(failure.message.len() < 200);
}

#[test]
fn t10_an_unknown_event_is_told_by_its_kind_and_its_size() {
    let long = "x".repeat(1000);

    let log = logged(|| {
        origin().passes_over("something_new", 77);
        origin().passes_over(&format!("sk-secret\n{long}"), 1);
    });

    let lines: Vec<_> = log.lines().collect();
    let [plain, odd] = lines[..] else {
        panic!("two lines, not {log}");
    };
    assert!(
        plain.contains("DEBUG") && plain.contains("provider=\"local\""),
        "{plain}"
    );
    assert!(
        plain.contains("something_new") && plain.contains("bytes=77"),
        "{plain}"
    );
    assert!(odd.contains("[key] xxx") && odd.len() < 400, "{odd}");
}

#[test]
fn a_key_is_not_shown_where_what_is_heard_ends_within_it() {
    let text = format!(
        "{}sk-secret{}",
        " ".repeat(MAX_HEARD - 4),
        "x".repeat(MAX_HEARD)
    );

    let failure = origin().garbled("an event", &text);

    assert_eq!(failure.message, "provider local sent an event: ");
}

#[test]
fn what_a_server_says_is_read_if_it_takes_little_memory() {
    let many = format!("[{}0]", "{},".repeat(10_000));

    let read = |json: &str| origin().read("an event", json);

    assert_eq!(read("[\"\\ud83d\"]"), Ok(json!(["\u{fffd}"])));
    let failure = |message: &str| {
        let message = format!("provider local sent an event that {message}");
        Err(ModelFailure::new(Protocol, message))
    };
    assert_eq!(read("{bad"), failure("is not JSON: {bad"));
    assert_eq!(read(&many), failure("takes more than 1984 KiB to read"));
}
