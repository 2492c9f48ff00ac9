//! Clients of the API, as they are behind a load balancer: any replica will do, and what cannot be
//! answered now is tried again. What they were promised is kept in a log.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use reqwest::Method;
use serde_json::{Value, json};

use crate::moment::Moment;

/// The key that every replica makes sure of at its start.
pub(crate) const KEY: &str = "hk_faultTests01_0123456789abcdefghijABCDEFGHIJ0123456789";

/// The longest wait for one answer; a replica that is stopped never gives one.
const ANSWER: Duration = Duration::from_secs(4);

/// Between two rounds in which nobody answered.
const AGAIN: Duration = Duration::from_millis(50);

/// The longest time in which somebody has to answer, whatever is done to the replicas.
const PATIENCE: Duration = Duration::from_mins(2);

/// Where replicas listen now, by their place.
pub(crate) type Addresses = Arc<Mutex<Vec<Option<String>>>>;

/// A run that was promised.
#[derive(Clone, Debug)]
pub(crate) struct Accepted {
    /// Its session.
    pub(crate) session: String,
    /// Its id.
    pub(crate) id: String,
    /// Its input.
    pub(crate) input: String,
    /// When it was asked for.
    pub(crate) asked: Moment,
    /// When the promise was read.
    pub(crate) promised: Moment,
}

/// Clients; clones are the same ones, with the same log.
#[derive(Clone)]
pub(crate) struct Client(Arc<Inner>);

struct Inner {
    http: reqwest::Client,
    addresses: Addresses,
    key: String,
    turn: AtomicUsize,
    log: Arc<Mutex<Log>>,
}

/// What clients know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    /// The inputs that were sent at all: a run may be there whose promise did not arrive.
    pub(crate) sent: Vec<String>,
    /// The runs that were promised.
    pub(crate) accepted: Vec<Accepted>,
    /// Runs as they were when they were seen ended first.
    pub(crate) ended: HashMap<String, Value>,
    /// How often nobody was there, or the connection broke.
    pub(crate) unreachable: usize,
    /// How often the answer was 503, by its code.
    pub(crate) unavailable: BTreeMap<String, usize>,
    /// Answers that no fault excuses.
    pub(crate) wrong: Vec<String>,
}

impl Log {
    /// How often the answer was 503 with that code.
    pub(crate) fn refusals(&self, code: &str) -> usize {
        self.unavailable.get(code).copied().unwrap_or_default()
    }
}

impl Client {
    /// Clients of whoever listens at these addresses.
    pub(crate) fn new(addresses: Addresses) -> anyhow::Result<Self> {
        // Fails when it was done before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .no_proxy()
            .connect_timeout(Duration::from_secs(2))
            .timeout(ANSWER)
            .build()?;
        Ok(Self(Arc::new(Inner {
            http,
            addresses,
            key: KEY.to_owned(),
            turn: AtomicUsize::new(0),
            log: Arc::default(),
        })))
    }

    /// Clients with another key, who write into the same log.
    pub(crate) fn with_key(&self, key: &str) -> Self {
        Self(Arc::new(Inner {
            http: self.0.http.clone(),
            addresses: Arc::clone(&self.0.addresses),
            key: key.to_owned(),
            turn: AtomicUsize::new(0),
            log: Arc::clone(&self.0.log),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What clients know by now.
    pub(crate) fn log(&self) -> Log {
        self.lock().clone()
    }

    /// Notes something that no fault excuses.
    pub(crate) fn note_wrong(&self, what: String) {
        self.lock().wrong.push(what);
    }

    /// One request to the next replica that listens; `None` where there was no answer that counts.
    pub(crate) async fn once(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Option<(u16, Value)> {
        let address = self.next_address()?;
        let request = self
            .0
            .http
            .request(method.clone(), format!("http://{address}{path}"))
            .bearer_auth(&self.0.key);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = async {
            let response = request.send().await?;
            let status = response.status().as_u16();
            let waits = response.headers().contains_key("retry-after");
            Ok::<_, reqwest::Error>((status, waits, response.text().await?))
        };
        let Ok((status, waits, text)) = answer.await else {
            self.lock().unreachable += 1;
            return None;
        };
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        if status < 500 && status != 429 {
            return Some((status, body));
        }
        let mut log = self.lock();
        let code = body["code"].as_str().unwrap_or("(none)").to_owned();
        // Nobody knows when there will be room.
        let excused = status == 503 && (waits || code == "insufficient_storage");
        if status == 503 {
            *log.unavailable.entry(code).or_default() += 1;
        }
        if !excused {
            let wrong = format!("{method} {path}: {status}, Retry-After {waits}: {body}");
            log.wrong.push(wrong);
        }
        None
    }

    fn next_address(&self) -> Option<String> {
        let addresses = self.0.addresses.lock();
        let addresses = addresses.unwrap_or_else(PoisonError::into_inner);
        let listening: Vec<_> = addresses.iter().flatten().collect();
        let turn = self.0.turn.fetch_add(1, Ordering::Relaxed);
        let address = listening.get(turn % listening.len().max(1))?;
        Some((*address).clone())
    }

    /// `POST` of something that may be there already, as often as it takes.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<(u16, Value)> {
        self.persist(&Method::POST, path, Some(body)).await
    }

    /// Asks until somebody answers.
    pub(crate) async fn persist(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<(u16, Value)> {
        let patience = Patience::begins();
        loop {
            if let Some(answer) = self.once(method, path, body).await {
                return Ok(answer);
            }
            patience.rest(path).await?;
        }
    }

    /// The text of an answer's field.
    fn field(body: &Value, name: &str) -> anyhow::Result<String> {
        let text = body[name].as_str();
        Ok(text
            .with_context(|| format!("no {name}: {body}"))?
            .to_owned())
    }

    /// Makes the agent that runs use.
    pub(crate) async fn create_agent(&self) -> anyhow::Result<()> {
        let agent = json!({"slug": "agent", "provider": "openai", "model": "test"});
        match self.post("/v1/agents", &agent).await? {
            // 409: the answer to the first one did not arrive.
            (201 | 409, _) => Ok(()),
            (status, body) => bail!("the agent was not made: {status} {body}"),
        }
    }

    /// Opens a session; its id.
    pub(crate) async fn open_session(&self) -> anyhow::Result<String> {
        match self
            .post("/v1/sessions", &json!({"agent": "agent"}))
            .await?
        {
            (201, body) => Self::field(&body, "id"),
            (status, body) => bail!("no session was opened: {status} {body}"),
        }
    }

    /// Starts a run and keeps the promise in the log. Each try has an input of its own, so that a run
    /// whose promise did not arrive is told from the one whose promise did.
    pub(crate) async fn start_run(&self, session: &str, name: &str) -> anyhow::Result<Accepted> {
        let path = format!("/v1/sessions/{session}/runs");
        let patience = Patience::begins();
        let mut tries = 1;
        let (status, body, input, asked) = loop {
            let input = format!("{name}, try {tries}");
            let body = json!({"input": input});
            self.lock().sent.push(input.clone());
            let asked = Moment::now();
            if let Some((status, body)) = self.once(&Method::POST, &path, Some(&body)).await {
                break (status, body, input, asked);
            }
            patience.rest(name).await?;
            tries += 1;
        };
        if status != 202 {
            bail!("{name} was not accepted: {status} {body}");
        }
        let accepted = Accepted {
            session: session.to_owned(),
            id: Self::field(&body, "id")?,
            input,
            asked,
            promised: Moment::now(),
        };
        self.lock().accepted.push(accepted.clone());
        Ok(accepted)
    }

    /// Waits for a run's end and keeps it in the log.
    pub(crate) async fn follow(&self, run: &str) -> Value {
        let path = format!("/v1/runs/{run}?wait_ms=1500");
        loop {
            match self.once(&Method::GET, &path, None).await {
                Some((200, body)) if has_ended(&body) => {
                    let mut log = self.lock();
                    log.ended.insert(run.to_owned(), body.clone());
                    return body;
                }
                Some((200, _)) => {}
                Some((status, body)) => {
                    let wrong = format!("GET {path}: {status} {body}");
                    self.lock().wrong.push(wrong);
                    return Value::Null;
                }
                None => tokio::time::sleep(AGAIN).await,
            }
        }
    }
}

/// How long somebody goes on asking.
struct Patience(Instant);

impl Patience {
    fn begins() -> Self {
        Self(Instant::now())
    }

    /// Rests before the next try, unless there were enough of them.
    async fn rest(&self, what: &str) -> anyhow::Result<()> {
        if self.0.elapsed() > PATIENCE {
            bail!("nobody answered within {PATIENCE:?}: {what}");
        }
        tokio::time::sleep(AGAIN).await;
        Ok(())
    }
}

/// Whether a run has ended.
pub(crate) fn has_ended(run: &Value) -> bool {
    let state = run["state"].as_str();
    matches!(state, Some("succeeded" | "failed" | "cancelled"))
}
