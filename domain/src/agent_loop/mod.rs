//! The think–act–observe loop as a machine that is told what happened and says what to do.
//!
//! The driver asks for a [`Step`], performs it, reports an [`Input`], and decides nothing. There is
//! nothing to await here and nothing to mock: a test is a list of inputs, and "a run can be resumed at
//! any point" is a property of [`AgentLoop::new`] and [`AgentLoop::advance`].
//!
//! Whatever the loop wants to be durable is a [`Change`] ready for the store. What a crash must not
//! repeat is saved before it is acted upon: an answer before its tools, a result before the next
//! call, the turn before the next turn.
//!
//! It terminates: every turn needs an answer, answers are capped, and tries that bring none are too.

mod batch;
mod end;
mod steps;
#[cfg(test)]
mod tests;
mod turn;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

pub use steps::{Input, LoopError, LoopLimits, Start, Step, Stop};

use crate::access::Standing;
use crate::conversation::{Block, Message, NewMessage, Usage};
use crate::journal::{self, ToolCall};
use crate::run::{Change, Lease, Repair, RequeueReason, Run, WriteId};
use crate::tool::Idempotency;
use crate::{MessageId, Timestamp};
use batch::Batch;

/// How many answers in a row may be empty, or cut off inside a tool call, before the run fails.
pub const MOST_IN_A_ROW: u32 = 3;

/// One run's loop. See the module.
pub struct AgentLoop {
    lease: Lease,
    run: Run,
    messages: Arc<Vec<Message>>,
    open: Option<Batch>,
    classes: BTreeMap<String, Idempotency>,
    limits: LoopLimits,
    ids: Box<dyn FnMut() -> Uuid + Send>,
    /// Set when the run shall go back to the queue at its next boundary.
    give_back: Option<RequeueReason>,
    phase: Phase,
}

/// Which inputs are answers.
#[derive(Clone, Debug, PartialEq)]
enum Phase {
    /// [`Input::Begin`].
    New,
    /// [`Input::Saved`].
    Saving(AfterSave),
    /// [`Input::Replied`], [`Input::Blocked`].
    Calling,
    /// [`Input::Waited`].
    Waiting,
    /// [`Input::ToolReturned`].
    Executing,
    /// None.
    Done,
}

/// What follows when a change is durable.
#[derive(Clone, Debug, PartialEq)]
enum AfterSave {
    /// The first or the open turn.
    Begin,
    /// These calls begin.
    Execute(Vec<ToolCall>),
    /// The next turn.
    NextTurn,
    /// Another try, after a wait.
    TryAgain(Duration),
    /// Nothing.
    Done,
}

impl AgentLoop {
    /// A loop that goes on where the run stands.
    #[must_use]
    pub fn new(start: Start<'_>) -> Self {
        let Start {
            run,
            lease,
            mut history,
            calls,
            classes,
            limits,
            ids,
        } = start;
        history.retain(|message| !message.partial);
        let open = Batch::reopen(run, &history, calls);
        Self {
            lease,
            run: run.clone(),
            messages: Arc::new(history),
            open,
            classes,
            limits,
            ids,
            give_back: None,
            phase: Phase::New,
        }
    }

    /// The conversation so far, partial messages left out.
    #[must_use]
    pub fn messages(&self) -> Arc<Vec<Message>> {
        Arc::clone(&self.messages)
    }

    /// The history as the layers see it before the run: without an answer whose calls are still open,
    /// which is for the loop to finish and not for them to repair.
    #[must_use]
    pub fn settled_history(&self) -> &[Message] {
        let open = journal::open_answer(&self.run, &self.messages);
        &self.messages[..open.unwrap_or(self.messages.len())]
    }

    /// The turn being executed, counting from 1.
    #[must_use]
    pub const fn turn(&self) -> u32 {
        self.run.progress.resume_turn + 1
    }

    /// Asks for the run to go back to the queue at its next boundary, or at once while it waits for
    /// its next try. The driver breaks that wait off by reporting [`Input::Waited`].
    pub fn give_back_at_boundary(&mut self, reason: RequeueReason) {
        self.give_back.get_or_insert(reason);
    }

    /// Takes in what happened and says what must happen next.
    ///
    /// # Errors
    ///
    /// [`LoopError`] when `input` does not answer the step before.
    pub fn advance(&mut self, input: Input) -> Result<Step, LoopError> {
        match (std::mem::replace(&mut self.phase, Phase::Done), input) {
            (Phase::New, Input::Begin { standing, append }) => Ok(self.begin(standing, append)),
            (Phase::Saving(after), Input::Saved { standing }) => Ok(self.saved(after, standing)),
            (Phase::Calling, Input::Replied { reply, left }) => Ok(match reply {
                Ok(reply) => self.observe(&reply),
                Err(failure) => self.failed_try(failure, left),
            }),
            (Phase::Calling, Input::Blocked { wait, left }) => Ok(self.blocked(wait, left)),
            (Phase::Waiting, Input::Waited) => Ok(self.waited()),
            (
                Phase::Executing,
                Input::ToolReturned {
                    position,
                    result,
                    duration_ms,
                },
            ) if self.executes(position) => Ok(self.tool_returned(position, result, duration_ms)),
            (
                Phase::New | Phase::Calling | Phase::Waiting | Phase::Executing,
                Input::Stopped {
                    reason,
                    partial,
                    usage,
                },
            ) => Ok(self.stopped(&reason, partial, usage)),
            (phase, input) => {
                self.phase = phase;
                Err(LoopError { got: input.name() })
            }
        }
    }

    fn begin(&mut self, standing: Standing, append: Option<Vec<Block>>) -> Step {
        if let Some(end) = self.stand(standing, true) {
            return end;
        }
        match append {
            Some(content) if self.open.is_none() => {
                let message = NewMessage::user(self.message_id(), content);
                self.remember(message.clone());
                let repair = Repair {
                    lease: self.lease,
                    write: self.write_id(),
                    message,
                };
                self.save(Change::Repair(repair), AfterSave::Begin)
            }
            Some(_) | None => self.first(),
        }
    }

    fn saved(&mut self, after: AfterSave, standing: Standing) -> Step {
        if after == AfterSave::Done {
            return self.done();
        }
        let at_boundary = self.open.is_none();
        if let Some(end) = self.stand(standing, at_boundary) {
            return end;
        }
        match after {
            AfterSave::Begin => self.first(),
            AfterSave::Execute(calls) => self.execute(calls),
            AfterSave::NextTurn => self.next_turn(),
            AfterSave::TryAgain(wait) => self.wait(wait),
            AfterSave::Done => self.done(),
        }
    }

    /// Ends the run if what is true of its creator or its cancel request says so. A suspended tenant's
    /// run is given back at its next boundary; a claim is one for the creator, even amid a turn.
    fn stand(&mut self, standing: Standing, at_boundary: bool) -> Option<Step> {
        if standing.cancel_requested {
            return Some(self.stopped(&Stop::Cancel, Vec::new(), Usage::default()));
        }
        if !standing.tenant_active {
            self.give_back_at_boundary(RequeueReason::TenantSuspended);
        }
        (at_boundary && !standing.creator.may_act()).then(|| self.end_creator_inactive())
    }

    fn save(&mut self, change: Change, after: AfterSave) -> Step {
        self.phase = Phase::Saving(after);
        Step::Save(change)
    }

    fn wait(&mut self, wait: Duration) -> Step {
        if let Some(reason) = self.give_back {
            return self.give_back(reason, Duration::ZERO, None);
        }
        self.phase = Phase::Waiting;
        Step::Wait(wait)
    }

    fn executes(&self, position: u32) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|batch| batch.executes(position))
    }

    fn execute(&mut self, calls: Vec<ToolCall>) -> Step {
        if self.open.as_ref().is_none_or(Batch::is_settled) {
            return self.complete_turn();
        }
        self.phase = Phase::Executing;
        Step::Execute(calls)
    }

    fn done(&mut self) -> Step {
        self.phase = Phase::Done;
        Step::Done
    }

    fn write_id(&mut self) -> WriteId {
        WriteId((self.ids)())
    }

    fn message_id(&mut self) -> MessageId {
        MessageId((self.ids)())
    }

    /// Adds a message to the conversation that the model sees, as the store will have it. Its moment is
    /// the store's to know; nobody reads it here.
    fn remember(&mut self, message: NewMessage) {
        let seq = self.messages.last().map_or(0, |last| last.seq) + 1;
        let unknown = Timestamp::from_micros(0);
        let stored = message.stored(self.run.session_id, Some(self.run.id), seq, unknown);
        Arc::make_mut(&mut self.messages).push(stored);
    }
}
