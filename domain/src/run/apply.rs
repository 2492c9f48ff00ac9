//! The one function that decides. `next` has the parts of a change, `changes` what each change is made of.

mod changes;
mod next;

use thiserror::Error;

use super::{Change, Lease, Run, RunState, RunStatus, WriteId};
use crate::event::{Event, EventKind};
use crate::{OwnerId, Timestamp};
use next::Next;

/// A change that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The run after it.
    pub run: Run,
    /// What watchers are told, in order; numbered on from the run's last event.
    pub events: Vec<Event>,
    /// Whether the very same write had been made before. Nothing is to be stored then.
    pub repeated: bool,
}

/// Why a change was refused. Nothing was changed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum TransitionError {
    /// Only a queued run can be claimed.
    #[error("the run is {found}, not queued")]
    NotQueued {
        /// Where it stands instead.
        found: RunStatus,
    },
    /// Only a running run can be reclaimed.
    #[error("the run is {found}, not running")]
    NotRunning {
        /// Where it stands instead.
        found: RunStatus,
    },
    /// The run may not be claimed yet.
    #[error("the run waits until a moment that has not come")]
    NotAvailable {
        /// That moment.
        until: Timestamp,
    },
    /// The lease presented is not the one in force, or ran out before it was renewed.
    #[error("attempt {presented} of owner {owner} does not hold the run any more")]
    LeaseLost {
        /// Who presented it.
        owner: OwnerId,
        /// The attempt it came from.
        presented: u32,
    },
    /// The holder may still renew its lease.
    #[error("the run is held until a moment that has not come")]
    StillHeld {
        /// That moment.
        until: Timestamp,
    },
    /// Turns are completed one after the other.
    #[error("turn {presented} does not follow turn {completed}")]
    TurnOutOfOrder {
        /// Turns completed so far.
        completed: u32,
        /// The turn presented.
        presented: u32,
    },
    /// The turn's answer is, or is not, on record yet.
    #[error("turn {turn} is not at the point where this may happen")]
    WrongPoint {
        /// The turn.
        turn: u32,
    },
    /// The run ended; it never changes again.
    #[error("the run already ended as {found}")]
    AlreadyEnded {
        /// How.
        found: RunStatus,
    },
}

impl Change {
    /// What identifies the write; `None` for changes that need no memory of their repeats.
    #[must_use]
    pub const fn write_id(&self) -> Option<WriteId> {
        match self {
            Self::Repair(change) => Some(change.write),
            Self::Answer(change) => Some(change.write),
            Self::Resume(change) => Some(change.write),
            Self::Record(change) => Some(change.write),
            Self::CompleteTurn(change) => Some(change.write),
            Self::Retry(change) => Some(change.write),
            Self::GiveBack(change) => Some(change.write),
            Self::Finish(change) => Some(change.write),
            Self::Claim { .. }
            | Self::Renew { .. }
            | Self::RequestCancel { .. }
            | Self::Reclaim(_) => None,
        }
    }

    /// The claim presented; `None` for changes that need none.
    #[must_use]
    pub const fn lease(&self) -> Option<Lease> {
        match self {
            Self::Renew { lease, .. } => Some(*lease),
            Self::Repair(change) => Some(change.lease),
            Self::Answer(change) => Some(change.lease),
            Self::Resume(change) => Some(change.lease),
            Self::Record(change) => Some(change.lease),
            Self::CompleteTurn(change) => Some(change.lease),
            Self::Retry(change) => Some(change.lease),
            Self::GiveBack(change) => Some(change.lease),
            Self::Finish(change) => Some(change.lease),
            Self::Claim { .. } | Self::RequestCancel { .. } | Self::Reclaim(_) => None,
        }
    }
}

impl Run {
    /// The run after `change`, were it made at `now` by the store's clock.
    ///
    /// A fenced write that was made before is recognised by its [`WriteId`] before the fence is asked,
    /// and answered as the first was, with nothing to store.
    ///
    /// # Errors
    ///
    /// [`TransitionError`] names the one rule that forbids the change.
    pub fn apply(self, change: &Change, now: Timestamp) -> Result<Applied, TransitionError> {
        let write = change.write_id();
        if write.is_some() && write == self.progress.last_write {
            return Ok(Applied {
                run: self,
                events: Vec::new(),
                repeated: true,
            });
        }
        if let Some(lease) = change.lease() {
            self.check(lease)?;
        }
        let mut next = Next::new(self, now);
        match change {
            Change::Claim { owner, ttl } => next.claim(*owner, *ttl)?,
            Change::Renew { lease, ttl } => next.renew(*lease, *ttl)?,
            Change::Repair(change) => next.repair(change)?,
            Change::Answer(change) => next.answer(change)?,
            Change::Resume(change) => next.resume(change)?,
            Change::Record(change) => next.record(change)?,
            Change::CompleteTurn(change) => next.complete_turn(change)?,
            Change::Retry(change) => next.retry(change)?,
            Change::GiveBack(change) => next.give_back(change),
            Change::Finish(change) => next.finish(change)?,
            Change::RequestCancel { closing } => next.request_cancel(closing.as_ref())?,
            Change::Reclaim(change) => next.reclaim(change)?,
        }
        if write.is_some() {
            next.run.progress.last_write = write;
        }
        Ok(Applied {
            run: next.run,
            events: next.events,
            repeated: false,
        })
    }

    /// The fence: only the claim in force may change the run.
    fn check(&self, lease: Lease) -> Result<(), TransitionError> {
        match &self.state {
            RunState::Running { owner, .. }
                if *owner == lease.owner && self.attempt == lease.attempt =>
            {
                Ok(())
            }
            RunState::Running { .. } | RunState::Queued => Err(lost(lease)),
            RunState::Succeeded { .. } | RunState::Failed { .. } | RunState::Cancelled { .. } => {
                Err(TransitionError::AlreadyEnded {
                    found: self.state.status(),
                })
            }
        }
    }

    /// The lease of the claim in force; `None` unless the run is running.
    #[must_use]
    pub const fn lease(&self) -> Option<Lease> {
        match self.state {
            RunState::Running { owner, .. } => Some(Lease {
                run: self.id,
                owner,
                attempt: self.attempt,
            }),
            RunState::Queued
            | RunState::Succeeded { .. }
            | RunState::Failed { .. }
            | RunState::Cancelled { .. } => None,
        }
    }

    /// When the claim in force ends unless it is renewed; `None` unless the run is running.
    #[must_use]
    pub const fn lease_expires_at(&self) -> Option<Timestamp> {
        match self.state {
            RunState::Running { expires_at, .. } => Some(expires_at),
            RunState::Queued
            | RunState::Succeeded { .. }
            | RunState::Failed { .. }
            | RunState::Cancelled { .. } => None,
        }
    }

    /// The event that goes with the acceptance of this run, which must be as it was accepted.
    #[must_use]
    pub fn accepted(mut self) -> (Self, Event) {
        self.progress.last_event = 1;
        let event = Event {
            run_id: self.id,
            n: 1,
            turn: 0,
            attempt: 0,
            at: self.created_at,
            kind: EventKind::RunQueued,
        };
        (self, event)
    }
}

const fn lost(lease: Lease) -> TransitionError {
    TransitionError::LeaseLost {
        owner: lease.owner,
        presented: lease.attempt,
    }
}
