//! Tools that do what they are told to, and note how often and when.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hango_domain::tool::schema;
use hango_ports::tool::{Idempotency, Invocation, Tool, ToolDef, ToolResult};
use tokio::time::Instant;

/// What a tool does when it is executed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Does {
    /// Returns at once.
    Returns,
    /// Returns after a while.
    Takes(Duration),
    /// Panics.
    Panics,
    /// Never returns.
    Hangs,
    /// Blocks its thread for a while.
    Blocks(Duration),
}

/// One execution.
#[derive(Clone, Debug)]
pub(crate) struct Execution {
    /// What it was given.
    pub(crate) asked: Invocation,
    /// When it began.
    pub(crate) began: Instant,
    /// When its future was dropped, finished or not.
    pub(crate) dropped: Option<Instant>,
    /// Whether it had returned by then.
    pub(crate) returned: bool,
}

/// See the module.
pub(crate) struct Watched {
    name: &'static str,
    class: Idempotency,
    does: Does,
    executions: Arc<Mutex<Vec<Execution>>>,
}

impl Watched {
    /// A tool.
    pub(crate) fn new(name: &'static str, class: Idempotency, does: Does) -> Self {
        Self {
            name,
            class,
            does,
            executions: Arc::default(),
        }
    }

    /// Its executions so far.
    pub(crate) fn executions(&self) -> Vec<Execution> {
        lock(&self.executions).clone()
    }

    /// How often it was executed.
    pub(crate) fn count(&self) -> usize {
        lock(&self.executions).len()
    }
}

#[async_trait]
impl Tool for Watched {
    fn definition(&self) -> ToolDef {
        ToolDef {
            name: self.name.to_owned(),
            description: "Does what the test says.".to_owned(),
            parameters: schema::object([]),
        }
    }

    fn idempotency(&self) -> Idempotency {
        self.class
    }

    async fn execute(&self, invocation: Invocation) -> ToolResult {
        let under_way = UnderWay::begin(&self.executions, invocation.clone());
        match self.does {
            Does::Returns => {}
            Does::Takes(span) => tokio::time::sleep(span).await,
            Does::Panics => panic!("the tool's own words"),
            Does::Hangs => std::future::pending().await,
            Does::Blocks(span) => std::thread::sleep(span),
        }
        under_way.returned();
        ToolResult::ok(format!("{} did {}", self.name, invocation.tool_use_id))
    }
}

struct UnderWay {
    executions: Arc<Mutex<Vec<Execution>>>,
    at: usize,
}

impl UnderWay {
    fn begin(executions: &Arc<Mutex<Vec<Execution>>>, asked: Invocation) -> Self {
        let mut all = lock(executions);
        all.push(Execution {
            asked,
            began: Instant::now(),
            dropped: None,
            returned: false,
        });
        Self {
            executions: Arc::clone(executions),
            at: all.len() - 1,
        }
    }

    fn returned(&self) {
        lock(&self.executions)[self.at].returned = true;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        lock(&self.executions)[self.at].dropped = Some(Instant::now());
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
