//! Beginning turns, and what an answer, or a try without one, leads to.

use std::time::Duration;

use super::batch::Batch;
use super::{AfterSave, AgentLoop, MOST_IN_A_ROW, Phase, Step};
use crate::conversation::{NewMessage, Role, StopReason};
use crate::journal;
use crate::model::{ModelFailure, ModelFailureKind, ModelReply};
use crate::retry::NextTry;
use crate::run::{Answer, Change, FailedTry, GiveBack, RequeueReason, Retry, TryFailure};

impl AgentLoop {
    /// The open turn, if there is one, else the next.
    pub(super) fn first(&mut self) -> Step {
        if self.open.is_some() {
            self.resume_batch()
        } else {
            self.next_turn()
        }
    }

    pub(super) fn next_turn(&mut self) -> Step {
        if let Some(reason) = self.give_back {
            return self.give_back(reason, Duration::ZERO, None);
        }
        if self.run.progress.resume_turn >= self.limits.max_iterations {
            return self.end_max_iterations(Vec::new(), Vec::new(), None);
        }
        self.call_model()
    }

    fn call_model(&mut self) -> Step {
        self.phase = Phase::Calling;
        Step::CallModel
    }

    pub(super) fn waited(&mut self) -> Step {
        match self.give_back {
            Some(reason) => self.give_back(reason, Duration::ZERO, None),
            None => self.call_model(),
        }
    }

    /// An answer arrived whole.
    pub(super) fn observe(&mut self, reply: &ModelReply) -> Step {
        let asks = reply
            .content
            .iter()
            .any(|block| block.tool_use_id().is_some());
        if asks {
            self.answered(reply)
        } else if reply.is_empty_answer() {
            self.empty(reply)
        } else {
            self.end_succeeded(reply)
        }
    }

    /// An answer that asks for tools is kept before any of them is executed.
    fn answered(&mut self, reply: &ModelReply) -> Step {
        let turn = self.turn();
        let truncated = reply.stop_reason == StopReason::MaxTokens;
        let invalid = |id: &str| reply.invalid_inputs.get(id).cloned();
        let calls = journal::batch(
            &reply.content,
            invalid,
            truncated,
            self.limits.tool_concurrency,
            &mut self.ids,
        );
        let message = self.assistant(reply);
        self.remember(message.clone());
        let batch = Batch::begin(self.run.id, turn, &calls, truncated);
        let starting = batch.started();
        self.open = Some(batch);
        self.run.progress.answered_turn = turn;
        let answer = Answer {
            lease: self.lease,
            write: self.write_id(),
            turn,
            message,
            calls,
        };
        self.save(Change::Answer(answer), AfterSave::Execute(starting))
    }

    /// An answer without anything in it is not kept; the model is asked again. Where a stop sequence
    /// or a refusal explains it, it is the end all the same.
    fn empty(&mut self, reply: &ModelReply) -> Step {
        match reply.stop_reason {
            StopReason::StopSequence | StopReason::Refusal => self.end_silent(reply),
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::MaxTokens
            | StopReason::PauseTurn => {
                self.run.progress.empty_answers += 1;
                if self.run.progress.empty_answers >= MOST_IN_A_ROW {
                    return self.end_empty(reply);
                }
                let failed = FailedTry {
                    kind: TryFailure::Empty,
                    usage: reply.usage,
                    // Reasoning alone may have been shown.
                    shown: !reply.content.is_empty(),
                };
                self.retry(failed, Duration::ZERO)
            }
        }
    }

    /// A try brought no answer.
    pub(super) fn failed_try(&mut self, failure: ModelFailure, left: Duration) -> Step {
        self.run.progress.tries += 1;
        let jitter = self.jitter();
        let failed = FailedTry {
            kind: TryFailure::Provider,
            usage: failure.usage,
            shown: failure.shown,
        };
        let tries = self.run.progress.tries;
        match self.limits.retry.after(&failure, tries, jitter, left) {
            NextTry::Never => self.end_provider_failed(failure),
            NextTry::Wait(wait) => self.retry(failed, wait),
            NextTry::GiveBack(wait) => {
                self.give_back(RequeueReason::ProviderWait, wait, Some(failed))
            }
        }
    }

    /// The provider must not be called yet: a short wait is spent in the slot and costs nothing, a long
    /// one gives the slot back and counts as a try, so that it cannot go on for ever.
    pub(super) fn blocked(&mut self, wait: Duration, left: Duration) -> Step {
        match self.limits.retry.wait(wait, left) {
            NextTry::Wait(wait) => self.wait(wait),
            NextTry::GiveBack(_) | NextTry::Never => {
                let mut failure = ModelFailure::new(
                    ModelFailureKind::Unavailable,
                    "the provider was not called: it had failed or asked to wait just before",
                );
                failure.retry_after = Some(wait);
                self.failed_try(failure, left)
            }
        }
    }

    fn retry(&mut self, failed: FailedTry, wait: Duration) -> Step {
        let retry = Retry {
            lease: self.lease,
            write: self.write_id(),
            turn: self.turn(),
            failed,
        };
        self.save(Change::Retry(retry), AfterSave::TryAgain(wait))
    }

    pub(super) fn give_back(
        &mut self,
        reason: RequeueReason,
        delay: Duration,
        failed: Option<FailedTry>,
    ) -> Step {
        let change = GiveBack {
            lease: self.lease,
            write: self.write_id(),
            reason,
            delay,
            failed,
            closing: None,
        };
        self.save(Change::GiveBack(change), AfterSave::Done)
    }

    pub(super) fn assistant(&mut self, reply: &ModelReply) -> NewMessage {
        NewMessage {
            id: self.message_id(),
            role: Role::Assistant,
            content: reply.content.clone(),
            stop_reason: Some(reply.stop_reason),
            usage: Some(reply.usage),
            partial: false,
        }
    }

    /// A number between 0 and 1 out of a new id's random bits.
    fn jitter(&mut self) -> f64 {
        let bits = (self.ids)().as_u128() & 0xffff;
        f64::from(u16::try_from(bits).unwrap_or(u16::MAX)) / f64::from(u16::MAX)
    }
}
