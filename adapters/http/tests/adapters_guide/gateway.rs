//! The guide's provider, and that it does what every provider must.

// region: provider
use std::io::ErrorKind;
use std::time::Duration;

use async_trait::async_trait;
use futures::io::{AsyncBufReadExt, AsyncReadExt};
use futures::stream::{self, StreamExt, TryStreamExt};
use hango_domain::conversation::{Block, Role, StopReason, Usage};
use hango_domain::model::{ModelCall, ModelFailure, ModelFailureKind, Stop, StreamEvent};
use hango_ports::Provider;
use hango_ports::provider::AnswerStream;
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// No answer is longer; what is behind that is as if the gateway had hung up.
const MAX_ANSWER_BYTES: u64 = 8 << 20;

/// The team's gateway: one POST for a call, and one JSON document a line as its answer.
pub(crate) struct Gateway {
    client: Client,
    url: String,
    key: String,
}

/// What the gateway says.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Text(String),
    Call {
        id: String,
        name: String,
        input: Map<String, Value>,
    },
    Done {
        reason: String,
        input_tokens: u64,
        output_tokens: u64,
    },
}

impl Gateway {
    /// `patience` is how long the gateway may take to be reached, to begin, and between two bytes.
    pub(crate) fn new(url: String, key: String, patience: Duration) -> reqwest::Result<Self> {
        let client = Client::builder()
            .connect_timeout(patience)
            .read_timeout(patience)
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self { client, url, key })
    }
}

#[async_trait]
impl Provider for Gateway {
    fn kind(&self) -> &'static str {
        "gateway"
    }

    async fn stream(&self, call: ModelCall) -> Result<AnswerStream, ModelFailure> {
        let request = self.client.post(&self.url).bearer_auth(&self.key);
        let sent = request.json(&body(&call)).send().await;
        // Where the gateway is, is nobody's business but the operator's.
        let response = sent.map_err(|error| unavailable(&error.without_url().to_string()))?;
        if !response.status().is_success() {
            return Err(refused(&response));
        }
        // Dropping the stream drops the response, which closes its connection.
        let bytes = response.bytes_stream().map_err(std::io::Error::other);
        let lines = bytes.into_async_read().take(MAX_ANSWER_BYTES).lines();
        let mut calls = 0;
        let events = lines.map(move |line| match line {
            Ok(line) => events(&line, &mut calls),
            Err(error) if error.kind() == ErrorKind::InvalidData => Err(garbled()),
            Err(_) => Err(unavailable("the answer broke off")),
        });
        let events = events.map_ok(|events| stream::iter(events).map(Ok));
        Ok(events.try_flatten().boxed())
    }
}

/// The call in the gateway's words.
fn body(call: &ModelCall) -> Value {
    let system: Vec<&str> = call
        .system
        .iter()
        .map(|block| block.text.as_str())
        .collect();
    let messages = call.messages.iter().map(|message| {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        json!({"role": role, "parts": message.content.iter().filter_map(part).collect::<Vec<_>>()})
    });
    json!({
        "model": call.model,
        "system": system.join("\n\n"),
        "messages": messages.collect::<Vec<_>>(),
        "tools": call.tools,
        "max_tokens": call.max_tokens,
        "temperature": call.temperature,
    })
}

fn part(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text, .. } => Some(json!({"text": text})),
        Block::ToolUse {
            id, name, input, ..
        } => Some(json!({"call": {"id": id, "name": name, "input": input}})),
        Block::ToolResult {
            tool_use_id,
            content,
            is_error,
            ..
        } => Some(json!({"result": {"id": tool_use_id, "text": content, "error": is_error}})),
        // Another provider's own; the gateway would not know what to do with it.
        Block::Thinking { .. } | Block::RedactedThinking { .. } | Block::Provider(_) => None,
    }
}

/// What a line means. The text is block 0, and the calls follow in their order.
fn events(line: &str, calls: &mut u32) -> Result<Vec<StreamEvent>, ModelFailure> {
    let line = serde_json::from_str(line).map_err(|_| garbled())?;
    Ok(match line {
        Line::Text(text) => vec![StreamEvent::Text { index: 0, text }],
        Line::Call { id, name, input } => {
            *calls += 1;
            let (index, json) = (*calls, Value::Object(input).to_string());
            let begin = StreamEvent::ToolUse { index, id, name };
            vec![begin, StreamEvent::ToolInput { index, json }]
        }
        Line::Done {
            reason,
            input_tokens,
            output_tokens,
        } => {
            let usage = Usage {
                input_tokens,
                output_tokens,
                ..Usage::default()
            };
            vec![StreamEvent::Usage(usage), StreamEvent::Stop(stop(reason))]
        }
    })
}

fn stop(reason: String) -> Stop {
    match reason.as_str() {
        "end" => Stop::Answer(StopReason::EndTurn),
        "tools" => Stop::Answer(StopReason::ToolUse),
        "length" => Stop::Answer(StopReason::MaxTokens),
        // What nobody knows is not taken for an end.
        _ => Stop::Unsupported(reason),
    }
}

/// What the gateway's status means. Its body is not quoted: it may hold what it was called with.
fn refused(response: &Response) -> ModelFailure {
    let status = response.status();
    let kind = match status.as_u16() {
        401 | 403 => ModelFailureKind::Auth,
        413 => ModelFailureKind::ContextExceeded,
        408 | 429 | 500.. => ModelFailureKind::Unavailable,
        _ => ModelFailureKind::Rejected,
    };
    let header = response.headers().get(RETRY_AFTER);
    let seconds = header.and_then(|value| value.to_str().ok()?.parse().ok());
    ModelFailure {
        retry_after: seconds.map(Duration::from_secs),
        ..ModelFailure::new(kind, format!("the gateway answered {status}"))
    }
}

fn unavailable(why: &str) -> ModelFailure {
    ModelFailure::new(ModelFailureKind::Unavailable, format!("the gateway: {why}"))
}

fn garbled() -> ModelFailure {
    let message = "the gateway sent a line that is not its protocol";
    ModelFailure::new(ModelFailureKind::Protocol, message)
}
// endregion: provider

/// The gateway of the checks.
mod checked {
    // region: provider-tests
    use std::sync::Arc;

    use hango_conformance::provider::{Act, Play, RemoteProvider};
    use hango_conformance::{FakeServer, Reply};

    use super::*;

    const KEY: &str = "key-of-the-check";

    /// The gateway, before a server that acts as a check wants it.
    async fn remote(play: Play) -> RemoteProvider {
        // reqwest comes without a cryptography provider; only the first test of a process installs it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let server = FakeServer::start(play.acts.into_iter().map(reply)).await;
        let url = format!("http://{}/complete", server.address());
        let provider = Gateway::new(url, KEY.to_owned(), play.patience);
        RemoteProvider {
            provider: Arc::new(provider.expect("a provider")),
            other_side: Arc::new(server),
            secret: KEY.to_owned(),
        }
    }

    /// The same for the checks that look at nothing but the port.
    async fn stage(play: Play) -> (Arc<dyn Provider>, RemoteProvider) {
        let remote = remote(play).await;
        (Arc::clone(&remote.provider), remote)
    }

    /// How the gateway says what becomes of a call.
    fn reply(act: Act) -> Reply {
        match act {
            Act::Answers(said) => {
                let mut lines = texts(&said.words);
                lines.extend(said.calls.iter().map(
                    |call| json!({"call": {"id": call.id, "name": call.name, "input": call.input}}),
                ));
                let reason = match said.stop {
                    StopReason::ToolUse => "tools",
                    StopReason::MaxTokens => "length",
                    _ => "end",
                };
                let (input, output) = (said.usage.input_tokens, said.usage.output_tokens);
                let done =
                    json!({"reason": reason, "input_tokens": input, "output_tokens": output});
                lines.push(json!({"done": done}));
                Reply::Whole(ok(&lines))
            }
            Act::BreaksOff(words) => Reply::Whole(ok(&texts(&words))),
            Act::Hangs(words) if words.is_empty() => Reply::Held(Vec::new()),
            Act::Hangs(words) => Reply::Held(ok(&texts(&words))),
            Act::Busy(wait) => {
                let header = format!("retry-after: {}\r\n", wait.as_secs());
                Reply::Whole(http("429 Too Many Requests", &header, ""))
            }
            Act::Fails(ModelFailureKind::Protocol) => Reply::Whole(ok(&[json!(KEY)])),
            Act::Fails(ModelFailureKind::UnsupportedStop) => {
                let done = json!({"reason": "paused", "input_tokens": 1, "output_tokens": 1});
                Reply::Whole(ok(&[json!({"done": done})]))
            }
            Act::Fails(kind) => {
                let status = match kind {
                    ModelFailureKind::Auth => "401 Unauthorized",
                    ModelFailureKind::ContextExceeded => "413 Content Too Large",
                    ModelFailureKind::Rejected => "404 Not Found",
                    _ => "503 Service Unavailable",
                };
                Reply::Whole(http(status, "", &format!("called with {KEY}")))
            }
        }
    }

    fn texts(words: &[String]) -> Vec<Value> {
        words.iter().map(|word| json!({"text": word})).collect()
    }

    fn ok(lines: &[Value]) -> Vec<u8> {
        let lines = lines.iter().map(|line| format!("{line}\n"));
        http("200 OK", "", &lines.collect::<String>())
    }

    /// A response without a length: it lasts until the connection ends.
    fn http(status: &str, header: &str, body: &str) -> Vec<u8> {
        format!("HTTP/1.1 {status}\r\nconnection: close\r\n{header}\r\n{body}").into_bytes()
    }

    hango_conformance::provider_tests!(stage);
    hango_conformance::remote_provider_tests!(remote);
    // endregion: provider-tests
}
