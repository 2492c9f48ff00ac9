//! What a run's watchers are told: one event for each thing that became true, numbered without gaps.
//!
//! Events refer to messages and calls rather than repeat them; whoever shows an event joins what it
//! names. Deltas are not here: they are live only (see the `EventSink` port).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::conversation::Usage;
use crate::run::{RequeueReason, RunError, Todo};
use crate::{MessageId, OwnerId, RunId, Timestamp};

/// The format of a stored [`EventKind`]; a reader takes its own and every older one. It is one higher in a
/// build that writes another kind, or a kind in another form.
pub const EVENT_VERSION: u32 = 2;

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
#[serde(
    tag = "type",
    expecting = "not an event of the format that it claims to have"
)]
pub enum EventKind {
    /// The run was accepted.
    #[serde(rename = "run.queued")]
    RunQueued,
    /// A claim was made.
    #[serde(rename = "run.started")]
    RunStarted {
        /// The process that made it; `None` in what older builds told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<OwnerId>,
        /// Until when it held then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lease_expires_at: Option<Timestamp>,
    },
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
    /// What a newer build told, in a format that this one does not know: passed on as it is, for watchers
    /// who may know it.
    #[serde(untagged, skip_deserializing)]
    Newer(Map<String, Value>),
}

impl EventKind {
    /// What a store kept, in the format `version`.
    ///
    /// # Errors
    ///
    /// It is none of that format; of a newer one, an event without a name.
    pub fn from_stored(version: u32, told: Map<String, Value>) -> Result<Self, serde_json::Error> {
        if version <= EVENT_VERSION {
            return Self::deserialize(Value::Object(told));
        }
        match told.get("type") {
            Some(Value::String(_)) => Ok(Self::Newer(told)),
            _ => Err(serde::de::Error::missing_field("type")),
        }
    }

    /// The event's name, as the API spells it.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::RunQueued => "run.queued",
            Self::RunStarted { .. } => "run.started",
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
            Self::Newer(told) => told.get("type").and_then(Value::as_str).unwrap_or_default(),
        }
    }

    /// Whether it is a run's last event, in any format.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(
            self.name(),
            "run.succeeded" | "run.failed" | "run.cancelled"
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored(version: u32, told: &Value) -> Result<EventKind, serde_json::Error> {
        let told = told.as_object().cloned().unwrap_or_default();
        EventKind::from_stored(version, told)
    }

    #[test]
    fn an_event_of_this_format_is_read_and_a_damaged_one_is_not_taken_for_a_newer_one() {
        let started =
            json!({"type": "tool.started", "position": 1, "tool_use_id": "c", "name": "t"});
        let read = stored(EVENT_VERSION, &started).expect("it is of this format");
        assert_eq!(read.name(), "tool.started");
        assert_eq!(serde_json::to_value(read).ok(), Some(started));

        for damaged in [
            json!({"type": "tool.started"}),
            json!({"type": "sub.started"}),
            json!({"position": 1}),
        ] {
            let error = stored(EVENT_VERSION, &damaged).expect_err("it is not");
            assert!(error.to_string().starts_with("not an event"), "{error}");
        }
    }

    #[test]
    fn an_event_of_a_newer_format_is_passed_on_as_it_is() {
        let told = json!({"type": "sub.started", "run": {"depth": 2}});

        let kind = stored(EVENT_VERSION + 1, &told).expect("it has a name");

        assert_eq!(kind.name(), "sub.started");
        assert!(!kind.is_terminal());
        assert_eq!(serde_json::to_value(kind).ok(), Some(told));
        assert!(stored(EVENT_VERSION + 1, &json!({"kind": 7})).is_err());
    }

    #[test]
    fn an_end_is_one_in_any_format() {
        let told = json!({"type": "run.failed", "failure": {"code": "internal"}});

        let kind = stored(EVENT_VERSION + 1, &told).expect("it has a name");

        assert!(kind.is_terminal());
        assert!(EventKind::RunCancelled.is_terminal());
    }
}
