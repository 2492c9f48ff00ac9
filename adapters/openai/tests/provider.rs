//! The provider against a real server on the loopback.

use std::time::Duration;

use futures::StreamExt;
use hango_domain::accumulator::Accumulator;
use hango_domain::conversation::{Block, Role, StopReason};
use hango_domain::model::{FailureCause, ModelCall, ModelFailure, ModelFailureKind, ModelReply};
use hango_domain::tool::{ToolDef, schema};
use hango_openai::{Api, OpenAiProvider, Quirk, Settings, SettingsError};
use hango_ports::Provider;
use hango_provider_http::testing;
use http::HeaderMap;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use url::Url;

const KEY: &str = "sk-secret";

const STREAM: &str = concat!(
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"caf\u{e9}\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":3}}\n\n",
    "data: [DONE]\n\n",
);

const EVENT_STREAM: &str = "content-type: text/event-stream; charset=utf-8";

fn settings(url: &Url) -> Settings {
    // Only the first test of a process installs it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Settings {
        name: "local".to_owned(),
        base_url: url.clone(),
        api_key: Some(KEY.into()),
        headers: HeaderMap::from_iter([(
            http::header::ORIGIN,
            http::HeaderValue::from_static("elsewhere"),
        )]),
        extra_body: Map::from_iter([("top_k".to_owned(), 5.into())]),
        connect_timeout: Duration::from_secs(10),
        first_byte_timeout: Duration::from_secs(10),
        idle_timeout: Duration::from_secs(10),
    }
}

fn provider(url: &Url) -> OpenAiProvider {
    OpenAiProvider::new(settings(url), Api::ChatCompletions, &[]).expect("a provider")
}

fn call() -> ModelCall {
    let mut call = testing::call(vec![(Role::User, vec![Block::text("hi")])]);
    call.max_tokens = Some(64);
    call.tools = vec![ToolDef {
        name: "f".to_owned(),
        description: String::new(),
        parameters: schema::object([]),
    }];
    call
}

async fn ask(provider: &OpenAiProvider) -> Result<ModelReply, ModelFailure> {
    let mut answer = Accumulator::new("call_1");
    let mut stream = provider.stream(call()).await?;
    while let Some(event) = stream.next().await {
        answer.push(event?)?;
    }
    answer.finish()
}

async fn listen() -> (Url, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    (
        Url::parse(&format!("http://{address}/v1")).expect("a URL"),
        listener,
    )
}

/// A server that answers one request with these pieces, each sent alone, and tells what it was asked.
async fn server(pieces: Vec<Vec<u8>>) -> (Url, JoinHandle<String>) {
    let (url, listener) = listen().await;
    let served = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a client");
        socket.set_nodelay(true).expect("a socket");
        let request = request(&mut socket).await;
        for piece in pieces {
            // Who has heard enough may have gone.
            let _ = socket.write_all(&piece).await;
        }
        request
    });
    (url, served)
}

async fn request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().expect("a number")) {
                return text.into_owned();
            }
        }
        assert_ne!(socket.read_buf(&mut bytes).await.expect("a request"), 0);
    }
}

fn response(status: &str, header: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{header}\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}

async fn answered(status: &str, header: &str, body: &str) -> Result<ModelReply, ModelFailure> {
    let (url, _served) = server(vec![response(status, header, body)]).await;
    ask(&provider(&url)).await
}

#[tokio::test]
async fn a_call_is_one_post_with_the_key_and_its_answer_is_streamed() {
    let (url, served) = server(vec![response("200 OK", EVENT_STREAM, STREAM)]).await;

    let reply = ask(&provider(&url)).await.expect("whole");

    assert_eq!(reply.content, [Block::text("caf\u{e9}")]);
    assert_eq!(reply.stop_reason, StopReason::EndTurn);
    assert_eq!(
        (reply.usage.input_tokens, reply.usage.output_tokens),
        (2, 3)
    );
    let request = served.await.expect("a request");
    let (head, body) = request.split_once("\r\n\r\n").expect("a body");
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"));
    for line in [
        "accept: text/event-stream",
        "authorization: Bearer sk-secret",
        "content-type: application/json",
        "origin: elsewhere",
    ] {
        assert!(head.lines().any(|sent| sent == line), "{line} in {head}");
    }
    let body: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body["messages"], json!([{"role": "user", "content": "hi"}]));
    assert_eq!((&body["stream"], &body["top_k"]), (&json!(true), &json!(5)));
}

#[tokio::test]
async fn an_answer_may_come_byte_by_byte() {
    let head = format!("HTTP/1.1 200 OK\r\n{EVENT_STREAM}\r\ntransfer-encoding: chunked\r\n\r\n");
    let bytes = STREAM
        .bytes()
        .map(|byte| [b"1\r\n", &[byte][..], b"\r\n"].concat());
    let mut pieces = vec![head.into_bytes()];
    pieces.extend(bytes);
    pieces.push(b"0\r\n\r\n".to_vec());
    let (url, _served) = server(pieces).await;

    let reply = ask(&provider(&url)).await.expect("whole");

    assert_eq!(reply.content, [Block::text("caf\u{e9}")]);
}

#[tokio::test]
async fn t13_a_whole_answer_in_json_is_taken_and_a_page_is_not() {
    let message = json!({"role": "assistant", "content": "Hi"});
    let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
    let body = json!({"choices": [choice]}).to_string();
    let json = "content-type: application/json";

    let reply = answered("200 OK", json, &body).await.expect("whole");
    assert_eq!(reply.content, [Block::text("Hi")]);

    let html = "content-type: text/html";
    let page = answered("200 OK", html, "<!doctype html><p>Sign in</p>").await;
    assert_eq!(
        page.expect_err("a page").kind,
        ModelFailureKind::Unavailable
    );

    let error = json!({"error": {"message": "no such model", "type": "invalid_request_error"}});
    let error = answered("200 OK", json, &error.to_string()).await;
    assert_eq!(
        error.expect_err("an error").kind,
        ModelFailureKind::Rejected
    );
}

#[tokio::test]
async fn a_refusal_is_told_with_the_servers_words_and_without_the_key() {
    let body = json!({"error": {"message": format!("Incorrect API key provided: {KEY}")}});

    let failure = answered("401 Unauthorized", "x-request-id: req_1", &body.to_string()).await;

    let message = "provider local answered 401: Incorrect API key provided: [key] (request req_1)";
    assert_eq!(
        failure,
        Err(ModelFailure::new(ModelFailureKind::Auth, message).caused_by(FailureCause::Status(401)))
    );
}

#[tokio::test]
async fn a_server_that_is_busy_says_when_to_come_back() {
    let failure = answered("503 Service Unavailable", "retry-after: 7", "busy").await;

    let failure = failure.expect_err("busy");
    assert_eq!(failure.kind, ModelFailureKind::Unavailable);
    assert_eq!(failure.retry_after, Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn l11_a_call_that_the_server_could_not_parse_may_be_tried_again_and_is_told_of() {
    let message = "Failed to parse input at pos 184: <tool_call>";
    let error = json!({"error": {"code": 500, "message": message, "type": "server_error"}});

    let failure = answered(
        "500 Internal Server Error",
        "content-type: application/json",
        &error.to_string(),
    )
    .await;

    let failure = failure.expect_err("an error");
    assert!(failure.kind.is_retryable());
    assert!(failure.message.ends_with(message), "{failure}");
}

#[tokio::test]
async fn o20_the_limit_that_was_sent_is_the_one_that_cuts_off() {
    let function = json!({"name": "f", "arguments": "{\"x\": "});
    let call = json!({"index": 0, "id": "a", "function": function});
    let events = [
        json!({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 32}}),
    ];
    let stream = events.map(|it| format!("data: {it}\n\n")).concat();
    let stop_reason = async |limit: Option<u32>| {
        let (url, _served) = server(vec![response("200 OK", EVENT_STREAM, &stream)]).await;
        let mut settings = settings(&url);
        let limit = limit.map(|limit| ("max_completion_tokens".to_owned(), limit.into()));
        settings.extra_body.extend(limit);
        let provider = OpenAiProvider::new(settings, Api::ChatCompletions, &[]);
        let reply = ask(&provider.expect("a provider")).await;
        reply.expect("whole").stop_reason
    };

    assert_eq!(stop_reason(None).await, StopReason::ToolUse);
    assert_eq!(stop_reason(Some(32)).await, StopReason::MaxTokens);
}

#[tokio::test]
async fn l12_and_l25_quirks_of_the_answer_are_heard() {
    let text = "<think>hm</think><tool_call>{\"name\":\"f\"}</tool_call>";
    let chunk = json!({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]});
    let stream = format!("data: {chunk}\n\ndata: [DONE]\n\n");
    let (url, _served) = server(vec![response("200 OK", EVENT_STREAM, &stream)]).await;
    let quirks = [Quirk::CallsInText, Quirk::ThinkTags];
    let provider = OpenAiProvider::new(settings(&url), Api::ChatCompletions, &quirks);

    let reply = ask(&provider.expect("a provider")).await.expect("whole");

    let [Block::Thinking { thinking, .. }, call] = reply.content.as_slice() else {
        panic!("{reply:?}");
    };
    assert_eq!(thinking, "hm");
    assert_eq!(call.tool_use_id(), Some("call_1_3"));
    assert_eq!(reply.stop_reason, StopReason::ToolUse);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let failure = answered("307 Temporary Redirect", "location: /elsewhere", "").await;

    assert_eq!(
        failure.expect_err("no answer").kind,
        ModelFailureKind::Rejected
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable_and_its_address_is_not_told() {
    let (url, listener) = listen().await;
    drop(listener);

    let failure = ask(&provider(&url)).await.expect_err("nobody there");

    assert_eq!(failure.kind, ModelFailureKind::Unavailable);
    assert!(failure.message.contains("Connection refused"), "{failure}");
    assert!(!failure.message.contains("127.0.0.1"), "{failure}");
}

#[tokio::test]
async fn waiting_has_limits() {
    let impatient = |url: &Url| Settings {
        first_byte_timeout: Duration::from_millis(50),
        idle_timeout: Duration::from_millis(50),
        ..settings(url)
    };
    let (silent, _listener) = listen().await;
    let (url, listener) = listen().await;
    let stalls = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a client");
        request(&mut socket).await;
        let head = format!("HTTP/1.1 200 OK\r\n{EVENT_STREAM}\r\n\r\n");
        let text = format!(
            "{head}{}",
            STREAM.split_inclusive("\n\n").next().expect("one")
        );
        socket.write_all(text.as_bytes()).await.expect("a client");
        // Its end tells that the client hung up.
        socket.read(&mut [0; 8]).await.expect("the end")
    });

    let silence = ask(
        &OpenAiProvider::new(impatient(&silent), Api::ChatCompletions, &[]).expect("a provider"),
    )
    .await;
    let stall =
        ask(&OpenAiProvider::new(impatient(&url), Api::ChatCompletions, &[]).expect("a provider"))
            .await;

    let unavailable = |message| {
        let late = ModelFailure::new(ModelFailureKind::Unavailable, message);
        Err(late.caused_by(FailureCause::Timeout))
    };
    assert_eq!(
        silence,
        unavailable("provider local did not begin to answer in time")
    );
    assert_eq!(stall, unavailable("provider local fell silent"));
    assert_eq!(stalls.await.expect("a client"), 0);
}

#[tokio::test]
async fn t17_dropping_the_stream_closes_the_connection_at_once() {
    let (url, listener) = listen().await;
    let provider = provider(&url);
    let asked = tokio::spawn(async move { provider.stream(call()).await });
    let (mut socket, _) = listener.accept().await.expect("a client");
    request(&mut socket).await;
    let head = format!("HTTP/1.1 200 OK\r\n{EVENT_STREAM}\r\n\r\n");
    socket.write_all(head.as_bytes()).await.expect("a client");
    let stream = asked.await.expect("no panic").expect("an answer");

    drop(stream);

    assert_eq!(socket.read(&mut [0; 8]).await.expect("the end"), 0);
}

#[test]
fn settings_that_make_no_provider_are_refused() {
    let good = || settings(&Url::parse("http://localhost/v1").expect("a URL"));
    let elsewhere = Settings {
        base_url: Url::parse("ftp://localhost/").expect("a URL"),
        ..good()
    };
    let broken = Settings {
        api_key: Some("a\nb".into()),
        ..good()
    };

    let refused = |settings| OpenAiProvider::new(settings, Api::ChatCompletions, &[]).map(|_| ());
    assert!(matches!(
        refused(elsewhere),
        Err(SettingsError::BaseUrl { .. })
    ));
    assert!(matches!(refused(broken), Err(SettingsError::ApiKey { .. })));
    let told = format!(
        "{:?}",
        OpenAiProvider::new(good(), Api::ChatCompletions, &[]).expect("a provider")
    );
    assert!(!told.contains(KEY));
}
