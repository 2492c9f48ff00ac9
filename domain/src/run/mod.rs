//! Life of one run: which changes are legal, and why the others are refused.
//!
//! ```text
//!                Claim                          Finish
//!   Queued ─────────────────▶ Running ──────────────────────▶ Succeeded | Failed | Cancelled
//!   │  ▲                      │  │  ▲
//!   │  ├── GiveBack, Reclaim ─┘  │  └── Renew, Repair, Answer, Resume, Record, CompleteTurn, Retry
//!   │  │                         └── Reclaim, GiveBack (cancel asked for, stalled) ──▶ ended
//!   └──┴── RequestCancel ──▶ Cancelled
//! ```
//!
//! [`Run::apply`] is the specification of every store: the in-memory and the embedded one call it,
//! others say the same in SQL, and the conformance suite compares them.

mod apply;
mod change;
mod clean;
mod effects;
#[cfg(test)]
pub(crate) mod fixtures;
mod state;
mod table;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use apply::{Applied, TransitionError};
pub use change::{
    AfterTurn, Answer, Boundary, Change, Closing, End, FailedTry, GiveBack, Lease, Outcome,
    Reclaim, Record, Repair, RequeueReason, Resume, Retry, StartedCall, Todo, TodoStatus,
    TryFailure, WriteId,
};
pub use effects::Effects;
pub use state::{RunError, RunErrorCode, RunState, RunStatus};
pub use table::{CHANGES, ChangeKind, TRANSITIONS, Transition};

use crate::conversation::{Block, StopReason, Usage};
use crate::{AgentId, MessageId, RunId, RunTrace, SessionId, TenantId, Timestamp, UserId};

/// The lane every run is in; the column is there for subagents, which will have their own.
pub const MAIN_LANE: &str = "main";

/// One execution of an agent in a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its identity.
    pub id: RunId,
    /// The tenant.
    pub tenant_id: TenantId,
    /// The conversation.
    pub session_id: SessionId,
    /// The agent, as it was when the run was accepted.
    pub agent_id: AgentId,
    /// Which version of the agent that was.
    pub agent_version: u32,
    /// In whose name it executes.
    pub created_by: UserId,
    /// The queue it waits in.
    pub lane: String,
    /// Its place among the runs of its session: they start in this order.
    pub session_no: u64,
    /// Where it stands.
    pub state: RunState,
    /// How often it was claimed.
    pub attempt: u32,
    /// How often the sweep took it back since a turn was completed.
    pub stalled_attempts: u32,
    /// Before this nobody claims it; `None` when it never had to wait.
    pub available_at: Option<Timestamp>,
    /// How far it came.
    pub progress: Progress,
    /// What the caller said; becomes the user's message at the first claim.
    pub input: Vec<Block>,
    /// The id that message will have.
    pub input_message_id: MessageId,
    /// The caller's own data.
    pub metadata: Map<String, Value>,
    /// Model calls whose turn was completed.
    pub iterations: u32,
    /// What those calls cost.
    pub usage: Usage,
    /// What tries cost whose answers were not kept, as far as providers reported it.
    pub usage_discarded: Usage,
    /// Why the model stopped last; `None` before the end.
    pub stop_reason: Option<StopReason>,
    /// The message that is its answer; `None` before the end, or if there is none.
    pub final_message_id: Option<MessageId>,
    /// What its layers remember, as stored at the last turn boundary.
    pub memory: StoredMemory,
    /// Where it is found in a tracing backend.
    pub trace: RunTrace,
    /// When its end was asked for.
    pub cancel_requested_at: Option<Timestamp>,
    /// When it was claimed first.
    pub started_at: Option<Timestamp>,
    /// When it was accepted.
    pub created_at: Timestamp,
}

/// How far a run came, in numbers that only grow within a turn.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The last completed turn: a new attempt goes on behind it.
    pub resume_turn: u32,
    /// The last turn that was begun.
    pub begun_turn: u32,
    /// The last turn whose answer is on record and asks for tools.
    pub answered_turn: u32,
    /// Failed tries of the current turn's model call.
    pub tries: u32,
    /// Empty answers in a row.
    pub empty_answers: u32,
    /// The number of the last event.
    pub last_event: u64,
    /// The last fenced write that appended something.
    pub last_write: Option<WriteId>,
}

/// A run's memory as it is stored (`runs.state_json`), with the version of its format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredMemory {
    /// The format; a process claims only runs whose format it can read.
    pub version: u32,
    /// The memory in that format.
    pub json: Value,
}

impl Default for StoredMemory {
    /// Nothing remembered yet.
    fn default() -> Self {
        Self {
            version: crate::memory::MEMORY_VERSION,
            json: Value::Object(Map::new()),
        }
    }
}
