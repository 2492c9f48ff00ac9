//! The services behind an operator's tools, and a log of every call that reached them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::routing::post;
use tokio::net::TcpListener;

use crate::moment::Moment;

/// The tools, by what may happen to a call that a crash left in doubt.
pub(crate) const CLASSES: [&str; 3] = ["safe", "keyed", "unsafe"];

/// A tool that only runs call which are poison.
pub(crate) const POISON: &str = "poison";

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
    /// When.
    pub(crate) at: Moment,
    /// Whether it was answered; `Some(false)` if whoever called went away before.
    pub(crate) answered: Option<bool>,
}

/// How long a tool works on the call of that key.
pub(crate) type Takes = Box<dyn Fn(&str) -> Duration + Send + Sync>;

/// The services; clones are the same ones.
#[derive(Clone)]
pub(crate) struct Tools(Arc<Inner>);

struct Inner {
    address: String,
    takes: Takes,
    log: Mutex<Vec<Called>>,
}

impl Tools {
    /// Starts them.
    pub(crate) async fn start(takes: Takes) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let tools = Self(Arc::new(Inner {
            address: listener.local_addr()?.to_string(),
            takes,
            log: Mutex::default(),
        }));
        let routes = Router::new()
            .route("/{tool}", post(call))
            .with_state(tools.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok(tools)
    }

    /// The tools as hango is told of them.
    pub(crate) fn config(&self) -> String {
        let named = CLASSES.map(|class| (class, class));
        let address = &self.0.address;
        let entry = |(name, class): (&str, &str)| {
            format!(
                r#"
[[tools.http]]
name = "{name}"
description = "Does something that is {class} to repeat."
url = "http://{address}/{name}"
idempotency = "{class}"
parameters = {{ type = "object" }}
"#
            )
        };
        named
            .into_iter()
            .chain([(POISON, "safe")])
            .map(entry)
            .collect()
    }

    fn log(&self) -> MutexGuard<'_, Vec<Called>> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every call, by its run's id, in the order in which they came.
    pub(crate) fn by_run(&self) -> HashMap<String, Vec<Called>> {
        let mut by_run: HashMap<_, Vec<_>> = HashMap::new();
        for called in self.log().iter().cloned() {
            by_run.entry(called.run.clone()).or_default().push(called);
        }
        by_run
    }
}

async fn call(State(tools): State<Tools>, Path(tool): Path<String>, headers: HeaderMap) -> String {
    let header = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let called = Called {
        tool,
        key: header("idempotency-key"),
        run: header("x-hango-run-id"),
        call: header("x-hango-tool-call-id"),
        at: Moment::now(),
        answered: None,
    };
    let takes = (tools.0.takes)(&called.key);
    let at = {
        let mut log = tools.log();
        log.push(called);
        log.len() - 1
    };
    let mut working = Working {
        tools,
        at,
        answered: false,
    };
    tokio::time::sleep(takes).await;
    working.answered = true;
    "done".to_owned()
}

/// A call that is being worked on. Dropping it before its end means that whoever called went away.
struct Working {
    tools: Tools,
    at: usize,
    answered: bool,
}

impl Drop for Working {
    fn drop(&mut self) {
        self.tools.log()[self.at].answered = Some(self.answered);
    }
}
