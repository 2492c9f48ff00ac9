//! What goes over the wire, before a server on the loopback. What all providers over HTTP have in common
//! is tested with another one.

use std::time::Duration;

use futures::StreamExt;
use hango_anthropic::{AnthropicProvider, Settings};
use hango_conformance::{FakeServer, OtherSide, Reply};
use hango_domain::accumulator::Accumulator;
use hango_domain::conversation::{Block, Role, StopReason};
use hango_domain::model::{FailureCause, ModelFailure, ModelFailureKind, ModelReply};
use hango_ports::Provider;
use hango_provider_http::testing;
use http::HeaderMap;
use serde_json::{Map, Value, json};
use url::Url;

const KEY: &str = "sk-ant-secret";

const STREAM: &str = include_str!("../src/cuts/recorded.sse");

async fn ask(reply: Vec<u8>) -> (Result<ModelReply, ModelFailure>, String) {
    // Only the first test of a process installs it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = FakeServer::start([Reply::Whole(reply)]).await;
    let second = Duration::from_secs(1);
    let settings = Settings {
        name: "local".to_owned(),
        base_url: Url::parse(&format!("http://{}", server.address())).expect("a URL"),
        api_key: Some(KEY.into()),
        headers: HeaderMap::from_iter([(
            "anthropic-beta".parse().expect("a name"),
            "of-tomorrow-2027-01-01".parse().expect("a value"),
        )]),
        extra_body: Map::from_iter([("top_k".to_owned(), 5.into())]),
        connect_timeout: 10 * second,
        first_byte_timeout: 10 * second,
        idle_timeout: 10 * second,
    };
    let provider = AnthropicProvider::new(settings, &[]).expect("a provider");
    let answer = answer(&provider).await;
    (answer, server.heard().remove(0))
}

async fn answer(provider: &AnthropicProvider) -> Result<ModelReply, ModelFailure> {
    let call = testing::call(vec![(Role::User, vec![Block::text("hi")])]);
    let mut answer = Accumulator::new("call_1");
    let mut stream = provider.stream(call).await?;
    while let Some(event) = stream.next().await {
        answer.push(event?)?;
    }
    answer.finish()
}

fn response(status: &str, header: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{header}\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}

#[tokio::test]
async fn a_call_is_one_post_with_the_key_and_its_answer_is_streamed() {
    let header = "content-type: text/event-stream; charset=utf-8";

    let (reply, request) = ask(response("200 OK", header, STREAM)).await;

    let reply = reply.expect("whole");
    assert_eq!(reply.stop_reason, StopReason::ToolUse);
    assert_eq!(
        (reply.usage.input_tokens, reply.usage.cache_read_tokens),
        (1401, 1024)
    );
    let (head, body) = request.split_once("\r\n\r\n").expect("a body");
    assert!(head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{head}");
    for line in [
        "accept: text/event-stream",
        "accept-encoding: identity",
        "anthropic-beta: of-tomorrow-2027-01-01",
        "anthropic-version: 2023-06-01",
        "content-type: application/json",
        "x-api-key: sk-ant-secret",
    ] {
        assert!(head.lines().any(|sent| sent == line), "{line} in {head}");
    }
    let body: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body["messages"][0]["content"][0]["text"], "hi");
    assert_eq!((&body["stream"], &body["top_k"]), (&json!(true), &json!(5)));
}

#[tokio::test]
async fn a34_and_a35_a_refusal_is_told_with_the_requests_id_and_without_the_key() {
    let error = json!({"type": "overloaded_error", "message": format!("Overloaded, {KEY}")});
    let body = json!({"type": "error", "error": error, "request_id": "req_body"}).to_string();

    let (of_body, _) = ask(response("529 Overloaded", "retry-after: 7", &body)).await;
    let (of_header, _) = ask(response("529 Overloaded", "request-id: req_1", &body)).await;

    let failure = |id: &str| {
        let message = format!("provider local answered 529: Overloaded, [key] (request {id})");
        ModelFailure::new(ModelFailureKind::Unavailable, message)
            .caused_by(FailureCause::Status(529))
    };
    let asked_to_wait = ModelFailure {
        retry_after: Some(Duration::from_secs(7)),
        ..failure("req_body")
    };
    assert_eq!(of_body, Err(asked_to_wait));
    assert_eq!(of_header, Err(failure("req_1")));
}

#[tokio::test]
async fn a27_an_error_within_the_stream_is_told_with_the_requests_id() {
    let header = "content-type: text/event-stream\r\nrequest-id: req_1";
    let error = json!({"type": "overloaded_error", "message": "Overloaded"});
    let error = json!({"type": "error", "error": error});
    let body = format!("event: error\ndata: {error}\n\n");

    let (reply, _) = ask(response("200 OK", header, &body)).await;

    let message = "provider local reported an error: Overloaded (request req_1)";
    let overloaded = ModelFailure::new(ModelFailureKind::Unavailable, message);
    assert_eq!(reply, Err(overloaded.caused_by(FailureCause::Other)));
}

#[tokio::test]
async fn t13_a_whole_answer_in_json_is_taken_and_a_page_is_not() {
    let text = json!({"type": "text", "text": "Hi"});
    let body = json!({"type": "message", "content": [text], "stop_reason": "end_turn"});

    let (whole, _) = ask(response(
        "200 OK",
        "content-type: application/json",
        &body.to_string(),
    ))
    .await;
    let (page, _) = ask(response(
        "200 OK",
        "content-type: text/html",
        "<p>Sign in</p>",
    ))
    .await;

    assert_eq!(whole.expect("whole").content, [Block::text("Hi")]);
    assert_eq!(
        page.expect_err("a page").kind,
        ModelFailureKind::Unavailable
    );
}

#[tokio::test]
async fn t16_a_compressed_answer_was_not_asked_for() {
    let header = "content-type: text/event-stream\r\ncontent-encoding: gzip";

    let (reply, _) = ask(response("200 OK", header, "\u{1f}")).await;

    let message = "provider local compressed its answer, which was not asked for";
    assert_eq!(
        reply,
        Err(ModelFailure::new(ModelFailureKind::Protocol, message))
    );
}
