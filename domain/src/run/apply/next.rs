//! A run being changed: the steps that changes have in common.

use std::time::Duration;

use super::TransitionError;
use crate::Timestamp;
use crate::event::{Event, EventKind};
use crate::journal::{self, CallResult};
use crate::run::{
    Closing, FailedTry, RequeueReason, Run, RunError, RunState, StartedCall, TryFailure,
};

/// A run being changed, with the events of the change so far.
pub(super) struct Next {
    pub(super) run: Run,
    pub(super) now: Timestamp,
    pub(super) events: Vec<Event>,
}

impl Next {
    pub(super) const fn new(run: Run, now: Timestamp) -> Self {
        Self {
            run,
            now,
            events: Vec::new(),
        }
    }

    pub(super) fn tell(&mut self, kind: EventKind) {
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

    pub(super) fn tell_result(&mut self, result: &CallResult) {
        self.tell(EventKind::ToolCompleted {
            position: result.position,
            tool_use_id: result.tool_use_id.clone(),
            name: result.name.clone(),
            is_error: result.result.is_error,
            duration_ms: result.duration_ms,
        });
    }

    pub(super) fn tell_start(&mut self, call: &StartedCall) {
        self.tell(EventKind::ToolStarted {
            position: call.position,
            tool_use_id: call.tool_use_id.clone(),
            name: call.name.clone(),
        });
    }

    pub(super) fn tell_closing(&mut self, closing: &Closing) {
        for result in &closing.results {
            self.tell_result(result);
        }
        self.tell(EventKind::MessageCompleted {
            message_id: closing.message.id,
        });
    }

    /// Puts the run back, or ends it where a cancel was asked for.
    pub(super) fn requeue(
        &mut self,
        reason: RequeueReason,
        delay: Duration,
        closing: Option<&Closing>,
    ) {
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

    pub(super) fn end_cancelled(&mut self) {
        self.run.state = RunState::Cancelled { at: self.now };
        self.tell(EventKind::RunCancelled);
    }

    pub(super) fn end_failed(&mut self, error: RunError) {
        self.run.state = RunState::Failed {
            at: self.now,
            error: error.clone(),
        };
        self.tell(EventKind::RunFailed { error });
    }

    pub(super) const fn turn_is_begun(&self) -> bool {
        self.run.progress.begun_turn > self.run.progress.resume_turn
    }

    pub(super) fn begin_turn(&mut self) {
        self.run.progress.begun_turn = self.run.progress.resume_turn + 1;
        self.tell(EventKind::TurnStarted);
    }

    pub(super) fn close_turn(&mut self, turn: u32) {
        self.run.progress.resume_turn = turn;
        self.run.progress.answered_turn = turn;
        self.run.progress.tries = 0;
        self.run.progress.empty_answers = 0;
        self.run.stalled_attempts = 0;
        self.run.iterations += 1;
        self.tell(EventKind::TurnCompleted {
            usage: self.run.usage,
        });
    }

    pub(super) fn count(&mut self, failed: FailedTry) {
        self.run.usage_discarded += failed.usage;
        match failed.kind {
            TryFailure::Provider => self.run.progress.tries += 1,
            TryFailure::Empty => self.run.progress.empty_answers += 1,
            TryFailure::BrokenOff => {}
        }
        if failed.shown {
            self.tell(EventKind::TurnDiscarded);
        }
    }

    pub(super) const fn follows(&self, turn: u32) -> Result<(), TransitionError> {
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

    pub(super) fn expect_open_answer(&self, open: bool, turn: u32) -> Result<(), TransitionError> {
        if journal::has_open_answer(&self.run) == open {
            Ok(())
        } else {
            Err(TransitionError::WrongPoint { turn })
        }
    }
}
