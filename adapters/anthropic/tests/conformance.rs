//! The provider does what every provider must, and what one must that reaches another process, before a
//! server that speaks the protocol as each check wants it.

use std::sync::Arc;
use std::time::Duration;

use hango_anthropic::{AnthropicProvider, Settings};
use hango_conformance::provider::{Act, Play, RemoteProvider, Spoken};
use hango_conformance::{FakeServer, Reply};
use hango_domain::conversation::StopReason;
use hango_domain::model::ModelFailureKind;
use hango_ports::Provider;
use http::HeaderMap;
use serde_json::{Map, Value, json};
use url::Url;

const KEY: &str = "sk-ant-of-the-check";

async fn remote(play: Play) -> RemoteProvider {
    // Only the first test of a process installs it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = FakeServer::start(play.acts.into_iter().map(reply)).await;
    let base_url = format!("http://{}", server.address());
    let settings = Settings {
        name: "checked".to_owned(),
        base_url: Url::parse(&base_url).expect("a URL"),
        api_key: Some(KEY.into()),
        headers: HeaderMap::new(),
        extra_body: Map::new(),
        connect_timeout: play.patience,
        first_byte_timeout: play.patience,
        idle_timeout: play.patience,
    };
    let provider = AnthropicProvider::new(settings, &[]).expect("a provider");
    RemoteProvider {
        provider: Arc::new(provider),
        other_side: Arc::new(server),
        secret: KEY.to_owned(),
    }
}

async fn stage(play: Play) -> (Arc<dyn Provider>, RemoteProvider) {
    let remote = remote(play).await;
    (Arc::clone(&remote.provider), remote)
}

fn reply(act: Act) -> Reply {
    match act {
        Act::Answers(said) => Reply::Whole(stream(&answer(&said))),
        Act::BreaksOff(words) => Reply::Whole(stream(&texts(&words))),
        Act::Hangs(words) if words.is_empty() => Reply::Held(Vec::new()),
        Act::Hangs(words) => Reply::Held(stream(&texts(&words))),
        Act::Fails(ModelFailureKind::Protocol) => Reply::Whole(stream(&[format!("{{{KEY}")])),
        Act::Fails(ModelFailureKind::UnsupportedStop) => {
            Reply::Whole(stream(&[stop("pause_turn", 0)]))
        }
        Act::Fails(kind) => Reply::Whole(refusal(kind)),
        Act::Busy(wait) => Reply::Whole(busy(wait)),
    }
}

/// A response without a length: it lasts until the connection ends.
fn stream(events: &[String]) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let events = events.iter().map(|data| format!("data: {data}\n\n"));
    (head.to_owned() + &events.collect::<String>()).into_bytes()
}

fn answer(said: &Spoken) -> Vec<String> {
    let usage = json!({"input_tokens": said.usage.input_tokens, "output_tokens": 1});
    let start = json!({"type": "message_start", "message": {"content": [], "usage": usage}});
    let mut events = vec![start.to_string()];
    let mut index = 0;
    if !said.words.is_empty() {
        events.extend(texts(&said.words));
        events.push(end(0));
        index = 1;
    }
    for call in &said.calls {
        let block = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
        events.push(begin(index, &block));
        let arguments = if call.input.is_empty() {
            String::new()
        } else {
            Value::Object(call.input.clone()).to_string()
        };
        let (head, tail) = arguments.split_at(arguments.len() / 2);
        for piece in [head, tail] {
            let more = json!({"type": "input_json_delta", "partial_json": piece});
            events.push(delta(index, &more));
        }
        events.push(end(index));
        index += 1;
    }
    let reason = match said.stop {
        StopReason::MaxTokens => "max_tokens",
        StopReason::ToolUse => "tool_use",
        _ => "end_turn",
    };
    events.push(stop(reason, said.usage.output_tokens));
    events.push(json!({"type": "message_stop"}).to_string());
    events
}

fn texts(words: &[String]) -> Vec<String> {
    let mut events = vec![begin(0, &json!({"type": "text", "text": ""}))];
    let deltas = words
        .iter()
        .map(|word| json!({"type": "text_delta", "text": word}));
    events.extend(deltas.map(|more| delta(0, &more)));
    events
}

fn begin(index: u32, block: &Value) -> String {
    json!({"type": "content_block_start", "index": index, "content_block": block}).to_string()
}

fn delta(index: u32, delta: &Value) -> String {
    json!({"type": "content_block_delta", "index": index, "delta": delta}).to_string()
}

fn end(index: u32) -> String {
    json!({"type": "content_block_stop", "index": index}).to_string()
}

fn stop(reason: &str, output_tokens: u64) -> String {
    let usage = json!({"output_tokens": output_tokens});
    json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}).to_string()
}

fn refusal(kind: ModelFailureKind) -> Vec<u8> {
    let (status, class, words) = match kind {
        ModelFailureKind::Auth => ("401 Unauthorized", "authentication_error", "invalid key"),
        ModelFailureKind::ContextExceeded => (
            "400 Bad Request",
            "invalid_request_error",
            "prompt is too long: 208310 tokens > 200000 maximum",
        ),
        ModelFailureKind::Rejected => ("404 Not Found", "not_found_error", "no such model"),
        _ => ("529 Overloaded", "overloaded_error", "Overloaded"),
    };
    let message = format!("{words}, called with the key {KEY}");
    let error = json!({"type": class, "message": message});
    let body = json!({"type": "error", "error": error, "request_id": "req_1"}).to_string();
    response(status, "content-type: application/json", &body)
}

fn busy(wait: Duration) -> Vec<u8> {
    // Short waits are in milliseconds.
    let header = format!("retry-after-ms: {}", wait.as_millis());
    response("429 Too Many Requests", &header, "busy")
}

fn response(status: &str, header: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{header}\r\nconnection: close");
    format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}

hango_conformance::provider_tests!(stage);
hango_conformance::remote_provider_tests!(remote);
