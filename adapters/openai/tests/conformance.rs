//! The provider does what every provider must, and what one must that reaches another process, before a
//! server that speaks the protocol as each check wants it.

use std::sync::Arc;
use std::time::Duration;

use hango_conformance::provider::{Act, Play, RemoteProvider, Spoken};
use hango_conformance::{FakeServer, Reply};
use hango_domain::conversation::StopReason;
use hango_domain::model::ModelFailureKind;
use hango_openai::{Api, OpenAiProvider, Settings};
use hango_ports::Provider;
use http::HeaderMap;
use serde_json::{Map, Value, json};
use url::Url;

const KEY: &str = "sk-of-the-check";

async fn remote(play: Play) -> RemoteProvider {
    // Only the first test of a process installs it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = FakeServer::start(play.acts.into_iter().map(reply)).await;
    let base_url = format!("http://{}/v1", server.address());
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
    let provider = OpenAiProvider::new(settings, Api::ChatCompletions, &[]);
    RemoteProvider {
        provider: Arc::new(provider.expect("a provider")),
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
            Reply::Whole(stream(&[finish("pause_turn")]))
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
    let mut events = texts(&said.words);
    for (index, call) in said.calls.iter().enumerate() {
        let begin = json!({"name": call.name, "arguments": ""});
        let begin = json!({"index": index, "id": call.id, "type": "function", "function": begin});
        events.push(delta(&json!({"tool_calls": [begin]})));
        if !call.input.is_empty() {
            let arguments = Value::Object(call.input.clone()).to_string();
            let (head, tail) = arguments.split_at(arguments.len() / 2);
            for piece in [head, tail] {
                let more = json!({"index": index, "function": {"arguments": piece}});
                events.push(delta(&json!({"tool_calls": [more]})));
            }
        }
    }
    events.push(finish(match said.stop {
        StopReason::MaxTokens => "length",
        StopReason::ToolUse => "tool_calls",
        _ => "stop",
    }));
    let usage = json!({
        "prompt_tokens": said.usage.input_tokens,
        "completion_tokens": said.usage.output_tokens,
    });
    events.push(json!({"choices": [], "usage": usage}).to_string());
    events.push("[DONE]".to_owned());
    events
}

fn texts(words: &[String]) -> Vec<String> {
    let deltas = words.iter().map(|word| delta(&json!({"content": word})));
    deltas.collect()
}

fn delta(delta: &Value) -> String {
    json!({"choices": [{"index": 0, "delta": delta}]}).to_string()
}

fn finish(reason: &str) -> String {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}).to_string()
}

fn refusal(kind: ModelFailureKind) -> Vec<u8> {
    let (status, code) = match kind {
        ModelFailureKind::Auth => ("401 Unauthorized", "invalid_api_key"),
        ModelFailureKind::ContextExceeded => ("400 Bad Request", "context_length_exceeded"),
        ModelFailureKind::Rejected => ("404 Not Found", "model_not_found"),
        _ => ("503 Service Unavailable", "overloaded"),
    };
    let message = format!("called with the key {KEY}");
    let body = json!({"error": {"message": message, "code": code}}).to_string();
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
