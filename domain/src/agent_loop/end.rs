//! The ways a run ends, each in one write that leaves a history the next run can go on from.

use std::time::Duration;

use super::batch::Batch;
use super::{AfterSave, AgentLoop, MOST_IN_A_ROW, Step, Stop};
use crate::conversation::{Block, NewMessage, Role, StopReason, Usage};
use crate::journal::{self, CallResult};
use crate::model::{ModelFailure, ModelFailureKind, ModelReply};
use crate::run::{
    Change, End, FailedTry, Outcome, RequeueReason, RunError, RunErrorCode, TryFailure,
};

impl AgentLoop {
    pub(super) fn end_succeeded(&mut self, reply: &ModelReply) -> Step {
        let message = self.assistant(reply);
        let turn = self.turn();
        let end = self.end(Outcome::Succeeded);
        self.finish(End {
            stop_reason: Some(reply.stop_reason),
            turn: Some(turn),
            final_message_id: Some(message.id),
            messages: vec![message],
            usage: reply.usage,
            ..end
        })
    }

    /// An end with nothing to keep.
    pub(super) fn end_silent(&mut self, reply: &ModelReply) -> Step {
        let turn = self.turn();
        let end = self.end(Outcome::Succeeded);
        self.finish(End {
            stop_reason: Some(reply.stop_reason),
            turn: Some(turn),
            usage: reply.usage,
            ..end
        })
    }

    pub(super) fn end_empty(&mut self, reply: &ModelReply) -> Step {
        let error = RunError::new(
            RunErrorCode::EmptyAnswer,
            format!("the model answered nothing {MOST_IN_A_ROW} times in a row"),
        );
        let end = self.end(Outcome::Failed(error));
        self.finish(End {
            stop_reason: Some(reply.stop_reason),
            usage_discarded: reply.usage,
            ..end
        })
    }

    pub(super) fn end_truncated(
        &mut self,
        results: Vec<CallResult>,
        message: NewMessage,
        turn: u32,
    ) -> Step {
        let error = RunError::new(
            RunErrorCode::Truncated,
            format!(
                "the model was cut off inside a tool call {MOST_IN_A_ROW} times in a row; raise the \
                 agent's max_tokens, or ask for smaller steps"
            ),
        );
        let end = self.end(Outcome::Failed(error));
        self.finish(End {
            stop_reason: Some(StopReason::MaxTokens),
            turn: Some(turn),
            results,
            messages: vec![message],
            ..end
        })
    }

    /// The cap: the last answer's tools have run, and a text explains the end.
    pub(super) fn end_max_iterations(
        &mut self,
        results: Vec<CallResult>,
        mut messages: Vec<NewMessage>,
        turn: Option<u32>,
    ) -> Step {
        let most = self.limits.max_iterations;
        let explanation = NewMessage {
            id: self.message_id(),
            role: Role::Assistant,
            content: vec![Block::text(format!(
                "I stopped here: this run reached its limit of model calls, which is {most}, without \
                 coming to an end. What was done so far is in this conversation; another run can go on \
                 from it."
            ))],
            stop_reason: Some(StopReason::EndTurn),
            usage: None,
            partial: false,
        };
        let error = RunError::new(
            RunErrorCode::MaxIterations,
            format!("the run reached its limit of model calls, which is {most}"),
        );
        let final_message_id = Some(explanation.id);
        messages.push(explanation);
        let end = self.end(Outcome::Failed(error));
        self.finish(End {
            stop_reason: Some(StopReason::ToolUse),
            turn,
            results,
            messages,
            final_message_id,
            ..end
        })
    }

    pub(super) fn end_provider_failed(&mut self, failure: ModelFailure) -> Step {
        let code = match failure.kind {
            ModelFailureKind::Unavailable => RunErrorCode::ProviderUnavailable,
            ModelFailureKind::Auth => RunErrorCode::ProviderAuth,
            ModelFailureKind::Rejected => RunErrorCode::ProviderRejected,
            ModelFailureKind::Protocol => RunErrorCode::ProviderProtocol,
            ModelFailureKind::ContextExceeded => RunErrorCode::ContextExceeded,
            ModelFailureKind::UnsupportedStop => RunErrorCode::UnsupportedStop,
        };
        let messages = self.partial(failure.partial);
        let end = self.end(Outcome::Failed(RunError::new(code, failure.message)));
        self.finish(End {
            stop_reason: failure.stop_reason,
            messages,
            usage_discarded: failure.usage,
            ..end
        })
    }

    pub(super) fn end_creator_inactive(&mut self) -> Step {
        let error = RunError::new(
            RunErrorCode::CreatorInactive,
            "the user in whose name the run executes is gone, not active, or no longer allowed on its \
             session",
        );
        let end = self.end(Outcome::Failed(error));
        self.finish_open(end)
    }

    pub(super) fn end_internal(&mut self, what: &str) -> Step {
        self.stopped(
            &Stop::Internal(what.to_owned()),
            Vec::new(),
            Usage::default(),
        )
    }

    /// What was being done was broken off: open calls are answered, what a stream had brought is kept
    /// for people.
    pub(super) fn stopped(&mut self, reason: &Stop, partial: Vec<Block>, usage: Usage) -> Step {
        let outcome = match reason {
            Stop::LeaseLost => return self.done(),
            Stop::Abort => {
                let failed = FailedTry {
                    kind: TryFailure::BrokenOff,
                    usage,
                    // The next claim discards what was shown.
                    shown: false,
                };
                return self.give_back(RequeueReason::Drain, Duration::ZERO, Some(failed));
            }
            Stop::Cancel => Outcome::Cancelled,
            Stop::Deadline => Outcome::Failed(RunError::new(
                RunErrorCode::DeadlineExceeded,
                "the run took longer than it may",
            )),
            Stop::Internal(_) => Outcome::Failed(RunError::new(
                RunErrorCode::Internal,
                "something in hango failed; the log has the details, by this run's id",
            )),
        };
        let end = End {
            messages: self.partial(partial),
            usage_discarded: usage,
            ..self.end(outcome)
        };
        self.finish_open(end)
    }

    /// Ends the run wherever it is: an answered turn that is open is closed with it.
    fn finish_open(&mut self, end: End) -> Step {
        let end = match self.open.take() {
            Some(batch) => self.close(end, batch),
            None => end,
        };
        self.finish(end)
    }

    /// Answers the open calls with `end`, as a store does where nobody holds the run: results that are
    /// known stay, the other calls are in doubt or were never executed. The turn was not completed.
    fn close(&mut self, end: End, batch: Batch) -> End {
        let Batch {
            calls, unrecorded, ..
        } = batch;
        let closing = journal::close(&calls, self.message_id());
        let mut results = unrecorded;
        results.extend(closing.results);
        End {
            results,
            messages: vec![closing.message],
            ..end
        }
    }

    fn partial(&mut self, content: Vec<Block>) -> Vec<NewMessage> {
        if content.is_empty() {
            return Vec::new();
        }
        vec![NewMessage {
            id: self.message_id(),
            role: Role::Assistant,
            content,
            stop_reason: None,
            usage: None,
            partial: true,
        }]
    }

    fn end(&mut self, outcome: Outcome) -> End {
        End::new(self.lease, self.write_id(), outcome)
    }

    fn finish(&mut self, end: End) -> Step {
        self.save(Change::Finish(end), AfterSave::Done)
    }
}
