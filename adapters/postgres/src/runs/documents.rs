//! The rows of the documents that [`STORE`](super::store::STORE) takes besides the
//! [changed](super::changed) runs, under the names it has for their columns. Each has `v`, which is always 1.

use hango_domain::conversation::{Block, NewMessage, Role, StopReason, Usage};
use hango_domain::event::Event;
use hango_domain::journal::{CallState, ToolCall};
use hango_domain::run::Run;
use hango_domain::tool::ToolResult;
use hango_domain::{MessageId, RunId, SessionId, ToolCallId};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::rows::Told;

/// What the changes do to the line of a session, in terms that hold whatever else changes it: see
/// [`SessionLine::moved`](hango_domain::session::SessionLine::moved).
#[derive(Serialize)]
pub(super) struct Line {
    v: u8,
    session_id: SessionId,
    /// How many of its runs ended.
    pub(super) ended: i32,
    /// The run that is running from now on.
    pub(super) starts: Option<RunId>,
    /// Whether the one that was running is so no more.
    pub(super) stops: bool,
    /// The number of its last message; `None` leaves it as it is.
    pub(super) last_seq: Option<u64>,
}

impl Line {
    pub(super) const fn new(session_id: SessionId) -> Self {
        Self {
            v: 1,
            session_id,
            ended: 0,
            starts: None,
            stops: false,
            last_seq: None,
        }
    }
}

/// A message of a run.
#[derive(Serialize)]
pub(super) struct Said {
    v: u8,
    run_id: RunId,
    seq: u64,
    id: MessageId,
    role: Role,
    content: Vec<Block>,
    stop_reason: Option<StopReason>,
    usage: Option<Usage>,
    partial: bool,
}

impl Said {
    pub(super) fn new(run_id: RunId, message: NewMessage, seq: u64) -> Self {
        Self {
            v: 1,
            run_id,
            seq,
            id: message.id,
            role: message.role,
            content: message.content,
            stop_reason: message.stop_reason,
            usage: message.usage,
            partial: message.partial,
        }
    }
}

/// A call that enters the journal.
#[derive(Serialize)]
pub(super) struct Begun {
    v: u8,
    run_id: RunId,
    turn: u32,
    position: u32,
    id: ToolCallId,
    tool_use_id: String,
    name: String,
    state: CallState,
    executions: u32,
    invalid_input: Option<String>,
    input: Map<String, Value>,
}

impl Begun {
    pub(super) fn new(call: ToolCall) -> Self {
        Self {
            v: 1,
            run_id: call.run_id,
            turn: call.turn,
            position: call.position,
            id: call.id,
            tool_use_id: call.tool_use_id,
            name: call.name,
            state: call.state,
            executions: call.executions,
            invalid_input: call.invalid_input,
            input: call.input,
        }
    }
}

/// A call of the journal of which more is known.
#[derive(Serialize)]
pub(super) struct WentOn {
    pub(super) v: u8,
    pub(super) run_id: RunId,
    pub(super) turn: u32,
    pub(super) position: u32,
    pub(super) state: CallState,
    /// 1 where its execution begins with this.
    pub(super) starts: u8,
    pub(super) result: Option<ToolResult>,
}

/// What a run told with one write.
#[derive(Serialize)]
pub(super) struct ToldBy {
    v: u8,
    run_id: RunId,
    n: u64,
    attempt: u32,
    told: Vec<Told>,
}

impl ToldBy {
    pub(super) fn new(after: &Run, events: &[Event]) -> Option<Self> {
        let last = events.last()?;
        let told = |event: &Event| Told {
            turn: event.turn,
            kind: event.kind.clone(),
        };
        Some(Self {
            v: 1,
            run_id: after.id,
            n: last.n,
            attempt: last.attempt,
            told: events.iter().map(told).collect(),
        })
    }
}
