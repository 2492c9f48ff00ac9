//! The services behind an operator's tools, with a log of every call: the truth outside of hango.

use std::collections::BTreeMap;
use std::net::TcpListener as BoundListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Json, Path, State};
use axum::http::HeaderMap;
use axum::routing::post;
use serde_json::Value;
use tokio::net::TcpListener;

use super::gate::Gate;

/// The tools, by what may happen to a call that a crash left in doubt.
pub(crate) const CLASSES: [&str; 3] = ["safe", "keyed", "unsafe"];

/// What a service answers, and when.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    body: String,
    wait: Duration,
    hold: Option<Gate>,
}

impl Response {
    /// Answers with that text.
    pub(crate) fn text(body: impl Into<String>) -> Self {
        Self {
            body: body.into(),
            wait: Duration::ZERO,
            hold: None,
        }
    }

    /// After that time.
    pub(crate) fn after(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Not before the gate is open.
    pub(crate) fn held(self, gate: &Gate) -> Self {
        let hold = Some(gate.clone());
        Self { hold, ..self }
    }
}

/// A call that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    /// The tool.
    pub(crate) tool: String,
    /// The header `idempotency-key`.
    pub(crate) key: String,
    /// The header `x-hango-run-id`.
    pub(crate) run: String,
    /// The header `x-hango-tool-call-id`.
    pub(crate) call: String,
    /// The header `traceparent`.
    pub(crate) traceparent: String,
    /// The arguments.
    pub(crate) input: Value,
    /// How often this key came, this time included.
    pub(crate) time: usize,
    /// Whether it was answered; `Some(false)` if whoever called went away before.
    pub(crate) answered: Option<bool>,
}

/// The services; clones are the same ones.
#[derive(Clone)]
pub(crate) struct ToolServer(Arc<Inner>);

struct Inner {
    address: String,
    bound: Mutex<Option<BoundListener>>,
    script: Box<dyn Fn(&Called) -> Response + Send + Sync>,
    log: Mutex<Vec<Called>>,
}

impl ToolServer {
    /// Takes a port where nobody accepts yet: callers wait.
    pub(crate) fn bind(script: impl Fn(&Called) -> Response + Send + Sync + 'static) -> Self {
        let bound = BoundListener::bind("127.0.0.1:0").expect("a port is free");
        bound.set_nonblocking(true).expect("it can be polled");
        Self(Arc::new(Inner {
            address: bound.local_addr().expect("it is bound").to_string(),
            bound: Mutex::new(Some(bound)),
            script: Box::new(script),
            log: Mutex::default(),
        }))
    }

    /// Accepts from now on. Whoever waited is sent away: his call was never seen.
    pub(crate) fn open(&self) {
        let bound = self
            .0
            .bound
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let bound = bound.expect("it is opened once");
        while bound.accept().is_ok() {}
        let listener = TcpListener::from_std(bound).expect("there is a runtime");
        let routes = Router::new()
            .route("/{tool}", post(call))
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
    }

    /// The tools as hango is told of them.
    pub(crate) fn config(&self) -> String {
        let entry = |class: &str| {
            format!(
                r#"
[[tools.http]]
name = "{class}"
description = "Does something that is {class} to repeat."
url = "http://{}/{class}"
idempotency = "{class}"
parameters = {{ type = "object", properties = {{ n = {{ type = "integer" }} }} }}
"#,
                self.0.address
            )
        };
        CLASSES.map(entry).concat()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Called>> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every call, in the order in which they came.
    pub(crate) fn calls(&self) -> Vec<Called> {
        self.lock().clone()
    }

    /// The calls of a run, by its id.
    pub(crate) fn calls_of(&self, run: &str) -> Vec<Called> {
        let mut calls = self.calls();
        calls.retain(|called| called.run == run);
        calls
    }

    /// How often each idempotency key came.
    pub(crate) fn times(&self) -> BTreeMap<String, usize> {
        let mut times = BTreeMap::new();
        for called in self.calls() {
            *times.entry(called.key).or_default() += 1;
        }
        times
    }

    fn note(&self, mut called: Called) -> (usize, Response) {
        let mut log = self.lock();
        called.time = log.iter().filter(|other| other.key == called.key).count() + 1;
        let response = (self.0.script)(&called);
        log.push(called);
        (log.len() - 1, response)
    }
}

async fn call(
    State(server): State<ToolServer>,
    Path(tool): Path<String>,
    headers: HeaderMap,
    Json(input): Json<Value>,
) -> String {
    let header = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (at, response) = server.note(Called {
        tool,
        key: header("idempotency-key"),
        run: header("x-hango-run-id"),
        call: header("x-hango-tool-call-id"),
        traceparent: header("traceparent"),
        input,
        time: 0,
        answered: None,
    });
    let mut working = Working {
        server,
        at,
        answered: false,
    };
    tokio::time::sleep(response.wait).await;
    if let Some(gate) = response.hold {
        gate.pass().await;
    }
    working.answered = true;
    response.body
}

/// A call that is being worked on. Dropping it before its end means that whoever called went away.
struct Working {
    server: ToolServer,
    at: usize,
    answered: bool,
}

impl Drop for Working {
    fn drop(&mut self) {
        self.server.lock()[self.at].answered = Some(self.answered);
    }
}
