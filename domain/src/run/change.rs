//! What somebody may want to do to a run.
//!
//! The changes that carry a [`Lease`] are *fenced*: they hold only while that claim does. Each of
//! those that append something carries a [`WriteId`] of its writer's choosing, by which a repeat after
//! an unknown outcome is recognised and answered as the first was.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Run, RunError, StoredMemory};
use crate::conversation::{NewMessage, StopReason, Usage};
use crate::journal::{CallResult, NewToolCall, has_open_answer};
use crate::{MessageId, OwnerId, RunId};

/// The right to change a running run, handed out by a claim.
///
/// `attempt` grows by one at every claim. It fences out a process that lost its lease and then claimed
/// the run again itself: the owner is the same, the attempt is not.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Lease {
    /// The run it covers.
    pub run: RunId,
    /// The process that holds it.
    pub owner: OwnerId,
    /// Which claim of the run it came from, counting from 1.
    pub attempt: u32,
}

/// Names one write, so that its repeat is recognised.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WriteId(pub Uuid);

/// A change somebody wants to make to a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Take the run off the queue.
    Claim {
        /// The process asking.
        owner: OwnerId,
        /// How long it may stay silent.
        ttl: Duration,
    },
    /// Push the end of the lease away.
    Renew {
        /// The claim.
        lease: Lease,
        /// How long the holder may stay silent from now on.
        ttl: Duration,
    },
    /// Append the message that repairs what earlier runs left behind, before the first model call.
    Repair(Repair),
    /// Keep a whole answer that asks for tools, before any of them is executed.
    Answer(Answer),
    /// Go on, in a new attempt, with the open calls of an answered turn.
    Resume(Resume),
    /// Keep the result of one call while others of its batch are still open.
    Record(Record),
    /// Complete a tool turn.
    CompleteTurn(Boundary),
    /// Note a try of the model call that brought no answer; another follows.
    Retry(Retry),
    /// Return the run to the queue.
    GiveBack(GiveBack),
    /// End the run.
    Finish(End),
    /// Ask for the run's end, whoever holds it.
    RequestCancel {
        /// What closes the open calls of an answered turn, should the run wait in the queue with some.
        closing: Option<Closing>,
    },
    /// Take the run from a holder that fell silent.
    Reclaim(Reclaim),
}

/// See [`Change::Repair`].
#[derive(Clone, Debug, PartialEq)]
pub struct Repair {
    /// The claim.
    pub lease: Lease,
    /// Names this write.
    pub write: WriteId,
    /// What to append.
    pub message: NewMessage,
}

/// See [`Change::Answer`].
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The claim.
    pub lease: Lease,
    /// Names this write.
    pub write: WriteId,
    /// The turn, counting from 1: the one after the last completed.
    pub turn: u32,
    /// The answer.
    pub message: NewMessage,
    /// The batch it asks for, in the order of the calls; those that start at once are marked.
    pub calls: Vec<NewToolCall>,
}

/// See [`Change::Resume`].
#[derive(Clone, Debug, PartialEq)]
pub struct Resume {
    /// The claim.
    pub lease: Lease,
    /// Names this write.
    pub write: WriteId,
    /// The answered turn.
    pub turn: u32,
    /// Calls that are executed now, once more or for the first time.
    pub starts: Vec<StartedCall>,
    /// Calls whose outcome nobody knows and that may not be executed again.
    pub in_doubt: Vec<CallResult>,
}

/// A call of the batch whose execution begins with the write that names it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StartedCall {
    /// Its place in the batch, counting from 1.
    pub position: u32,
    /// The model's id of the call.
    pub tool_use_id: String,
    /// The tool, as the model spelled it.
    pub name: String,
}

/// See [`Change::Record`].
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The claim.
    pub lease: Lease,
    /// Names this write.
    pub write: WriteId,
    /// The answered turn.
    pub turn: u32,
    /// What came of the call.
    pub result: CallResult,
    /// The call that takes the freed place.
    pub starts: Option<StartedCall>,
}

/// See [`Change::CompleteTurn`].
#[derive(Clone, Debug, PartialEq)]
pub struct Boundary {
    /// The claim.
    pub lease: Lease,
    /// Names this write.
    pub write: WriteId,
    /// The turn that is complete.
    pub turn: u32,
    /// Results that were not recorded before.
    pub results: Vec<CallResult>,
    /// All results of the batch, as one user's message in the order of the calls.
    pub message: NewMessage,
    /// The run's memory after the turn; `None` when it did not change.
    pub memory: Option<StoredMemory>,
    /// What the turn did to the list of todos; `None` when nothing.
    pub todos: Option<Vec<Todo>>,
    /// Whether the holder begins the next turn, or gives the run back here.
    pub then: AfterTurn,
}

/// One item of a run's plan.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Todo {
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
}

/// How far a [`Todo`] is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
}

impl TodoStatus {
    /// Every status.
    pub const ALL: [Self; 3] = [Self::Pending, Self::InProgress, Self::Completed];
}

/// What follows a completed turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AfterTurn {
    /// The same holder begins the next turn.
    GoOn,
    /// The run goes back to the queue, without a wait.
    GiveBack(RequeueReason),
}

/// See [`Change::Retry`].
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// The claim.
    pub lease: Lease,
    /// Names this write.
    pub write: WriteId,
    /// The turn being tried.
    pub turn: u32,
    /// What went wrong.
    pub failed: FailedTry,
}

/// A try of a model call that brought no answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FailedTry {
    /// What kind of failure, for the counters.
    pub kind: TryFailure,
    /// What the try cost, as far as the provider said.
    pub usage: Usage,
    /// Whether deltas of it were shown to anybody.
    pub shown: bool,
}

/// Which counter a failed try is kept on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TryFailure {
    /// The provider failed, or the stream broke.
    Provider,
    /// The answer held nothing.
    Empty,
    /// It was broken off because its process shuts down; it counts on none.
    BrokenOff,
}

/// See [`Change::GiveBack`].
#[derive(Clone, Debug, PartialEq)]
pub struct GiveBack {
    /// The claim.
    pub lease: Lease,
    /// Names this write.
    pub write: WriteId,
    /// Why.
    pub reason: RequeueReason,
    /// How long nobody shall claim it.
    pub delay: Duration,
    /// The try that ended with this, if one did.
    pub failed: Option<FailedTry>,
    /// What closes the open calls of an answered turn, should the run end here because a cancel was
    /// asked for.
    pub closing: Option<Closing>,
}

/// Why a run went back to the queue.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequeueReason {
    /// Its holder fell silent.
    LeaseExpired,
    /// Its process is shutting down.
    Drain,
    /// Its provider asked for a long wait.
    ProviderWait,
    /// Its tenant was suspended.
    TenantSuspended,
    /// Its process found that it holds the run without executing it.
    Orphaned,
}

/// See [`Change::Finish`].
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// The claim.
    pub lease: Lease,
    /// Names this write.
    pub write: WriteId,
    /// How it ends.
    pub outcome: Outcome,
    /// Why the model stopped last, as the API reports it.
    pub stop_reason: Option<StopReason>,
    /// The turn that is completed with this write, if one is.
    pub turn: Option<u32>,
    /// Results that were not recorded before.
    pub results: Vec<CallResult>,
    /// What is appended, in order.
    pub messages: Vec<NewMessage>,
    /// The message that is the run's answer.
    pub final_message_id: Option<MessageId>,
    /// What the answer cost that ends the run; answers before it were counted when they were kept.
    pub usage: Usage,
    /// What the try that ended with this cost, though nothing came of it.
    pub usage_discarded: Usage,
    /// The run's memory at its end; `None` when it did not change.
    pub memory: Option<StoredMemory>,
    /// What the last turn did to the list of todos; `None` when nothing.
    pub todos: Option<Vec<Todo>>,
}

impl End {
    /// An end that completes no turn and says nothing; what there is more is added to it.
    #[must_use]
    pub fn new(lease: Lease, write: WriteId, outcome: Outcome) -> Self {
        Self {
            lease,
            write,
            outcome,
            stop_reason: None,
            turn: None,
            results: Vec::new(),
            messages: Vec::new(),
            final_message_id: None,
            usage: Usage::default(),
            usage_discarded: Usage::default(),
            memory: None,
            todos: None,
        }
    }
}

/// How a holder ends a run. Where a cancel was acknowledged first, the run ends cancelled all the same.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The model finished.
    Succeeded,
    /// It cannot go on.
    Failed(RunError),
    /// A cancel was asked for.
    Cancelled,
}

/// See [`Change::Reclaim`].
#[derive(Clone, Debug, PartialEq)]
pub struct Reclaim {
    /// How many claims of one turn may pass without completing it; 0 for any number.
    pub max_stalled: u32,
    /// Whether the lease must have expired. Only who knows that no other process lives may say no.
    pub expired_only: bool,
    /// What closes the open calls of an answered turn, should the run end here.
    pub closing: Option<Closing>,
}

/// The message and the results that answer a turn's open calls where a run ends without them.
#[derive(Clone, Debug, PartialEq)]
pub struct Closing {
    /// All results of the batch, those that were known included.
    pub message: NewMessage,
    /// The results that were not known.
    pub results: Vec<CallResult>,
}

impl Change {
    /// Whether a store has to say what closes the run's open turn before it applies this: the change may
    /// end the run without its holder.
    #[must_use]
    pub fn needs_closing(&self, run: &Run) -> bool {
        let lacks = matches!(
            self,
            Self::GiveBack(GiveBack { closing: None, .. })
                | Self::Reclaim(Reclaim { closing: None, .. })
                | Self::RequestCancel { closing: None }
        );
        lacks && has_open_answer(run)
    }

    /// Where a store puts what closes the open calls of an answered turn; `None` for changes that never
    /// end a run without its holder.
    pub const fn closing_mut(&mut self) -> Option<&mut Option<Closing>> {
        match self {
            Self::GiveBack(change) => Some(&mut change.closing),
            Self::Reclaim(change) => Some(&mut change.closing),
            Self::RequestCancel { closing } => Some(closing),
            Self::Claim { .. }
            | Self::Renew { .. }
            | Self::Repair(_)
            | Self::Answer(_)
            | Self::Resume(_)
            | Self::Record(_)
            | Self::CompleteTurn(_)
            | Self::Retry(_)
            | Self::Finish(_) => None,
        }
    }
}
