//! The life of a run as data: what [`Run::apply`](super::Run::apply) decides, one row for each way a
//! state can change, for readers, documents and tests.

use super::{Change, RunStatus};

/// A [`Change`] without its data.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ChangeKind {
    /// [`Change::Claim`].
    Claim,
    /// [`Change::Renew`].
    Renew,
    /// [`Change::Repair`].
    Repair,
    /// [`Change::Answer`].
    Answer,
    /// [`Change::Resume`].
    Resume,
    /// [`Change::Record`].
    Record,
    /// [`Change::CompleteTurn`].
    CompleteTurn,
    /// [`Change::Retry`].
    Retry,
    /// [`Change::GiveBack`].
    GiveBack,
    /// [`Change::Finish`].
    Finish,
    /// [`Change::RequestCancel`].
    RequestCancel,
    /// [`Change::Reclaim`].
    Reclaim,
}

/// Every kind of change.
pub const CHANGES: [ChangeKind; 12] = [
    ChangeKind::Claim,
    ChangeKind::Renew,
    ChangeKind::Repair,
    ChangeKind::Answer,
    ChangeKind::Resume,
    ChangeKind::Record,
    ChangeKind::CompleteTurn,
    ChangeKind::Retry,
    ChangeKind::GiveBack,
    ChangeKind::Finish,
    ChangeKind::RequestCancel,
    ChangeKind::Reclaim,
];

impl Change {
    /// Which kind of change this is.
    #[must_use]
    pub const fn kind(&self) -> ChangeKind {
        match self {
            Self::Claim { .. } => ChangeKind::Claim,
            Self::Renew { .. } => ChangeKind::Renew,
            Self::Repair(_) => ChangeKind::Repair,
            Self::Answer(_) => ChangeKind::Answer,
            Self::Resume(_) => ChangeKind::Resume,
            Self::Record(_) => ChangeKind::Record,
            Self::CompleteTurn(_) => ChangeKind::CompleteTurn,
            Self::Retry(_) => ChangeKind::Retry,
            Self::GiveBack(_) => ChangeKind::GiveBack,
            Self::Finish(_) => ChangeKind::Finish,
            Self::RequestCancel { .. } => ChangeKind::RequestCancel,
            Self::Reclaim(_) => ChangeKind::Reclaim,
        }
    }
}

/// One legal way from a state to a state.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Transition {
    /// Where the run stands.
    pub from: RunStatus,
    /// What is done.
    pub change: ChangeKind,
    /// Where it stands then.
    pub to: RunStatus,
}

const fn row(from: RunStatus, change: ChangeKind, to: RunStatus) -> Transition {
    Transition { from, change, to }
}

use ChangeKind as C;
use RunStatus as S;

/// Every legal way. Whatever is not here is refused.
pub const TRANSITIONS: [Transition; 20] = [
    row(S::Queued, C::Claim, S::Running),
    row(S::Queued, C::RequestCancel, S::Cancelled),
    // By the claim's holder, while its claim holds.
    row(S::Running, C::Renew, S::Running),
    row(S::Running, C::Repair, S::Running),
    row(S::Running, C::Answer, S::Running),
    row(S::Running, C::Resume, S::Running),
    row(S::Running, C::Record, S::Running),
    row(S::Running, C::Retry, S::Running),
    row(S::Running, C::CompleteTurn, S::Running),
    // Given back at the boundary; ended there if a cancel was asked for.
    row(S::Running, C::CompleteTurn, S::Queued),
    row(S::Running, C::CompleteTurn, S::Cancelled),
    row(S::Running, C::GiveBack, S::Queued),
    row(S::Running, C::GiveBack, S::Cancelled),
    row(S::Running, C::Finish, S::Succeeded),
    row(S::Running, C::Finish, S::Failed),
    row(S::Running, C::Finish, S::Cancelled),
    // By anybody.
    row(S::Running, C::RequestCancel, S::Running),
    // By the sweep: requeued, cancelled if that was asked for, failed if it stalled too often.
    row(S::Running, C::Reclaim, S::Queued),
    row(S::Running, C::Reclaim, S::Cancelled),
    row(S::Running, C::Reclaim, S::Failed),
];
