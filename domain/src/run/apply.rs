//! The one function that decides.

use std::time::Duration;

use thiserror::Error;

use super::{
    AfterTurn, Answer, Boundary, Change, Closing, End, FailedTry, GiveBack, Lease, Outcome,
    Reclaim, Record, RequeueReason, Resume, Retry, Run, RunError, RunErrorCode, RunState,
    RunStatus, StartedCall, TryFailure, WriteId,
};
use crate::event::{Event, EventKind};
use crate::journal::{self, CallResult};
use crate::{OwnerId, Timestamp};

/// The longest wait that repeated reclaims put before a run.
const MAX_STALL_DELAY: Duration = Duration::from_mins(5);

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
            Change::Repair(change) => next.tell(EventKind::MessageCompleted {
                message_id: change.message.id,
            }),
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

/// A run being changed, with the events of the change so far.
struct Next {
    run: Run,
    now: Timestamp,
    events: Vec<Event>,
}

impl Next {
    const fn new(run: Run, now: Timestamp) -> Self {
        Self {
            run,
            now,
            events: Vec::new(),
        }
    }

    fn tell(&mut self, kind: EventKind) {
        self.run.progress.last_event += 1;
        self.events.push(Event {
            run_id: self.run.id,
            n: self.run.progress.last_event,
            turn: self.run.progress.begun_turn,
            attempt: self.run.attempt,
            at: self.now,
            kind,
        });
    }

    fn tell_result(&mut self, result: &CallResult) {
        self.tell(EventKind::ToolCompleted {
            position: result.position,
            tool_use_id: result.tool_use_id.clone(),
            name: result.name.clone(),
            is_error: result.result.is_error,
            duration_ms: result.duration_ms,
        });
    }

    fn tell_start(&mut self, call: &StartedCall) {
        self.tell(EventKind::ToolStarted {
            position: call.position,
            tool_use_id: call.tool_use_id.clone(),
            name: call.name.clone(),
        });
    }

    fn tell_closing(&mut self, closing: &Closing) {
        for result in &closing.results {
            self.tell_result(result);
        }
        self.tell(EventKind::MessageCompleted {
            message_id: closing.message.id,
        });
    }

    fn claim(&mut self, owner: OwnerId, ttl: Duration) -> Result<(), TransitionError> {
        if !matches!(self.run.state, RunState::Queued) {
            return Err(TransitionError::NotQueued {
                found: self.run.state.status(),
            });
        }
        if let Some(until) = self.run.available_at.filter(|until| *until > self.now) {
            return Err(TransitionError::NotAvailable { until });
        }
        let first = self.run.attempt == 0;
        self.run.attempt += 1;
        self.run.started_at.get_or_insert(self.now);
        self.run.available_at = None;
        self.run.state = RunState::Running {
            owner,
            expires_at: self.now.plus(ttl),
        };
        self.tell(EventKind::RunStarted);
        if first {
            self.tell(EventKind::MessageCompleted {
                message_id: self.run.input_message_id,
            });
        }
        if !journal::has_open_answer(&self.run) {
            if self.turn_is_begun() {
                self.tell(EventKind::TurnDiscarded);
            }
            self.begin_turn();
        }
        Ok(())
    }

    fn renew(&mut self, lease: Lease, ttl: Duration) -> Result<(), TransitionError> {
        if let RunState::Running { owner, expires_at } = &mut self.run.state {
            if *expires_at <= self.now {
                return Err(lost(lease));
            }
            *owner = lease.owner;
            *expires_at = self.now.plus(ttl);
        }
        Ok(())
    }

    fn answer(&mut self, change: &Answer) -> Result<(), TransitionError> {
        self.follows(change.turn)?;
        self.expect_open_answer(false, change.turn)?;
        self.run.progress.answered_turn = change.turn;
        self.tell(EventKind::MessageCompleted {
            message_id: change.message.id,
        });
        for call in change.calls.iter().filter(|call| call.starts) {
            self.tell_start(&StartedCall {
                position: call.position,
                tool_use_id: call.tool_use_id.clone(),
                name: call.name.clone(),
            });
        }
        Ok(())
    }

    fn resume(&mut self, change: &Resume) -> Result<(), TransitionError> {
        self.follows(change.turn)?;
        self.expect_open_answer(true, change.turn)?;
        for result in &change.in_doubt {
            self.tell_result(result);
        }
        for call in &change.starts {
            self.tell_start(call);
        }
        Ok(())
    }

    fn record(&mut self, change: &Record) -> Result<(), TransitionError> {
        self.follows(change.turn)?;
        self.expect_open_answer(true, change.turn)?;
        self.tell_result(&change.result);
        if let Some(call) = &change.starts {
            self.tell_start(call);
        }
        Ok(())
    }

    fn complete_turn(&mut self, change: &Boundary) -> Result<(), TransitionError> {
        self.follows(change.turn)?;
        self.expect_open_answer(true, change.turn)?;
        for result in &change.results {
            self.tell_result(result);
        }
        self.tell(EventKind::MessageCompleted {
            message_id: change.message.id,
        });
        if let Some(todos) = &change.todos {
            self.tell(EventKind::TodosUpdated {
                todos: todos.clone(),
            });
        }
        if let Some(memory) = &change.memory {
            self.run.memory = memory.clone();
        }
        self.close_turn(change.turn, change.usage);
        match change.then {
            AfterTurn::GoOn => self.begin_turn(),
            AfterTurn::GiveBack(reason) => self.requeue(reason, Duration::ZERO, None),
        }
        Ok(())
    }

    fn retry(&mut self, change: &Retry) -> Result<(), TransitionError> {
        self.follows(change.turn)?;
        self.expect_open_answer(false, change.turn)?;
        self.count(change.failed);
        Ok(())
    }

    fn give_back(&mut self, change: &GiveBack) {
        if let Some(failed) = change.failed {
            self.count(failed);
        }
        self.requeue(change.reason, change.delay, change.closing.as_ref());
    }

    fn finish(&mut self, change: &End) -> Result<(), TransitionError> {
        if let Some(turn) = change.turn {
            self.follows(turn)?;
        }
        for result in &change.results {
            self.tell_result(result);
        }
        for message in &change.messages {
            self.tell(EventKind::MessageCompleted {
                message_id: message.id,
            });
        }
        if let Some(todos) = &change.todos {
            self.tell(EventKind::TodosUpdated {
                todos: todos.clone(),
            });
        }
        if let Some(memory) = &change.memory {
            self.run.memory = memory.clone();
        }
        if let Some(turn) = change.turn {
            self.close_turn(turn, change.usage);
        }
        self.run.usage_discarded += change.usage_discarded;
        self.run.stop_reason = change.stop_reason;
        self.run.final_message_id = change.final_message_id;
        match &change.outcome {
            // Whoever asked for the cancel was told that the run would end so.
            _ if self.run.cancel_requested_at.is_some() => self.end_cancelled(),
            Outcome::Cancelled => self.end_cancelled(),
            Outcome::Succeeded => {
                self.run.state = RunState::Succeeded { at: self.now };
                self.tell(EventKind::RunSucceeded);
            }
            Outcome::Failed(error) => self.end_failed(error.clone()),
        }
        Ok(())
    }

    fn request_cancel(&mut self, closing: Option<&Closing>) -> Result<(), TransitionError> {
        match self.run.state {
            RunState::Queued => {
                self.run.cancel_requested_at.get_or_insert(self.now);
                if let Some(closing) = closing {
                    self.tell_closing(closing);
                }
                self.end_cancelled();
            }
            RunState::Running { .. } => {
                self.run.cancel_requested_at.get_or_insert(self.now);
            }
            RunState::Succeeded { .. } | RunState::Failed { .. } | RunState::Cancelled { .. } => {
                return Err(TransitionError::AlreadyEnded {
                    found: self.run.state.status(),
                });
            }
        }
        Ok(())
    }

    fn reclaim(&mut self, change: &Reclaim) -> Result<(), TransitionError> {
        let RunState::Running { expires_at, .. } = self.run.state else {
            return Err(TransitionError::NotRunning {
                found: self.run.state.status(),
            });
        };
        if change.expired_only && expires_at > self.now {
            return Err(TransitionError::StillHeld { until: expires_at });
        }
        self.run.stalled_attempts += 1;
        let stalled = self.run.stalled_attempts;
        let given_up = change.max_stalled > 0 && stalled >= change.max_stalled;
        if given_up && self.run.cancel_requested_at.is_none() {
            if let Some(closing) = &change.closing {
                self.tell_closing(closing);
            }
            self.end_failed(RunError::new(
                RunErrorCode::Stalled,
                format!(
                    "turn {} was begun {stalled} times and never completed; each time the process \
                     that executed it fell silent",
                    self.run.progress.begun_turn
                ),
            ));
        } else {
            self.requeue(
                RequeueReason::LeaseExpired,
                stall_delay(stalled),
                change.closing.as_ref(),
            );
        }
        Ok(())
    }

    /// Puts the run back, or ends it where a cancel was asked for.
    fn requeue(&mut self, reason: RequeueReason, delay: Duration, closing: Option<&Closing>) {
        if self.run.cancel_requested_at.is_some() {
            if let Some(closing) = closing {
                self.tell_closing(closing);
            }
            self.end_cancelled();
        } else {
            self.run.state = RunState::Queued;
            self.run.available_at = (!delay.is_zero()).then(|| self.now.plus(delay));
            self.tell(EventKind::RunRequeued { reason });
        }
    }

    fn end_cancelled(&mut self) {
        self.run.state = RunState::Cancelled { at: self.now };
        self.tell(EventKind::RunCancelled);
    }

    fn end_failed(&mut self, error: RunError) {
        self.run.state = RunState::Failed {
            at: self.now,
            error: error.clone(),
        };
        self.tell(EventKind::RunFailed { error });
    }

    const fn turn_is_begun(&self) -> bool {
        self.run.progress.begun_turn > self.run.progress.resume_turn
    }

    fn begin_turn(&mut self) {
        self.run.progress.begun_turn = self.run.progress.resume_turn + 1;
        self.tell(EventKind::TurnStarted);
    }

    fn close_turn(&mut self, turn: u32, usage: crate::conversation::Usage) {
        self.run.progress.resume_turn = turn;
        self.run.progress.answered_turn = turn;
        self.run.progress.tries = 0;
        self.run.progress.empty_answers = 0;
        self.run.stalled_attempts = 0;
        self.run.iterations += 1;
        self.run.usage += usage;
        self.tell(EventKind::TurnCompleted {
            usage: self.run.usage,
        });
    }

    fn count(&mut self, failed: FailedTry) {
        self.run.usage_discarded += failed.usage;
        match failed.kind {
            TryFailure::Provider => self.run.progress.tries += 1,
            TryFailure::Empty => self.run.progress.empty_answers += 1,
        }
        if failed.shown {
            self.tell(EventKind::TurnDiscarded);
        }
    }

    const fn follows(&self, turn: u32) -> Result<(), TransitionError> {
        let completed = self.run.progress.resume_turn;
        if turn == completed + 1 {
            Ok(())
        } else {
            Err(TransitionError::TurnOutOfOrder {
                completed,
                presented: turn,
            })
        }
    }

    fn expect_open_answer(&self, open: bool, turn: u32) -> Result<(), TransitionError> {
        if journal::has_open_answer(&self.run) == open {
            Ok(())
        } else {
            Err(TransitionError::WrongPoint { turn })
        }
    }
}

const fn lost(lease: Lease) -> TransitionError {
    TransitionError::LeaseLost {
        owner: lease.owner,
        presented: lease.attempt,
    }
}

/// The wait after the `stalled`-th reclaim in a row: none after the first, then doubling.
fn stall_delay(stalled: u32) -> Duration {
    match stalled.checked_sub(2) {
        None => Duration::ZERO,
        Some(doublings) => Duration::from_secs(1)
            .saturating_mul(2_u32.saturating_pow(doublings.min(16)))
            .min(MAX_STALL_DELAY),
    }
}
