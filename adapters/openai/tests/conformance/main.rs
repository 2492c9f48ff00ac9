//! The provider does what every provider must, and what one must that reaches another process, before a
//! server that speaks the protocol as each check wants it: each of the protocols in a module of its own.

use std::sync::Arc;
use std::time::Duration;

use hango_conformance::provider::{Act, Play, RemoteProvider, Spoken};
use hango_conformance::{FakeServer, Reply};
use hango_domain::model::ModelFailureKind;
use hango_openai::{Api, OpenAiProvider, Settings};
use http::HeaderMap;
use serde_json::{Map, json};
use url::Url;

mod chat;
mod responses;

const KEY: &str = "sk-of-the-check";

/// How a protocol says what a check wants to hear, as the data of events.
struct Speech {
    api: Api,
    /// A whole answer.
    answer: fn(&Spoken) -> Vec<String>,
    /// Text that comes in these pieces.
    texts: fn(&[String]) -> Vec<String>,
    /// The end that the loop does not resume.
    unsupported: fn() -> String,
}

impl Speech {
    async fn remote(&self, play: Play) -> RemoteProvider {
        // Only the first test of a process installs it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let replies: Vec<Reply> = play.acts.into_iter().map(|act| self.reply(act)).collect();
        let server = FakeServer::start(replies).await;
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
        let provider = OpenAiProvider::new(settings, self.api, &[]);
        RemoteProvider {
            provider: Arc::new(provider.expect("a provider")),
            other_side: Arc::new(server),
            secret: KEY.to_owned(),
        }
    }

    fn reply(&self, act: Act) -> Reply {
        match act {
            Act::Answers(said) => Reply::Whole(stream(&(self.answer)(&said))),
            Act::BreaksOff(words) => Reply::Whole(stream(&(self.texts)(&words))),
            Act::Hangs(words) if words.is_empty() => Reply::Held(Vec::new()),
            Act::Hangs(words) => Reply::Held(stream(&(self.texts)(&words))),
            Act::Fails(ModelFailureKind::Protocol) => Reply::Whole(stream(&[format!("{{{KEY}")])),
            Act::Fails(ModelFailureKind::UnsupportedStop) => {
                Reply::Whole(stream(&[(self.unsupported)()]))
            }
            Act::Fails(kind) => Reply::Whole(refusal(kind)),
            Act::Busy(wait) => Reply::Whole(busy(wait)),
        }
    }
}

/// A response without a length: it lasts until the connection ends.
fn stream(events: &[String]) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let events = events.iter().map(|data| format!("data: {data}\n\n"));
    (head.to_owned() + &events.collect::<String>()).into_bytes()
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
