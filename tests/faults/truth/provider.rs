//! A strict provider over HTTP that speaks OpenAI's chat completions and logs what it was asked.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Json, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::moment::Moment;
use crate::support::reply::Reply;
use crate::support::strict;

/// Something that hango asked. A run is known by its input, which clients make unique: it is the last
/// thing that a user said.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The run's input.
    pub(crate) run: String,
    /// The turn, counting from 1.
    pub(crate) turn: usize,
    /// The number of the answer, unique in the scenario.
    pub(crate) serial: usize,
    /// The ids of the calls in the answer.
    pub(crate) ids: Vec<String>,
    /// When.
    pub(crate) at: Moment,
    /// When the answer was whole, if it became so.
    pub(crate) whole: Option<Moment>,
}

/// What is answered to a run's turn; the number is the answer's own.
pub(crate) type Script = Box<dyn Fn(&str, usize, usize) -> Reply + Send + Sync>;

/// The provider; its clones are the same one.
#[derive(Clone)]
pub(crate) struct Provider(Arc<Inner>);

struct Inner {
    address: String,
    script: Script,
    log: Mutex<Log>,
    /// Changes with the log.
    news: watch::Sender<()>,
}

#[derive(Default)]
struct Log {
    asked: Vec<Asked>,
    refused: Vec<String>,
}

impl Provider {
    /// Starts one that answers by `script`.
    pub(crate) async fn start(script: Script) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let provider = Self(Arc::new(Inner {
            address: listener.local_addr()?.to_string(),
            script,
            log: Mutex::default(),
            news: watch::Sender::default(),
        }));
        let routes = Router::new()
            .route("/v1/chat/completions", post(answer))
            .layer(DefaultBodyLimit::disable())
            .with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok(provider)
    }

    /// Where it is, as hango wants to be told.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.0.address)
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a run's turn was asked for.
    pub(crate) async fn is_asked(&self, run: &str, turn: usize) {
        let mut news = self.0.news.subscribe();
        let is = |asked: &Asked| asked.run == run && asked.turn == turn;
        // The sender lives in `self`, so this ends only when it was.
        let _ = news
            .wait_for(|()| self.log().asked.iter().rev().any(is))
            .await;
    }

    /// Everything that was asked, in that order.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.log().asked.clone()
    }

    /// Why requests were refused.
    pub(crate) fn refused(&self) -> Vec<String> {
        self.log().refused.clone()
    }

    /// Notes a request; its place in the log, and what to answer.
    fn note(&self, messages: &[Value]) -> (usize, Reply) {
        let user = |message: &Value| message["role"] == "user";
        let input = messages.iter().rposition(user).unwrap_or_default();
        let said = messages[input]["content"].as_str().unwrap_or_default();
        // Where a run before had no answer, its input and this one's are one message.
        let run = said.rsplit("\n\n").next().unwrap_or_default().to_owned();
        let answered = messages[input..].iter();
        let turn = 1 + answered
            .filter(|message| message["role"] == "assistant")
            .count();

        let mut log = self.log();
        let serial = log.asked.len() + 1;
        let reply = (self.0.script)(&run, turn, serial);
        let ids = (0..reply.calls_made()).map(|n| format!("call_{serial}_{n}"));
        log.asked.push(Asked {
            run,
            turn,
            serial,
            ids: ids.collect(),
            at: Moment::now(),
            whole: None,
        });
        drop(log);
        self.0.news.send_replace(());
        (serial - 1, reply)
    }
}

async fn answer(State(provider): State<Provider>, Json(request): Json<Value>) -> Response {
    if let Some(objection) = strict::objection(&request) {
        let error = json!({"error": {"message": objection, "type": "invalid_request_error"}});
        let refused = format!("{objection}: {request}");
        provider.log().refused.push(refused);
        return (StatusCode::BAD_REQUEST, Json(error)).into_response();
    }
    let messages = request["messages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let (at, reply) = provider.note(messages);
    let ids = provider.log().asked[at].ids.clone();
    let pieces = reply.pieces(&ids).into_iter();
    let playing = (pieces, reply, provider, Duration::ZERO);
    let body = stream::unfold(
        playing,
        move |(mut pieces, reply, provider, pause)| async move {
            let piece = pieces.next()?;
            tokio::time::sleep(pause).await;
            if pieces.len() == 0 {
                provider.log().asked[at].whole = Some(Moment::now());
            }
            let pace = reply.pace;
            Some((Ok::<_, Infallible>(piece), (pieces, reply, provider, pace)))
        },
    );
    let body = Body::from_stream(body);
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}
