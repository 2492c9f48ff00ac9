//! What each change does to a run, and when it is refused.

use std::time::Duration;

use super::next::Next;
use super::{TransitionError, lost};
use crate::event::EventKind;
use crate::journal;
use crate::run::{
    AfterTurn, Answer, Boundary, Closing, End, GiveBack, Lease, Outcome, Reclaim, Record, Repair,
    RequeueReason, Resume, Retry, RunError, RunErrorCode, RunState, StartedCall,
};
use crate::{OwnerId, RunId};

/// The longest wait that repeated reclaims put before a run.
const MAX_STALL_DELAY: Duration = Duration::from_mins(5);

impl Next {
    pub(super) fn claim(&mut self, owner: OwnerId, ttl: Duration) -> Result<(), TransitionError> {
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
        let expires_at = self.now.plus(ttl);
        self.run.state = RunState::Running { owner, expires_at };
        self.tell(EventKind::RunStarted {
            owner: Some(owner),
            lease_expires_at: Some(expires_at),
        });
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

    pub(super) fn renew(&mut self, lease: Lease, ttl: Duration) -> Result<(), TransitionError> {
        if let RunState::Running { owner, expires_at } = &mut self.run.state {
            if *expires_at <= self.now {
                return Err(lost(lease));
            }
            *owner = lease.owner;
            *expires_at = self.now.plus(ttl);
        }
        Ok(())
    }

    /// Nothing may stand between an answer and its results.
    pub(super) fn repair(&mut self, change: &Repair) -> Result<(), TransitionError> {
        self.expect_open_answer(false, self.run.progress.resume_turn + 1)?;
        self.tell(EventKind::MessageCompleted {
            message_id: change.message.id,
        });
        Ok(())
    }

    pub(super) fn answer(&mut self, change: &Answer) -> Result<(), TransitionError> {
        self.follows(change.turn)?;
        self.expect_open_answer(false, change.turn)?;
        self.run.progress.answered_turn = change.turn;
        // Paid for whatever becomes of the turn.
        self.run.usage += change.message.usage.unwrap_or_default();
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

    pub(super) fn resume(&mut self, change: &Resume) -> Result<(), TransitionError> {
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

    pub(super) fn record(&mut self, change: &Record) -> Result<(), TransitionError> {
        self.follows(change.turn)?;
        self.expect_open_answer(true, change.turn)?;
        self.tell_result(&change.result);
        if let Some(call) = &change.starts {
            self.tell_start(call);
        }
        Ok(())
    }

    pub(super) fn complete_turn(&mut self, change: &Boundary) -> Result<(), TransitionError> {
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
        self.close_turn(change.turn);
        match change.then {
            AfterTurn::GoOn => self.begin_turn(),
            AfterTurn::GiveBack(reason) => self.requeue(reason, Duration::ZERO, None),
        }
        Ok(())
    }

    pub(super) fn retry(&mut self, change: &Retry) -> Result<(), TransitionError> {
        self.follows(change.turn)?;
        self.expect_open_answer(false, change.turn)?;
        self.count(change.failed);
        Ok(())
    }

    pub(super) fn give_back(&mut self, change: &GiveBack) {
        if let Some(failed) = change.failed {
            self.count(failed);
        }
        self.requeue(change.reason, change.delay, change.closing.as_ref());
    }

    pub(super) fn finish(&mut self, change: &End) -> Result<(), TransitionError> {
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
        self.run.usage += change.usage;
        if let Some(turn) = change.turn {
            self.close_turn(turn);
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

    pub(super) fn request_cancel(
        &mut self,
        closing: Option<&Closing>,
    ) -> Result<(), TransitionError> {
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

    pub(super) fn reclaim(&mut self, change: &Reclaim) -> Result<(), TransitionError> {
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
                stall_delay(stalled, self.run.id),
                change.closing.as_ref(),
            );
        }
        Ok(())
    }
}

/// The wait after the `stalled`-th reclaim in a row: none after the first, then doubling, and longer by a
/// share of it that is the run's own. Runs that one fault hit come back apart, so that those that did
/// no harm do not meet the one that did it again and again.
fn stall_delay(stalled: u32, run: RunId) -> Duration {
    let Some(doublings) = stalled.checked_sub(2) else {
        return Duration::ZERO;
    };
    let least = Duration::from_secs(1).saturating_mul(2_u32.saturating_pow(doublings.min(16)));
    // The end of an id is random.
    let [.., high, low] = run.0.into_bytes();
    let share = u32::from(u16::from_be_bytes([high, low]));
    (least + least * share / 65_536).min(MAX_STALL_DELAY)
}
