//! Why a caller does not get what he asked for, by what he must be answered.

use hango_domain::run::{RunStatus, TransitionError};
use hango_domain::session::LineError;
use hango_ports::StoreFailure;
use hango_ports::agent_store::AgentStoreError;
use hango_ports::identity_store::IdentityStoreError;
use hango_ports::run_store::RunStoreError;
use hango_ports::session_store::SessionStoreError;
use thiserror::Error;

use super::input::Fault;

/// Why a use case did not do what it was asked.
#[derive(Debug, Error)]
pub enum UseCaseError {
    /// What was named does not exist, or not for this caller.
    #[error("not found")]
    NotFound,
    /// The caller sees it, and his role does not allow the action.
    #[error("the caller's role does not allow this")]
    Forbidden,
    /// What was sent is not acceptable.
    #[error("{} fields are not acceptable", .0.len())]
    Invalid(Vec<Fault>),
    /// The tenant, or the server, has something of that slug.
    #[error("the slug is taken")]
    SlugTaken,
    /// The tenant has a user of that address.
    #[error("the address is taken")]
    EmailTaken,
    /// There is a key of that prefix.
    #[error("the prefix is taken")]
    PrefixTaken,
    /// The tenant would be left without an active owner.
    #[error("a tenant keeps one active owner")]
    LastOwner,
    /// The agent takes no new sessions and runs.
    #[error("the agent is archived")]
    AgentArchived,
    /// The agent has another version than the caller thought.
    #[error("the agent has version {found}")]
    VersionMismatch {
        /// The version it has.
        found: u32,
    },
    /// The session has runs that have not ended.
    #[error("the session has {pending} pending runs")]
    SessionBusy {
        /// How many.
        pending: u32,
    },
    /// The session has as many pending runs as it may have.
    #[error("the session has {pending} pending runs, and may have {most}")]
    TooManyQueuedRuns {
        /// How many.
        pending: u32,
        /// The most.
        most: u32,
    },
    /// The run has ended already.
    #[error("the run already ended as {found}")]
    RunEnded {
        /// How.
        found: RunStatus,
    },
    /// The idempotency key was used for a request with another body.
    #[error("the idempotency key was used for a request with another body")]
    IdempotencyKeyReused,
    /// The first request with the idempotency key is not answered yet.
    #[error("the first request with this idempotency key is not answered yet")]
    IdempotencyInFlight,
    /// A store could not do its work.
    #[error(transparent)]
    Failure(#[from] StoreFailure),
    /// A store refused what it never refuses: a defect.
    #[error("a store refused what it never refuses")]
    Defect(#[source] TransitionError),
}

impl From<AgentStoreError> for UseCaseError {
    fn from(error: AgentStoreError) -> Self {
        match error {
            AgentStoreError::NotFound => Self::NotFound,
            AgentStoreError::SlugTaken => Self::SlugTaken,
            AgentStoreError::VersionMismatch { found } => Self::VersionMismatch { found },
            AgentStoreError::Failure(failure) => Self::Failure(failure),
        }
    }
}

impl From<SessionStoreError> for UseCaseError {
    fn from(error: SessionStoreError) -> Self {
        match error {
            // An agent named in a body is looked at before it is stored, so this is its removal since.
            SessionStoreError::NotFound | SessionStoreError::UnknownAgent => Self::NotFound,
            SessionStoreError::AgentArchived => Self::AgentArchived,
            SessionStoreError::Busy { pending } => Self::SessionBusy { pending },
            SessionStoreError::Repeated(repeated) => repeated.into(),
            SessionStoreError::Failure(failure) => Self::Failure(failure),
        }
    }
}

impl From<RunStoreError> for UseCaseError {
    fn from(error: RunStoreError) -> Self {
        match error {
            RunStoreError::NotFound => Self::NotFound,
            RunStoreError::AgentArchived => Self::AgentArchived,
            RunStoreError::Line(LineError::Busy { pending }) => Self::SessionBusy { pending },
            RunStoreError::Line(LineError::Full { pending, most }) => {
                Self::TooManyQueuedRuns { pending, most }
            }
            RunStoreError::Repeated(repeated) => repeated.into(),
            RunStoreError::Refused(TransitionError::AlreadyEnded { found }) => {
                Self::RunEnded { found }
            }
            RunStoreError::Refused(refusal) => Self::Defect(refusal),
            RunStoreError::Failure(failure) => Self::Failure(failure),
        }
    }
}

impl From<IdentityStoreError> for UseCaseError {
    fn from(error: IdentityStoreError) -> Self {
        match error {
            IdentityStoreError::NotFound => Self::NotFound,
            IdentityStoreError::SlugTaken => Self::SlugTaken,
            IdentityStoreError::EmailTaken => Self::EmailTaken,
            IdentityStoreError::PrefixTaken => Self::PrefixTaken,
            IdentityStoreError::Forbidden => Self::Forbidden,
            IdentityStoreError::LastOwner => Self::LastOwner,
            IdentityStoreError::Failure(failure) => Self::Failure(failure),
        }
    }
}
