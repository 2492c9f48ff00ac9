//! What operators are told of the engine's work. Watchers of one run have the `EventSink`.

use std::sync::Arc;
use std::time::Duration;

use hango_domain::OwnerId;
use hango_domain::model::{CallContext, ModelFailure, ModelFailureKind};
use hango_domain::note::Note;
use hango_domain::run::{Lease, RunStatus};

/// Something that happened in the engine.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation {
    /// A claim was asked for and made.
    ClaimWon {
        /// The claim.
        lease: Lease,
        /// How long the run had waited.
        waited: Duration,
    },
    /// A run that was there to be claimed went to somebody else.
    ClaimLost {
        /// Who lost.
        owner: OwnerId,
    },
    /// The sweep took a run back.
    Reclaimed {
        /// The claim it had.
        previous: Lease,
        /// The last completed turn.
        resume_turn: u32,
        /// Where it stands now.
        status: RunStatus,
    },
    /// A claim was found not to be in force any more.
    LeaseLost {
        /// The claim.
        lease: Lease,
    },
    /// A layer reports something.
    Noted {
        /// For which call.
        context: Arc<CallContext>,
        /// What.
        note: Note,
    },
    /// A try of a model call ended.
    ModelCalled {
        /// For which call.
        context: Arc<CallContext>,
        /// How long it took.
        took: Duration,
        /// What went wrong; `None` if it was answered.
        failure: Option<FailedTry>,
    },
    /// A tool call ended.
    ToolCalled {
        /// For which call.
        context: Arc<CallContext>,
        /// The tool.
        tool: String,
        /// How long it took.
        took: Duration,
        /// Whether its result is an error.
        is_error: bool,
    },
    /// A run ended.
    RunEnded {
        /// The claim under which it did.
        lease: Lease,
        /// How.
        status: RunStatus,
    },
}

/// A try of a model call that brought no answer. It holds no content.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FailedTry {
    /// What can be done about it.
    pub kind: ModelFailureKind,
    /// For people: what happened, without secrets.
    pub message: String,
    /// How long the provider asked to wait.
    pub retry_after: Option<Duration>,
    /// Whether deltas of it were shown to anybody, which are void now.
    pub shown: bool,
}

impl From<&ModelFailure> for FailedTry {
    fn from(failure: &ModelFailure) -> Self {
        Self {
            kind: failure.kind,
            message: failure.message.clone(),
            retry_after: failure.retry_after,
            shown: failure.shown,
        }
    }
}

/// Takes observations. Never waits, never fails.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Telemetry: Send + Sync {
    /// Takes one.
    fn observe(&self, what: Observation);
}
