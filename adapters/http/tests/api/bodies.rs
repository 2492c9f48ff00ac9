//! Bodies: their type, their size, their form, and everything that is wrong with their fields.

use http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, MAX_BODY, Server};

async fn raw(server: &Server, media: &str, body: impl Into<axum::body::Body>) -> Answer {
    let call = server.call(Method::POST, "/v1/agents").key(&server.owner);
    call.header("content-type", media).body(body).send().await
}

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

#[tokio::test]
async fn a_body_is_json_and_says_so() {
    let server = Server::start().await;
    for media in [
        "text/plain",
        "application/xml",
        "application/json; charset=latin1",
        "",
    ] {
        let answer = raw(&server, media, "{}").await;
        answer.is_problem(415, "unsupported_media_type");
    }
    for media in ["application/json", "Application/JSON; charset=UTF-8"] {
        assert_eq!(raw(&server, media, "{}").await.status, 422);
    }
    let call = server.call(Method::POST, "/v1/agents").key(&server.owner);
    let call = call.header("content-encoding", "gzip").json(&json!({}));
    call.send().await.is_problem(415, "unsupported_media_type");
}

#[tokio::test]
async fn a_body_that_is_no_json_is_refused() {
    let server = Server::start().await;
    for body in [
        "",
        "{",
        "{} {}",
        "nope",
        r#"{"a": "\ud800"}"#,
        r#"{"a": 1e999}"#,
    ] {
        let answer = raw(&server, "application/json", body).await;
        answer.is_problem(400, "malformed_json");
    }
    let answer = raw(&server, "application/json", vec![b'"', 0xff, b'"']).await;
    answer.is_problem(400, "malformed_json");
}

#[tokio::test]
async fn json_is_nested_32_levels_deep_at_most() {
    let server = Server::start().await;
    let with = |levels| format!(r#"{{"metadata": {{"deep": {}}}}}"#, nested(levels));

    assert_eq!(raw(&server, "application/json", with(30)).await.status, 422);
    for levels in [31, 120, 7_000] {
        let answer = raw(&server, "application/json", with(levels)).await;
        answer.is_problem(400, "malformed_json");
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_announced_or_not() {
    let server = Server::start().await;
    let large = vec![b' '; MAX_BODY + 1];
    let announced = server
        .call(Method::POST, "/v1/agents")
        .key(&server.owner)
        .header("content-type", "application/json")
        .header("content-length", &large.len().to_string())
        .body(large.clone());
    announced.send().await.is_problem(413, "body_too_large");

    let chunk = Ok::<_, std::io::Error>(axum::body::Bytes::from(large));
    let streamed = axum::body::Body::from_stream(futures::stream::iter([chunk]));
    let answer = raw(&server, "application/json", streamed).await;
    answer.is_problem(413, "body_too_large");
}

#[tokio::test]
async fn all_that_is_wrong_is_listed_at_once() {
    let server = Server::start().await;

    let body = json!({
        "slug": "Not A Slug",
        "provider": "nobody",
        "tools": ["get_time", 7, "shell"],
        "temperature": 3,
        "max_tokens": 0,
        "limits": {"max_iterations": 21, "tool_timeout_ms": "1s", "run_deadline_ms": 0, "cpu": 1},
        "middleware": {
            "todo": {"enabled": "yes"},
            "repeat_call": {"threshold": 0, "enabled": false, "speed": 1},
            "tool_allowlist": {"enabled": false},
        },
        "metadata": [],
        "tenant_id": "x",
        "na\0me": "x",
    });
    let answer = server.post(&server.owner, "/v1/agents", body).await;

    answer.is_invalid(&[
        ("/limits/cpu", "unknown_field"),
        ("/limits/max_iterations", "limit_too_large"),
        ("/limits/run_deadline_ms", "out_of_range"),
        ("/limits/tool_timeout_ms", "invalid_type"),
        ("/max_tokens", "out_of_range"),
        ("/metadata", "invalid_type"),
        ("/middleware/repeat_call/speed", "unknown_field"),
        ("/middleware/repeat_call/threshold", "out_of_range"),
        ("/middleware/todo/enabled", "invalid_type"),
        ("/middleware/tool_allowlist", "unknown_field"),
        ("/model", "required"),
        ("/na\0me", "invalid_text"),
        ("/na\0me", "unknown_field"),
        ("/provider", "unknown_provider"),
        ("/slug", "invalid_format"),
        ("/temperature", "out_of_range"),
        ("/tenant_id", "unknown_field"),
        ("/tools/1", "invalid_type"),
        ("/tools/2", "unknown_tool"),
    ]);
    assert_eq!(answer.body["detail"], "19 fields are not acceptable");
}

#[tokio::test]
async fn a_body_that_is_no_object_is_one_fault() {
    let server = Server::start().await;
    for body in [json!([]), json!("text"), json!(null)] {
        let answer = server.post(&server.owner, "/v1/agents", body).await;
        answer.is_invalid(&[("", "invalid_type")]);
    }
}

#[tokio::test]
async fn numbers_are_whole_and_in_their_range() {
    let server = Server::start().await;
    let wrong = async |most: Value| {
        let body = json!({"slug": "a", "provider": "demo", "model": "m", "max_tokens": most});
        server
            .post(&server.owner, "/v1/agents", body)
            .await
            .entries()
    };
    for (most, code) in [
        (json!(-1), "out_of_range"),
        (json!(1e30), "out_of_range"),
        (json!(1.5), "invalid_type"),
        (json!("1"), "invalid_type"),
        (json!(true), "invalid_type"),
    ] {
        let expected = ("/max_tokens".to_owned(), code.to_owned());
        assert_eq!(wrong(most).await, [expected]);
    }
}

#[tokio::test]
async fn the_null_character_is_refused_wherever_it_is() {
    let server = Server::start().await;
    let session = server.owners_session().await;

    let body = json!({"title": "a\0b", "metadata": {"k\0": {"deep": ["x", "\0"]}}});
    let answer = server.patch(&server.owner, &session, body).await;

    answer.is_invalid(&[
        ("/metadata/k\0", "invalid_text"),
        ("/metadata/k\0/deep/1", "invalid_text"),
        ("/title", "invalid_text"),
    ]);
}

#[tokio::test]
async fn any_other_text_comes_back_unchanged() {
    let server = Server::start().await;
    let session = server.owners_session().await;
    let text = "\u{1}\u{202e}\u{fffd}\r\n<img>\u{1f600} e\u{301}\u{feff}";

    let body = json!({"title": text, "metadata": {text: [text, null, 1.5, {}]}});
    let answer = server.patch(&server.owner, &session, body.clone()).await;

    assert_eq!(answer.status, 200);
    assert_eq!(answer.body["title"], body["title"]);
    assert_eq!(answer.body["metadata"], body["metadata"]);
}

#[tokio::test]
async fn who_calls_comes_before_the_body_and_the_body_before_what_the_path_names() {
    let server = Server::start().await;
    let nowhere = "/v1/sessions/0199a000-0000-7000-8000-00000000ffff";
    let call = |media: &str, body: &'static str| {
        let call = server.call(Method::PATCH, nowhere);
        call.header("content-type", media).body(body)
    };

    let anonymous = call("text/plain", "{").send().await;
    anonymous.is_problem(401, "unauthenticated");
    let typed = call("text/plain", "{").key(&server.owner).send().await;
    typed.is_problem(415, "unsupported_media_type");
    let malformed = call("application/json", "{")
        .key(&server.owner)
        .send()
        .await;
    malformed.is_problem(400, "malformed_json");
    let invalid = call("application/json", r#"{"zzz": 1}"#);
    let invalid = invalid.key(&server.owner).send().await;
    invalid.is_problem(404, "not_found");
}
