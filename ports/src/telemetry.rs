//! What operators are told of the engine's work. Watchers of one run have the `EventSink`.
//!
//! An observation is told when it is over, with its beginning and its end, so that nobody has to remember
//! what began. Moments of a run are by its store's clock: its claim's, and what has passed since.

mod error_type;
mod facts;
mod page;

use std::sync::Arc;
use std::time::Duration;

use hango_domain::model::{CallContext, FailureCause, ModelFailure, ModelFailureKind};
use hango_domain::note::Note;
use hango_domain::queue::Census;
use hango_domain::run::{Lease, RunStatus};
use hango_domain::{OwnerId, RunId};

pub use error_type::ErrorType;
pub use facts::{
    HooksRan, Interval, Life, ModelContent, ModelTry, RequestServed, RequestTrace, RunContent,
    RunEnd, RunFacts, TodoCounts, ToolContent, ToolFacts, TurnEnd,
};
pub use page::{MetricsPage, MetricsUnavailable};

/// Something that happened in the engine, or at the API.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation {
    /// What waits and what runs now, in the whole store; told now and then, by every process.
    Census(Census),
    /// How much this process does now; told with it, or alone while the store fails.
    Workers {
        /// Runs that it executes.
        busy: usize,
        /// Runs that it executes at most.
        limit: usize,
    },
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
    /// The layers prepared a run, or prepared it again.
    HooksRan(Box<HooksRan>),
    /// A layer reports something.
    Noted {
        /// For which call.
        context: Arc<CallContext>,
        /// What.
        note: Note,
    },
    /// A provider was asked once. A model call that a layer repeats is asked more than once.
    ModelTried(Box<ModelTry>),
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
        /// All there is to know of it, where somebody [wants](Wants) that.
        facts: Option<Box<ToolFacts>>,
    },
    /// A call was settled without a result of its own: it never was made, was broken off, or nobody knows
    /// what came of it.
    ToolSettled(Box<ToolFacts>),
    /// A turn is over in this attempt, completed or not.
    TurnEnded(Box<TurnEnd>),
    /// A run ended.
    RunEnded {
        /// The run.
        run: RunId,
        /// How.
        status: RunStatus,
        /// All there is to know of it, where somebody [wants](Wants) that.
        end: Option<Box<RunEnd>>,
    },
    /// A request was answered.
    RequestServed(Box<RequestServed>),
}

impl Observation {
    /// It as it is told to who wants no facts; `None` if it is nothing else.
    #[must_use]
    pub fn without_facts(&self) -> Option<Self> {
        Some(match self {
            Self::HooksRan(_)
            | Self::ModelTried(_)
            | Self::ToolSettled(_)
            | Self::TurnEnded(_)
            | Self::RequestServed(_) => return None,
            Self::ToolCalled {
                context,
                tool,
                took,
                is_error,
                facts: _,
            } => Self::ToolCalled {
                context: Arc::clone(context),
                tool: tool.clone(),
                took: *took,
                is_error: *is_error,
                facts: None,
            },
            Self::RunEnded {
                run,
                status,
                end: _,
            } => Self::RunEnded {
                run: *run,
                status: *status,
                end: None,
            },
            Self::Census(_)
            | Self::Workers { .. }
            | Self::ClaimWon { .. }
            | Self::ClaimLost { .. }
            | Self::Reclaimed { .. }
            | Self::LeaseLost { .. }
            | Self::Noted { .. }
            | Self::ModelCalled { .. } => self.clone(),
        })
    }
}

impl Observation {
    /// It as it is told to who wants that; `None` if it is nothing to him.
    #[must_use]
    pub fn as_wanted(&self, wants: Wants) -> Option<Self> {
        if !wants.facts {
            return self.without_facts();
        }
        if wants.content {
            return Some(self.clone());
        }
        Some(match self {
            Self::ModelTried(made) => Self::ModelTried(Box::new(made.without_content())),
            Self::ToolSettled(call) => Self::ToolSettled(Box::new(call.without_content())),
            Self::ToolCalled {
                context,
                tool,
                took,
                is_error,
                facts,
            } => Self::ToolCalled {
                context: Arc::clone(context),
                tool: tool.clone(),
                took: *took,
                is_error: *is_error,
                facts: facts.as_ref().map(|it| Box::new(it.without_content())),
            },
            Self::RunEnded { run, status, end } => Self::RunEnded {
                run: *run,
                status: *status,
                end: end.as_ref().map(|it| Box::new(it.without_content())),
            },
            Self::Census(_)
            | Self::Workers { .. }
            | Self::ClaimWon { .. }
            | Self::ClaimLost { .. }
            | Self::Reclaimed { .. }
            | Self::LeaseLost { .. }
            | Self::HooksRan(_)
            | Self::Noted { .. }
            | Self::ModelCalled { .. }
            | Self::TurnEnded(_)
            | Self::RequestServed(_) => self.clone(),
        })
    }
}

/// A try of a model call that brought no answer. It holds no content.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FailedTry {
    /// What can be done about it.
    pub kind: ModelFailureKind,
    /// What it is called where failures are counted. What the provider said of it, which may repeat what it was
    /// asked, is in the run's error.
    pub cause: FailureCause,
    /// How long the provider asked to wait.
    pub retry_after: Option<Duration>,
    /// Whether deltas of it were shown to anybody, which are void now.
    pub shown: bool,
}

impl From<&ModelFailure> for FailedTry {
    fn from(failure: &ModelFailure) -> Self {
        Self {
            kind: failure.kind,
            cause: failure.cause,
            retry_after: failure.retry_after,
            shown: failure.shown,
        }
    }
}

/// What somebody makes use of: nothing else is collected.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Wants {
    /// All there is to know of runs, turns and calls, but for what people and models said.
    pub facts: bool,
    /// What they said, besides.
    pub content: bool,
}

impl Wants {
    /// What either of two makes use of.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            facts: self.facts || other.facts,
            content: self.content || other.content,
        }
    }
}

/// Takes observations. Never waits, never fails.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Telemetry: Send + Sync {
    /// Takes one.
    fn observe(&self, what: Observation);

    /// What it makes use of besides what every observation holds; always the same.
    fn wants(&self) -> Wants {
        Wants::default()
    }
}

/// Tells two of everything that they want to know.
pub struct Both<A, B>(pub A, pub B);

impl<A, B> Telemetry for Both<A, B>
where
    A: Telemetry,
    B: Telemetry,
{
    fn observe(&self, what: Observation) {
        if let Some(first) = what.as_wanted(self.0.wants()) {
            self.0.observe(first);
        }
        let wants = self.1.wants();
        if wants.facts && wants.content {
            self.1.observe(what);
        } else if let Some(second) = what.as_wanted(wants) {
            self.1.observe(second);
        }
    }

    fn wants(&self) -> Wants {
        self.0.wants().or(self.1.wants())
    }
}

impl<T: Telemetry + ?Sized> Telemetry for Arc<T> {
    fn observe(&self, what: Observation) {
        (**self).observe(what);
    }

    fn wants(&self) -> Wants {
        (**self).wants()
    }
}
