//! Where a run stands, and how it can end.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{OwnerId, Timestamp};

/// Where a run stands, with exactly the data that standing needs.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RunState {
    /// Waits for a claim.
    Queued,
    /// Held by one attempt until the lease expires.
    Running {
        /// The process that holds it.
        owner: OwnerId,
        /// When the sweep may take it back unless it is renewed.
        expires_at: Timestamp,
    },
    /// The model finished.
    Succeeded {
        /// When it ended.
        at: Timestamp,
    },
    /// It could not be finished.
    Failed {
        /// When it ended.
        at: Timestamp,
        /// Why.
        error: RunError,
    },
    /// Somebody asked for its end.
    Cancelled {
        /// When it ended.
        at: Timestamp,
    },
}

impl RunState {
    /// The state without its data.
    #[must_use]
    pub const fn status(&self) -> RunStatus {
        match self {
            Self::Queued => RunStatus::Queued,
            Self::Running { .. } => RunStatus::Running,
            Self::Succeeded { .. } => RunStatus::Succeeded,
            Self::Failed { .. } => RunStatus::Failed,
            Self::Cancelled { .. } => RunStatus::Cancelled,
        }
    }

    /// When the run ended; `None` while it has not.
    #[must_use]
    pub const fn finished_at(&self) -> Option<Timestamp> {
        match self {
            Self::Queued | Self::Running { .. } => None,
            Self::Succeeded { at } | Self::Failed { at, .. } | Self::Cancelled { at } => Some(*at),
        }
    }

    /// Why the run failed; `None` if it did not.
    #[must_use]
    pub const fn error(&self) -> Option<&RunError> {
        match self {
            Self::Failed { error, .. } => Some(error),
            Self::Queued
            | Self::Running { .. }
            | Self::Succeeded { .. }
            | Self::Cancelled { .. } => None,
        }
    }
}

/// The five words of a run's state, as columns, metrics and the API spell them.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Waits for a claim.
    Queued,
    /// Held by one attempt.
    Running,
    /// Ended well.
    Succeeded,
    /// Ended with an error.
    Failed,
    /// Ended on request.
    Cancelled,
}

impl RunStatus {
    /// Every status, in the order of a run's life.
    pub const ALL: [Self; 5] = [
        Self::Queued,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The word of the HTTP contract and of the stores.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status of that word, `None` for any other.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether a run of this status never changes again.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Queued | Self::Running => false,
            Self::Succeeded | Self::Failed | Self::Cancelled => true,
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a run failed.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct RunError {
    /// For programs.
    pub code: RunErrorCode,
    /// For people; holds no secret.
    pub message: String,
}

impl RunError {
    /// An error of that code.
    #[must_use]
    pub fn new(code: RunErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// The closed list of reasons for which runs fail; documented with the API.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunErrorCode {
    /// The cap on model calls was reached.
    MaxIterations,
    /// The provider stopped in a way that the loop does not resume.
    UnsupportedStop,
    /// The conversation does not fit the model.
    ContextExceeded,
    /// The provider could not be reached, or broke off, after all retries.
    ProviderUnavailable,
    /// The provider refused the credentials.
    ProviderAuth,
    /// The provider refused the request.
    ProviderRejected,
    /// The provider sent something that is not its protocol.
    ProviderProtocol,
    /// The model was cut off inside a tool call three times running.
    Truncated,
    /// The model answered nothing three times running.
    EmptyAnswer,
    /// The run's time was over.
    DeadlineExceeded,
    /// The creator is gone, not active, or no longer allowed on the session.
    CreatorInactive,
    /// The same turn was begun too often without being completed.
    Stalled,
    /// A defect in hango, or stored state that cannot be read.
    Internal,
}

impl RunErrorCode {
    /// Every code.
    pub const ALL: [Self; 13] = [
        Self::MaxIterations,
        Self::UnsupportedStop,
        Self::ContextExceeded,
        Self::ProviderUnavailable,
        Self::ProviderAuth,
        Self::ProviderRejected,
        Self::ProviderProtocol,
        Self::Truncated,
        Self::EmptyAnswer,
        Self::DeadlineExceeded,
        Self::CreatorInactive,
        Self::Stalled,
        Self::Internal,
    ];

    /// The word of the HTTP contract and of the stores.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MaxIterations => "max_iterations",
            Self::UnsupportedStop => "unsupported_stop",
            Self::ContextExceeded => "context_exceeded",
            Self::ProviderUnavailable => "provider_unavailable",
            Self::ProviderAuth => "provider_auth",
            Self::ProviderRejected => "provider_rejected",
            Self::ProviderProtocol => "provider_protocol",
            Self::Truncated => "truncated",
            Self::EmptyAnswer => "empty_answer",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::CreatorInactive => "creator_inactive",
            Self::Stalled => "stalled",
            Self::Internal => "internal",
        }
    }

    /// The code of that word, `None` for any other.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == word)
    }
}
