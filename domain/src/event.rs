//! What a run's watchers are told: one event for each thing that became true, numbered without gaps.
//!
//! Events refer to messages and calls rather than repeat them; whoever shows an event joins what it
//! names. Deltas are not here: they are live only (see the `EventSink` port).

use serde::{Deserialize, Serialize};

use crate::conversation::Usage;
use crate::run::{RequeueReason, RunError, Todo};
use crate::{MessageId, RunId, Timestamp};

/// The format of a stored [`EventKind`]; a reader takes its own and every older one.
pub const EVENT_VERSION: u32 = 1;

/// One durable event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The run.
    pub run_id: RunId,
    /// Its number in the run: 1, 2, 3 … without gaps.
    pub n: u64,
    /// The turn it belongs to, counting from 1; 0 before the first.
    pub turn: u32,
    /// The attempt it belongs to, counting from 1; 0 before the first claim.
    pub attempt: u32,
    /// When it became true, by the store's clock.
    pub at: Timestamp,
    /// What became true.
    pub kind: EventKind,
}

/// What became true.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum EventKind {
    /// The run was accepted.
    #[serde(rename = "run.queued")]
    RunQueued,
    /// A claim was made.
    #[serde(rename = "run.started")]
    RunStarted,
    /// The run went back to the queue.
    #[serde(rename = "run.requeued")]
    RunRequeued {
        /// Why.
        reason: RequeueReason,
    },
    /// The run ended well.
    #[serde(rename = "run.succeeded")]
    RunSucceeded,
    /// The run ended with an error.
    #[serde(rename = "run.failed")]
    RunFailed {
        /// Which.
        error: RunError,
    },
    /// The run ended on request.
    #[serde(rename = "run.cancelled")]
    RunCancelled,
    /// A turn was begun.
    #[serde(rename = "turn.started")]
    TurnStarted,
    /// A turn is complete and will not be executed again.
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        /// What the run cost so far.
        usage: Usage,
    },
    /// The turn is begun anew: its deltas are void.
    #[serde(rename = "turn.discarded")]
    TurnDiscarded,
    /// A message was stored.
    #[serde(rename = "message.completed")]
    MessageCompleted {
        /// Which.
        message_id: MessageId,
    },
    /// The execution of a call began.
    #[serde(rename = "tool.started")]
    ToolStarted {
        /// The call's place in its batch, counting from 1.
        position: u32,
        /// The model's id of the call.
        tool_use_id: String,
        /// The tool, as the model spelled it.
        name: String,
    },
    /// A call has its result.
    #[serde(rename = "tool.completed")]
    ToolCompleted {
        /// The call's place in its batch, counting from 1.
        position: u32,
        /// The model's id of the call.
        tool_use_id: String,
        /// The tool, as the model spelled it.
        name: String,
        /// Whether it failed.
        is_error: bool,
        /// How long the execution took, in milliseconds; `None` if it is not known.
        duration_ms: Option<u64>,
    },
    /// The run's plan changed.
    #[serde(rename = "todos.updated")]
    TodosUpdated {
        /// The whole list.
        todos: Vec<Todo>,
    },
}

impl EventKind {
    /// The event's name, as the API spells it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RunQueued => "run.queued",
            Self::RunStarted => "run.started",
            Self::RunRequeued { .. } => "run.requeued",
            Self::RunSucceeded => "run.succeeded",
            Self::RunFailed { .. } => "run.failed",
            Self::RunCancelled => "run.cancelled",
            Self::TurnStarted => "turn.started",
            Self::TurnCompleted { .. } => "turn.completed",
            Self::TurnDiscarded => "turn.discarded",
            Self::MessageCompleted { .. } => "message.completed",
            Self::ToolStarted { .. } => "tool.started",
            Self::ToolCompleted { .. } => "tool.completed",
            Self::TodosUpdated { .. } => "todos.updated",
        }
    }

    /// Whether it is a run's last event.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::RunSucceeded | Self::RunFailed { .. } | Self::RunCancelled
        )
    }
}
