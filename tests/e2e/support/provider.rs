//! A provider over real HTTP that speaks OpenAI's chat completions, and Anthropic's protocol too. It
//! answers as a test says, refuses what a strict one would refuse, and keeps its own log: the truth outside
//! of hango.

mod anthropic;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{Json, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::stream::unfold;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::reply::Reply;
use super::strict;

/// What hango asked. A run is known by its input, which tests make unique: it is the last thing that a
/// user said.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// The run's input.
    pub(crate) run: String,
    /// The turn, counting from 1.
    pub(crate) turn: usize,
    /// How often this turn of this run was asked for, this time included.
    pub(crate) time: usize,
    /// The whole conversation.
    pub(crate) messages: Vec<Value>,
}

/// An entry of the log.
#[derive(Clone)]
pub(crate) struct Asked {
    /// What was asked.
    pub(crate) ask: Ask,
    /// The ids of the calls in the answer.
    pub(crate) ids: Vec<String>,
    /// When.
    pub(crate) at: Instant,
    progress: Arc<Progress>,
}

/// How far an answer is.
#[derive(Default)]
struct Progress {
    sent: AtomicUsize,
    ended: Mutex<Option<(How, Instant)>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum How {
    Whole,
    Dropped,
}

impl Asked {
    /// How many pieces of the answer were sent.
    pub(crate) fn sent(&self) -> usize {
        self.progress.sent.load(Ordering::SeqCst)
    }

    /// Whether the answer was sent whole.
    pub(crate) fn is_whole(&self) -> bool {
        self.progress.how() == Some(How::Whole)
    }

    /// Whether whoever asked went away before the answer was whole.
    pub(crate) fn is_dropped(&self) -> bool {
        self.progress.how() == Some(How::Dropped)
    }

    /// When the answer was whole, or whoever asked went away.
    pub(crate) fn ended_at(&self) -> Option<Instant> {
        self.progress.lock().map(|(_, at)| at)
    }
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, Option<(How, Instant)>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn how(&self) -> Option<How> {
        self.lock().map(|(how, _)| how)
    }

    fn end(&self, how: How) {
        self.lock().get_or_insert_with(|| (how, Instant::now()));
    }
}

/// The provider; its clones are the same one.
#[derive(Clone)]
pub(crate) struct FakeProvider(Arc<Inner>);

struct Inner {
    address: String,
    script: Box<dyn Fn(&Ask) -> Reply + Send + Sync>,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    asked: Vec<Asked>,
    refused: Vec<String>,
    calls: usize,
}

impl FakeProvider {
    /// Starts one that answers by `script`.
    pub(crate) async fn start(script: impl Fn(&Ask) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let provider = Self(Arc::new(Inner {
            address,
            script: Box::new(script),
            log: Mutex::default(),
        }));
        let routes = Router::new()
            .route("/v1/chat/completions", post(answer))
            .route("/v1/messages", post(anthropic::answer))
            .with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        provider
    }

    /// Where it is, as hango wants to be told.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.0.address)
    }

    /// Where it speaks Anthropic's protocol, as hango wants to be told.
    pub(crate) fn anthropic_url(&self) -> String {
        format!("http://{}", self.0.address)
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that was asked, in that order.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.log().asked.clone()
    }

    /// Everything that was asked for a run.
    pub(crate) fn asked_for(&self, run: &str) -> Vec<Asked> {
        let mut asked = self.asked();
        asked.retain(|asked| asked.ask.run == run);
        asked
    }

    /// How often each turn of a run was asked for, from the first on.
    pub(crate) fn times(&self, run: &str) -> Vec<usize> {
        let asked = self.asked_for(run);
        let turns: BTreeSet<_> = asked.iter().map(|asked| asked.ask.turn).collect();
        let count = |turn| asked.iter().filter(|asked| asked.ask.turn == turn).count();
        turns.into_iter().map(count).collect()
    }

    /// What the model is told about a call, the last time that it was told.
    pub(crate) fn told_of(&self, call: &str) -> Option<String> {
        self.asked().into_iter().rev().find_map(|asked| {
            let mut messages = asked.ask.messages.into_iter();
            let result = messages.find(|message| message["tool_call_id"] == call)?;
            result["content"].as_str().map(str::to_owned)
        })
    }

    /// Why requests were refused.
    pub(crate) fn refused(&self) -> Vec<String> {
        self.log().refused.clone()
    }

    /// How many pieces of all answers were sent.
    pub(crate) fn pieces_sent(&self) -> usize {
        self.asked().iter().map(Asked::sent).sum()
    }

    /// Notes a request; what to answer. The ids of its calls begin with `prefix`.
    fn note(&self, messages: Vec<Value>, prefix: &str) -> (Asked, Reply) {
        let user = |message: &Value| message["role"] == "user";
        let input = messages.iter().rposition(user).unwrap_or_default();
        let said = messages[input]["content"].as_str().unwrap_or_default();
        // Where a run before had no answer, its input and this one's are one message.
        let run = said.rsplit("\n\n").next().unwrap_or_default().to_owned();
        let answers = messages[input..]
            .iter()
            .filter(|message| message["role"] == "assistant");
        let turn = answers.count() + 1;

        let mut log = self.log();
        let same = |asked: &&Asked| asked.ask.run == run && asked.ask.turn == turn;
        let time = log.asked.iter().filter(same).count() + 1;
        let ask = Ask {
            run,
            turn,
            time,
            messages,
        };
        let reply = (self.0.script)(&ask);
        let ids = (0..reply.calls_made()).map(|n| format!("{prefix}_{}_{n}", log.calls));
        let asked = Asked {
            ask,
            ids: ids.collect(),
            at: Instant::now(),
            progress: Arc::default(),
        };
        log.calls += 1;
        log.asked.push(asked.clone());
        (asked, reply)
    }
}

async fn answer(State(provider): State<FakeProvider>, Json(request): Json<Value>) -> Response {
    if let Some(objection) = strict::objection(&request) {
        let error = json!({"error": {"message": objection, "type": "invalid_request_error"}});
        provider
            .log()
            .refused
            .push(format!("{objection}: {request}"));
        return (StatusCode::BAD_REQUEST, Json(error)).into_response();
    }
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let (asked, reply) = provider.note(messages, "call");
    if let Some(seconds) = reply.rest {
        let error = json!({"error": {"message": "too many at once", "type": "rate_limit"}});
        let rest = [(RETRY_AFTER, seconds.to_string())];
        return (StatusCode::TOO_MANY_REQUESTS, rest, Json(error)).into_response();
    }
    let pieces = reply.pieces(&asked.ids);
    stream(asked, reply, pieces)
}

/// Plays an answer, piece by piece.
fn stream(asked: Asked, reply: Reply, pieces: Vec<String>) -> Response {
    let playing = Playing {
        pieces,
        reply,
        progress: asked.progress,
    };
    let body = unfold((0, playing), |(at, playing)| async move {
        let piece = playing.piece(at).await?;
        Some((Ok::<_, std::convert::Infallible>(piece), (at + 1, playing)))
    });
    (
        [(CONTENT_TYPE, "text/event-stream")],
        Body::from_stream(body),
    )
        .into_response()
}

/// An answer on its way. Dropping it before its end means that whoever asked went away.
struct Playing {
    pieces: Vec<String>,
    reply: Reply,
    progress: Arc<Progress>,
}

impl Playing {
    /// The piece at that place, when its time has come.
    async fn piece(&self, at: usize) -> Option<String> {
        let piece = self.pieces.get(at)?.clone();
        let pause = if at == 0 {
            self.reply.wait
        } else {
            self.reply.pace
        };
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        if let Some((_, gate)) = self.reply.hold.as_ref().filter(|(held, _)| *held == at) {
            gate.pass().await;
        }
        self.progress.sent.fetch_add(1, Ordering::SeqCst);
        if at + 1 == self.pieces.len() {
            self.progress.end(How::Whole);
        }
        Some(piece)
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        self.progress.end(How::Dropped);
    }
}
