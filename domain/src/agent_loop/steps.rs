//! What passes between the loop and its driver: what it begins with, what it says, what it is told.

use std::collections::BTreeMap;
use std::time::Duration;

use thiserror::Error;
use uuid::Uuid;

use crate::access::Standing;
use crate::conversation::{Block, Message, Usage};
use crate::journal::ToolCall;
use crate::model::{ModelFailure, ModelReply};
use crate::retry::RetryPolicy;
use crate::run::{Change, Lease, Run};
use crate::tool::{Idempotency, ToolResult};

/// What a loop begins, or goes on, with.
pub struct Start<'a> {
    /// The run, as claimed.
    pub run: &'a Run,
    /// The claim.
    pub lease: Lease,
    /// Every message of the session, oldest first, the run's input included.
    pub history: Vec<Message>,
    /// The journal of the answered turn that is not complete; empty when there is none.
    pub calls: Vec<ToolCall>,
    /// The class of every tool there is, by name.
    pub classes: BTreeMap<String, Idempotency>,
    /// What the run may take.
    pub limits: LoopLimits,
    /// New ids, unique and with random low bits.
    pub ids: Box<dyn FnMut() -> Uuid + Send>,
}

/// What a loop may take.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LoopLimits {
    /// Completed turns.
    pub max_iterations: u32,
    /// Calls of one batch that are executed at a time; at least 1.
    pub tool_concurrency: usize,
    /// How a model call is retried.
    pub retry: RetryPolicy,
}

/// What the driver does next.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one step at a time, and a save is the most frequent"
)]
pub enum Step {
    /// Make this durable; report [`Input::Saved`].
    Save(Change),
    /// Ask the model, with [`AgentLoop::messages`](super::AgentLoop::messages); report [`Input::Replied`] or [`Input::Blocked`].
    CallModel,
    /// Wait; report [`Input::Waited`].
    Wait(Duration),
    /// Begin these calls, if any; then report each that ends as [`Input::ToolReturned`].
    Execute(Vec<ToolCall>),
    /// Nothing is left to do: the run has ended, went back to the queue, or belongs to somebody else.
    Done,
}

/// What the driver reports.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Begin, or go on after a resume.
    Begin {
        /// What is true of the run's creator and tenant.
        standing: Standing,
        /// The user's message that the layers want appended before the first model call. Not appended
        /// where an answered turn is open, since nothing may stand between an answer and its results.
        append: Option<Vec<Block>>,
    },
    /// The change is durable.
    Saved {
        /// What is true of the run's creator and tenant.
        standing: Standing,
    },
    /// The model answered, or a try failed.
    Replied {
        /// The answer.
        reply: Result<ModelReply, ModelFailure>,
        /// What is left of the run's time.
        left: Duration,
    },
    /// The provider must not be called yet.
    Blocked {
        /// For how long.
        wait: Duration,
        /// What is left of the run's time.
        left: Duration,
    },
    /// The wait is over.
    Waited,
    /// A call ended.
    ToolReturned {
        /// Its place in the batch.
        position: u32,
        /// What came of it.
        result: ToolResult,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// What was being done was broken off, for this reason.
    Stopped {
        /// Why.
        reason: Stop,
        /// Text and thinking that had arrived from the model.
        partial: Vec<Block>,
        /// What the broken-off call cost, as far as the provider said.
        usage: Usage,
    },
}

impl Input {
    /// What is reported, in words.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Begin { .. } => "a beginning",
            Self::Saved { .. } => "a save",
            Self::Replied { .. } => "a reply",
            Self::Blocked { .. } => "a blocked provider",
            Self::Waited => "the end of a wait",
            Self::ToolReturned { .. } => "a tool's result",
            Self::Stopped { .. } => "a stop",
        }
    }
}

/// Why a driver breaks off what it does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Stop {
    /// The run's end was asked for.
    Cancel,
    /// The run's time is over.
    Deadline,
    /// The process shuts down and does not wait for the boundary.
    Abort,
    /// The run belongs to somebody else now: nothing may be written.
    LeaseLost,
    /// A defect, or stored state that cannot be read.
    Internal(String),
}

/// The input does not answer the step before. A defect of the driver; the loop is as it was.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{got} does not answer the step before")]
pub struct LoopError {
    /// What was reported.
    pub got: &'static str,
}
