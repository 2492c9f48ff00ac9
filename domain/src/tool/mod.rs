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
    /// What its failure is called where failures are counted; `None` if it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ToolFailure>,
}

/// What a failed call is called where failures are counted.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolFailure {
    /// It did not return in time.
    Timeout,
    /// It panicked.
    Panic,
    /// There is no such tool.
    UnknownTool,
    /// It does not take such arguments.
    InvalidArgs,
    /// The tool says so.
    ToolError,
    /// The agent may not call it.
    NotAllowed,
    /// The run had made the call too often.
    RepeatBlocked,
    /// Nobody knows what came of it, or it never began.
    Interrupted,
    /// The call was cut off before it was whole.
    Truncated,
    /// It was broken off.
    Cancelled,
    /// One that a newer build knows.
    #[serde(other)]
    Other,
}

impl ToolFailure {
    /// Every failure.
    pub const ALL: [Self; 11] = [
        Self::Timeout,
        Self::Panic,
        Self::UnknownTool,
        Self::InvalidArgs,
        Self::ToolError,
        Self::NotAllowed,
        Self::RepeatBlocked,
        Self::Interrupted,
        Self::Truncated,
        Self::Cancelled,
        Self::Other,
    ];

    /// The word by which it is counted.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Panic => "panic",
            Self::UnknownTool => "unknown_tool",
            Self::InvalidArgs => "invalid_args",
            Self::ToolError => "tool_error",
            Self::NotAllowed => "not_allowed",
            Self::RepeatBlocked => "repeat_blocked",
            Self::Interrupted => "interrupted",
            Self::Truncated => "truncated",
            Self::Cancelled => "cancelled",
            Self::Other => "_OTHER",
        }
    }
}

impl ToolResult {
    /// A result that people and model see alike.
    #[must_use]
    pub fn ok(text: impl Into<String>) -> Self {
        Self {
            for_llm: text.into(),
            for_user: None,
            is_error: false,
            failure: None,
        }
    }

    /// A failure that the model is told of.
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self::failed(ToolFailure::ToolError, text)
    }

    /// The same of another kind.
    #[must_use]
    pub fn failed(failure: ToolFailure, text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            failure: Some(failure),
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
/// The name of a tool as operators are told of it. What no tool could be called a model made up: it may hold
/// anything, and is as long as it likes.
#[must_use]
pub fn told_name(name: &str) -> &str {
    let is_of_names = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.' | b':');
    let is_name = (1..=64).contains(&name.len()) && name.bytes().all(is_of_names);
    if is_name { name } else { "_OTHER" }
}
