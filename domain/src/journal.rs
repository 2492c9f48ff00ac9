//! The record of a run's tool calls: what began, what came of it, and what nobody knows.
//!
//! The rules that keep a call from being executed twice:
//!
//! * the commit of an answer journals its whole batch, the calls that begin at once as
//!   [`CallState::Started`], the others as [`CallState::Pending`];
//! * a pending call becomes started in the commit that records the result which freed its place;
//! * a call that is settled is never executed again; one that was started and has no result is
//!   [executed again, or declared in doubt](resume), by its tool's [`Idempotency`].

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::conversation::{Block, Message, NewMessage};
use crate::run::{Closing, Run, StartedCall};
use crate::tool::{Idempotency, ToolFailure, ToolResult};
use crate::{MessageId, RunId, Timestamp, ToolCallId};

/// What the model sees of a call whose outcome nobody knows.
pub const OUTCOME_UNKNOWN: &str = "interrupted, outcome unknown";

/// What the model sees of a call that never began.
pub const NOT_EXECUTED: &str = "tool call interrupted";

/// How far a call is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// Not begun.
    Pending,
    /// Begun; if its process dies now, nobody knows how far it came.
    Started,
    /// Its result is on record.
    Finished,
    /// It was begun, and nobody will ever know what came of it.
    InDoubt,
}

impl CallState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Started, Self::Finished, Self::InDoubt];

    /// The word of the HTTP contract and of the stores.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Started => "started",
            Self::Finished => "finished",
            Self::InDoubt => "in_doubt",
        }
    }

    /// The state of that word, `None` for any other.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// A call as an answer asks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct NewToolCall {
    /// Its entry's identity.
    pub id: ToolCallId,
    /// Its place in the batch, counting from 1.
    pub position: u32,
    /// The model's id of it.
    pub tool_use_id: String,
    /// The tool, as the model spelled it.
    pub name: String,
    /// The arguments; an empty object where they could not be read.
    pub input: Map<String, Value>,
    /// The arguments as they came, where they are not a JSON object or were cut off. Such a call is
    /// never executed.
    pub invalid_input: Option<String>,
    /// Whether its execution begins with the commit of the answer.
    pub starts: bool,
}

/// An entry of the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Its identity.
    pub id: ToolCallId,
    /// The run.
    pub run_id: RunId,
    /// The turn, counting from 1.
    pub turn: u32,
    /// Its place in the batch, counting from 1.
    pub position: u32,
    /// The model's id of it.
    pub tool_use_id: String,
    /// The tool, as the model spelled it.
    pub name: String,
    /// The arguments.
    pub input: Map<String, Value>,
    /// See [`NewToolCall::invalid_input`].
    pub invalid_input: Option<String>,
    /// How far it is.
    pub state: CallState,
    /// How often its execution began.
    pub executions: u32,
    /// What came of it, once it is settled.
    pub result: Option<ToolResult>,
    /// When its execution began last, by the store's clock.
    pub started_at: Option<Timestamp>,
    /// When its result was recorded, by the store's clock.
    pub finished_at: Option<Timestamp>,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult {
    /// Its place in the batch, counting from 1.
    pub position: u32,
    /// The model's id of it.
    pub tool_use_id: String,
    /// The tool, as the model spelled it.
    pub name: String,
    /// What the model, and a person, see of it.
    pub result: ToolResult,
    /// Whether the result says that nobody knows the outcome.
    pub in_doubt: bool,
    /// How long the execution took, in milliseconds; `None` if there was none, or nobody knows.
    pub duration_ms: Option<u64>,
}

impl ToolCall {
    /// The entry of a call that an answer asks for.
    #[must_use]
    pub fn begin(run_id: RunId, turn: u32, call: NewToolCall, now: Timestamp) -> Self {
        Self {
            id: call.id,
            run_id,
            turn,
            position: call.position,
            tool_use_id: call.tool_use_id,
            name: call.name,
            input: call.input,
            invalid_input: call.invalid_input,
            state: if call.starts {
                CallState::Started
            } else {
                CallState::Pending
            },
            executions: u32::from(call.starts),
            result: None,
            started_at: call.starts.then_some(now),
            finished_at: None,
        }
    }

    /// The entry after its execution began, once more or for the first time.
    #[must_use]
    pub fn started(self, now: Timestamp) -> Self {
        Self {
            state: CallState::Started,
            executions: self.executions + 1,
            started_at: Some(now),
            ..self
        }
    }

    /// The entry after `result` was recorded.
    #[must_use]
    pub fn settled(self, result: &CallResult, now: Timestamp) -> Self {
        Self {
            state: if result.in_doubt {
                CallState::InDoubt
            } else {
                CallState::Finished
            },
            result: Some(result.result.clone()),
            finished_at: Some(now),
            ..self
        }
    }

    /// Whether its result is on record, or never will be.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        match self.state {
            CallState::Finished | CallState::InDoubt => true,
            CallState::Pending | CallState::Started => false,
        }
    }

    /// The same on every execution of this call, and on no other.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        format!("{}-{}-{}", self.run_id, self.turn, self.position)
    }

    /// What names it when its execution begins.
    #[must_use]
    pub fn to_started(&self) -> StartedCall {
        StartedCall {
            position: self.position,
            tool_use_id: self.tool_use_id.clone(),
            name: self.name.clone(),
        }
    }

    /// What is recorded when it ends with `result`.
    #[must_use]
    pub fn to_result(
        &self,
        result: ToolResult,
        in_doubt: bool,
        duration_ms: Option<u64>,
    ) -> CallResult {
        CallResult {
            position: self.position,
            tool_use_id: self.tool_use_id.clone(),
            name: self.name.clone(),
            result,
            in_doubt,
            duration_ms,
        }
    }
}

/// What a new attempt does with the calls of an answered turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resumption {
    /// Positions to execute, in order: those that never began, and those that may be repeated.
    pub execute: Vec<u32>,
    /// Calls that may not be repeated.
    pub in_doubt: Vec<CallResult>,
}

/// Decides for each open call of a turn whether it is executed (again) or declared in doubt.
///
/// `class_of` tells a tool's class; `None` for a tool that is not there any more, whose calls are
/// executed only if they never began (and are then answered as calls of an unknown tool).
#[must_use]
pub fn resume(calls: &[ToolCall], class_of: impl Fn(&str) -> Option<Idempotency>) -> Resumption {
    let mut plan = Resumption::default();
    for call in calls {
        match (call.state, class_of(&call.name)) {
            (CallState::Finished | CallState::InDoubt, _) => {}
            (CallState::Pending, _)
            | (CallState::Started, Some(Idempotency::Safe | Idempotency::Keyed)) => {
                plan.execute.push(call.position);
            }
            (CallState::Started, Some(Idempotency::Unsafe) | None) => {
                let unknown = unknown_outcome();
                plan.in_doubt.push(call.to_result(unknown, true, None));
            }
        }
    }
    plan
}

/// The result of a call of which nobody knows what came.
#[must_use]
pub fn unknown_outcome() -> ToolResult {
    ToolResult::failed(ToolFailure::Interrupted, OUTCOME_UNKNOWN)
}

/// The user's message that answers a batch: every result, in the order of the calls.
///
/// Calls without a result are left out, so this is for batches that are settled.
#[must_use]
pub fn results_message<'a>(
    id: MessageId,
    settled: impl IntoIterator<Item = (&'a str, &'a ToolResult)>,
) -> NewMessage {
    let content = settled
        .into_iter()
        .map(|(tool_use_id, result)| Block::ToolResult {
            tool_use_id: tool_use_id.to_owned(),
            content: result.for_llm.clone(),
            for_user: result.for_user.clone(),
            is_error: result.is_error,
        })
        .collect();
    NewMessage::user(id, content)
}

/// What closes an answered turn where a run ends without executing the rest of it: results that are
/// known stay, calls that ever began are in doubt, the others are said not to have been executed.
#[must_use]
pub fn close(calls: &[ToolCall], message: MessageId) -> Closing {
    let results: Vec<CallResult> = calls
        .iter()
        .filter(|call| !call.is_settled())
        .map(|call| {
            let in_doubt = call.executions > 0;
            let text = if in_doubt {
                OUTCOME_UNKNOWN
            } else {
                NOT_EXECUTED
            };
            let result = ToolResult::failed(ToolFailure::Interrupted, text);
            call.to_result(result, in_doubt, None)
        })
        .collect();
    let settled = calls.iter().filter_map(|call| {
        let open = results.iter().find(|open| open.position == call.position);
        let result = open.map(|open| &open.result).or(call.result.as_ref())?;
        Some((call.tool_use_id.as_str(), result))
    });
    Closing {
        message: results_message(message, settled),
        results,
    }
}

/// The id of the message that closes a run which ends without a holder: nobody is there to choose one,
/// and a run ends once, so it is derived from the run's.
#[must_use]
pub fn closing_message_id(run: RunId) -> MessageId {
    let digest = Sha256::new()
        .chain_update(run.0.as_bytes())
        .chain_update(b"closing message")
        .finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    MessageId(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

/// Whether the run has an answer on record whose calls are not all settled in the history yet.
#[must_use]
pub fn has_open_answer(run: &Run) -> bool {
    run.progress.answered_turn > run.progress.resume_turn
}

/// The calls an answer asks for, as the journal will know them.
///
/// `invalid` tells, for a call's id, the argument text that could not be read. `starting` calls begin
/// at once, the first executable ones; ids come from `next_id`.
pub fn batch(
    content: &[Block],
    invalid: impl Fn(&str) -> Option<String>,
    truncated: bool,
    starting: usize,
    mut next_id: impl FnMut() -> Uuid,
) -> Vec<NewToolCall> {
    let mut free = starting;
    let mut position = 0;
    let mut calls = Vec::new();
    for block in content {
        let Block::ToolUse {
            id, name, input, ..
        } = block
        else {
            continue;
        };
        position += 1;
        let invalid_input = invalid(id);
        let starts = !truncated && invalid_input.is_none() && free > 0;
        free -= usize::from(starts);
        calls.push(NewToolCall {
            id: ToolCallId(next_id()),
            position,
            tool_use_id: id.clone(),
            name: name.clone(),
            input: input.clone(),
            invalid_input,
            starts,
        });
    }
    calls
}

/// Where in `history` the open answer of the run stands, if it has one. Seldom it is not the last
/// message: while the run waits in the queue, a client may append one behind it.
#[must_use]
pub fn open_answer(run: &Run, history: &[Message]) -> Option<usize> {
    if !has_open_answer(run) {
        return None;
    }
    history
        .iter()
        .rposition(|message| message.run_id == Some(run.id) && asks_for_tools(message))
}

/// Whether `message` asks for tools.
#[must_use]
pub fn asks_for_tools(message: &Message) -> bool {
    message
        .content
        .iter()
        .any(|block| block.tool_use_id().is_some())
}

#[cfg(test)]
mod tests;
