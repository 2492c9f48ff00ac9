//! A model over real HTTP that speaks OpenAI's chat completions and costs next to nothing. What it is to
//! do stands in the model's name, so that each agent has a model of its own: so many turns with a tool
//! call, then a text; each answer after a while.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Different arguments for one tool, so that no call is like the one before.
const ZONES: [&str; 10] = [
    "UTC",
    "Europe/Berlin",
    "Asia/Tokyo",
    "America/New_York",
    "Africa/Nairobi",
    "Australia/Sydney",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Europe/Lisbon",
    "Pacific/Auckland",
];

/// What a model does; its name says it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Model {
    /// How many turns it calls a tool in, before it answers with a text.
    pub(crate) tools: usize,
    /// How long it thinks, each time.
    pub(crate) thinks: Duration,
}

impl Model {
    /// One turn with a text.
    pub(crate) const TEXT: Self = Self {
        tools: 0,
        thinks: Duration::ZERO,
    };
    /// Ten turns with a tool call each, and a text.
    pub(crate) const TOOLS: Self = Self {
        tools: 10,
        thinks: Duration::ZERO,
    };

    /// One text that takes `thinks`.
    pub(crate) const fn slow(thinks: Duration) -> Self {
        Self {
            thinks,
            ..Self::TEXT
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tools-{}-millis-{}", self.tools, self.thinks.as_millis())
    }
}

impl FromStr for Model {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> anyhow::Result<Self> {
        let parts = name.strip_prefix("tools-");
        let parts = parts.and_then(|name| name.split_once("-millis-"));
        let (tools, millis) = parts.with_context(|| format!("{name} is no model"))?;
        Ok(Self {
            tools: tools.parse()?,
            thinks: Duration::from_millis(millis.parse()?),
        })
    }
}

/// The provider; its clones are the same one.
#[derive(Clone)]
pub(crate) struct Provider {
    base_url: String,
    asked: watch::Sender<Asked>,
    thinking: Arc<AtomicUsize>,
}

/// How often it was asked, and when the last time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    times: u64,
    at: Instant,
}

impl Provider {
    /// Starts one; it ends with the process.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let provider = Self {
            base_url: format!("http://{}/v1", listener.local_addr()?),
            asked: watch::Sender::new(Asked {
                times: 0,
                at: Instant::now(),
            }),
            thinking: Arc::default(),
        };
        let routes = Router::new()
            .route("/v1/chat/completions", post(answer))
            .with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok(provider)
    }

    /// Where it is, as hango wants to be told.
    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }

    /// How many answers are being thought about.
    pub(crate) fn thinking(&self) -> usize {
        self.thinking.load(Ordering::SeqCst)
    }

    /// From now on, when it is asked next.
    pub(crate) fn watch(&self) -> Watch {
        let mut changes = self.asked.subscribe();
        let seen = changes.borrow_and_update().times;
        Watch { changes, seen }
    }
}

/// Waits for the provider to be asked.
pub(crate) struct Watch {
    changes: watch::Receiver<Asked>,
    seen: u64,
}

impl Watch {
    /// When it was asked next, within a while.
    pub(crate) async fn next(&mut self, within: Duration) -> anyhow::Result<Instant> {
        let seen = self.seen;
        let asked = self.changes.wait_for(|asked| asked.times > seen);
        let asked = tokio::time::timeout(within, asked).await;
        let asked = *asked.context("the provider was not asked in time")??;
        self.seen = asked.times;
        Ok(asked.at)
    }
}

#[derive(Deserialize)]
struct Request {
    model: String,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    #[serde(rename = "content")]
    _content: IgnoredAny,
}

async fn answer(State(provider): State<Provider>, body: Bytes) -> Response {
    let at = Instant::now();
    let Some((model, results)) = understood(&body) else {
        return (StatusCode::BAD_REQUEST, "this is not understood").into_response();
    };
    provider.asked.send_modify(|asked| {
        asked.times += 1;
        asked.at = at;
    });
    if !model.thinks.is_zero() {
        let _thinking = Thinking::of(&provider);
        tokio::time::sleep(model.thinks).await;
    }
    let answer = if results < model.tools {
        calls(results)
    } else {
        text()
    };
    ([(CONTENT_TYPE, "text/event-stream")], answer).into_response()
}

/// The model, and how many results of tools it has been told in this run's session, which is a new one
/// or has whole runs only.
fn understood(body: &[u8]) -> Option<(Model, usize)> {
    let request: Request = serde_json::from_slice(body).ok()?;
    let model = request.model.parse().ok()?;
    let messages = request.messages.iter().rev();
    let own = messages.take_while(|message| message.role != "user");
    Some((model, own.filter(|message| message.role == "tool").count()))
}

/// Counts itself for as long as it lives: whoever goes away is not thought about any more.
struct Thinking(Arc<AtomicUsize>);

impl Thinking {
    fn of(provider: &Provider) -> Self {
        provider.thinking.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(&provider.thinking))
    }
}

impl Drop for Thinking {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn text() -> String {
    stream(
        &json!({"role": "assistant", "content": "All is done."}),
        "stop",
    )
}

fn calls(turn: usize) -> String {
    let arguments = json!({"timezone": ZONES[turn % ZONES.len()]}).to_string();
    let call = json!({"index": 0, "id": format!("call_{turn}"), "type": "function",
                      "function": {"name": "get_time", "arguments": arguments}});
    stream(
        &json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        "tool_calls",
    )
}

fn stream(delta: &Value, reason: &str) -> String {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let pieces = [
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
        json!({"choices": [], "usage": usage}),
    ];
    let pieces = pieces.map(|mut piece| {
        piece["id"] = json!("chatcmpl-1");
        piece["object"] = json!("chat.completion.chunk");
        piece["model"] = json!("bench");
        format!("data: {piece}\n\n")
    });
    pieces.concat() + "data: [DONE]\n\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_name_says_what_it_does() {
        for model in [
            Model::TEXT,
            Model::TOOLS,
            Model::slow(Duration::from_secs(2)),
        ] {
            assert_eq!(model.to_string().parse::<Model>().ok(), Some(model));
        }
    }

    #[test]
    fn results_are_counted_behind_the_last_input() {
        let said = |role: &str| json!({"role": role, "content": "x"});
        let roles = ["system", "user", "assistant", "tool", "assistant", "user"];
        let mut messages: Vec<_> = roles.map(said).into();
        let request = |messages: &Vec<Value>| {
            let body = json!({"model": Model::TOOLS.to_string(), "messages": messages});
            understood(body.to_string().as_bytes())
        };
        assert_eq!(request(&messages), Some((Model::TOOLS, 0)));

        messages.extend(["assistant", "tool"].map(said));
        assert_eq!(request(&messages), Some((Model::TOOLS, 1)));
    }
}
