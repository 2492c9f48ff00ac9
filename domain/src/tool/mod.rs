//! Tools: what a model may ask for.

pub(crate) mod panic;
mod registry;
pub mod schema;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(crate) use registry::{MAX_TOOL_NAME, is_name_char};
pub use registry::{RegisterError, Registry, View, is_tool_name};

use crate::RunId;

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDef {
    /// Its name; `^[A-Za-z0-9_-]{1,64}$`, so that every provider takes it.
    pub name: String,
    /// What it does and when to use it: a tool's policy belongs here.
    pub description: String,
    /// A JSON Schema object of its arguments.
    pub parameters: Value,
}

/// What may happen to a call that was begun and has no result after a crash.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Idempotency {
    /// Executing it again does no harm.
    Safe,
    /// Executing it again with the same idempotency key does no harm.
    Keyed,
    /// Nobody may execute it again: the model is told that the outcome is unknown.
    Unsafe,
}

impl Idempotency {
    /// Every class.
    pub const ALL: [Self; 3] = [Self::Safe, Self::Keyed, Self::Unsafe];
}

/// What came of a call.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// What the model sees.
    pub for_llm: String,
    /// What a person sees; `None` when it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_user: Option<String>,
    /// Whether the call failed. The model reads it and may try otherwise.
    pub is_error: bool,
}

impl ToolResult {
    /// A result that people and model see alike.
    #[must_use]
    pub fn ok(text: impl Into<String>) -> Self {
        Self {
            for_llm: text.into(),
            for_user: None,
            is_error: false,
        }
    }

    /// A failure that the model is told of.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::ok(text)
        }
    }
}

/// One execution of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Invocation {
    /// The arguments.
    pub input: Map<String, Value>,
    /// The run that asks.
    pub run: RunId,
    /// The model's id of the call.
    pub tool_use_id: String,
    /// The same on every execution of this call, and on no other.
    pub idempotency_key: String,
    /// The run's span, as a W3C `traceparent`.
    pub traceparent: String,
}

/// Something a model can ask for. An adapter implements it; the registry holds it.
///
/// Dropping the returned future cancels the execution. A panic is caught by the registry's view and
/// becomes an error result.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait Tool: Send + Sync {
    /// What a model sees of it.
    fn definition(&self) -> ToolDef;

    /// What may happen to a call of it that a crash left in doubt. There is no default: every tool says
    /// so, and why, in its documentation.
    fn idempotency(&self) -> Idempotency;

    /// Executes it once. Whatever goes wrong is a result with `is_error`.
    async fn execute(&self, invocation: Invocation) -> ToolResult;
}
