//! The calls of one execution. A call that is dropped before it is over was broken off, and says so.

use std::sync::Arc;

use hango_domain::Timestamp;
use hango_domain::conversation::Usage;
use hango_domain::journal::CallResult;
use hango_domain::middleware::ToolRequest;
use hango_domain::model::{
    AnswerNames, CallContext, ModelCall, ModelFailure, ModelReply, StreamEvent,
};
use hango_domain::run::Change;
use hango_domain::tool::{ToolFailure, ToolResult};
use hango_ports::Provider;
use hango_ports::telemetry::{
    ErrorType, Interval, ModelContent, ModelTry, Observation, ToolContent, ToolFacts,
};

use super::Account;

/// A model call while it is made.
pub(in crate::engine) struct Asking {
    account: Arc<Account>,
    /// Taken when it is told.
    made: Option<Box<ModelTry>>,
}

/// A tool call while it is made.
pub(in crate::engine) struct Calling {
    account: Arc<Account>,
    /// Taken when it is told.
    made: Option<Box<ToolFacts>>,
}

impl Account {
    /// A provider is asked.
    pub(in crate::engine) fn asking(
        self: &Arc<Self>,
        call: &ModelCall,
        provider: &dyn Provider,
    ) -> Asking {
        let begun = self.now();
        let mut state = self.lock();
        state.asked = state.asked.saturating_add(1);
        if let Some(turn) = &mut state.turn {
            turn.called = true;
        }
        drop(state);
        let content = self.wants.content.then(|| ModelContent {
            system: call.system.clone(),
            messages: Arc::clone(&call.messages),
            tools: call.tools.clone(),
            answer: Vec::new(),
        });
        let made = ModelTry {
            about: Arc::clone(&self.about),
            context: Arc::clone(&call.context),
            took: Interval {
                begun,
                ended: begun,
            },
            provider: provider.kind(),
            server: provider.server(),
            model: call.model.clone(),
            max_tokens: call.max_tokens,
            temperature: call.temperature,
            names: AnswerNames::default(),
            stop_reason: None,
            usage: Usage::default(),
            first_chunk: None,
            error: None,
            content,
        };
        Asking {
            account: Arc::clone(self),
            made: Some(Box::new(made)),
        }
    }

    /// A tool is called. `description` is what the model was told of it.
    pub(in crate::engine) fn calling(
        self: &Arc<Self>,
        call: &ToolRequest,
        description: Option<String>,
    ) -> Calling {
        let begun = self.now();
        let mut state = self.lock();
        if let Some(turn) = &mut state.turn {
            turn.called = true;
            turn.told.push(call.position);
        }
        drop(state);
        let content = self.wants.content.then(|| ToolContent {
            arguments: call.input.clone(),
            result: ToolResult::failed(ToolFailure::Cancelled, ""),
        });
        let made = ToolFacts {
            about: Arc::clone(&self.about),
            context: Arc::clone(&call.context),
            took: Interval {
                begun,
                ended: begun,
            },
            tool: call.name.clone(),
            tool_use_id: call.tool_use_id.clone(),
            description,
            executed: false,
            failure: None,
            content,
        };
        Calling {
            account: Arc::clone(self),
            made: Some(Box::new(made)),
        }
    }

    /// The calls that a write settles without their having been made.
    pub(super) fn settled(&self, change: &Change) -> Vec<ToolFacts> {
        let (turn, results) = match change {
            Change::Resume(resume) => (resume.turn, &resume.in_doubt),
            Change::CompleteTurn(boundary) => (boundary.turn, &boundary.results),
            Change::Finish(end) => (self.claimed_turn(), &end.results),
            _ => return Vec::new(),
        };
        let state = self.lock();
        let told = state.turn.as_ref().map(|turn| turn.told.as_slice());
        let told = told.unwrap_or_default();
        let unmade = results
            .iter()
            .filter(|result| result.result.failure.is_some() && !told.contains(&result.position));
        let now = self.now();
        unmade
            .map(|result| self.unmade(turn, result, now))
            .collect()
    }

    fn claimed_turn(&self) -> u32 {
        let state = self.lock();
        let turn = state.turn.as_ref().map(|turn| turn.turn);
        turn.unwrap_or(self.claimed.begun_turn)
    }

    fn unmade(&self, turn: u32, call: &CallResult, now: Timestamp) -> ToolFacts {
        let about = &self.about;
        ToolFacts {
            about: Arc::clone(about),
            context: Arc::new(CallContext {
                tenant: about.tenant,
                agent: about.agent,
                session: about.session,
                run: about.run,
                turn,
                attempt: self.attempt,
                trace: about.trace.clone(),
            }),
            took: Interval {
                begun: now,
                ended: now,
            },
            tool: call.name.clone(),
            tool_use_id: call.tool_use_id.clone(),
            description: None,
            executed: false,
            failure: call.result.failure,
            content: None,
        }
    }
}

impl Asking {
    /// Something arrives.
    pub(in crate::engine) fn see(&mut self, event: &StreamEvent) {
        let Some(made) = &mut self.made else { return };
        if let StreamEvent::Named(names) = event {
            made.names.add(names.clone());
            return;
        }
        if made.first_chunk.is_none() {
            made.first_chunk = Some(self.account.now());
        }
        if let StreamEvent::Usage(usage) = event {
            made.usage = *usage;
        }
    }

    /// It is over.
    pub(in crate::engine) fn over(mut self, reply: &Result<ModelReply, ModelFailure>) {
        let Some(mut made) = self.made.take() else {
            return;
        };
        match reply {
            Ok(reply) => {
                made.usage = reply.usage;
                made.stop_reason = Some(reply.stop_reason);
                if let Some(content) = &mut made.content {
                    content.answer.clone_from(&reply.content);
                }
            }
            Err(failure) => {
                made.stop_reason = failure.stop_reason;
                made.error = Some(failure.cause.into());
            }
        }
        self.tell(made);
    }

    fn tell(&self, mut made: Box<ModelTry>) {
        made.took.ended = self.account.now();
        if let Some(turn) = &mut self.account.lock().turn {
            turn.error.clone_from(&made.error);
        }
        let told = Observation::ModelTried(made);
        self.account.telemetry.observe(told);
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if let Some(mut made) = self.made.take() {
            made.error = Some(broken_off());
            self.tell(made);
        }
    }
}

impl Calling {
    /// It is over; all there is to know of it.
    pub(in crate::engine) fn over(
        mut self,
        executed: bool,
        result: &ToolResult,
    ) -> Option<Box<ToolFacts>> {
        let mut made = self.made.take()?;
        made.took.ended = self.account.now();
        made.executed = executed && result.failure != Some(ToolFailure::UnknownTool);
        made.failure = result
            .is_error
            .then(|| result.failure.unwrap_or(ToolFailure::ToolError));
        if let Some(content) = &mut made.content {
            content.result.clone_from(result);
        }
        Some(made)
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        if let Some(mut made) = self.made.take() {
            made.took.ended = self.account.now();
            made.executed = true;
            made.failure = Some(ToolFailure::Cancelled);
            if let Some(turn) = &mut self.account.lock().turn {
                turn.error = Some(ErrorType::CANCELLED);
            }
            let told = Observation::ToolSettled(made);
            self.account.telemetry.observe(told);
        }
    }
}

/// What becomes of a call whose future is dropped: somebody stopped it, or a panic did.
fn broken_off() -> ErrorType {
    if std::thread::panicking() {
        ErrorType::OTHER
    } else {
        ErrorType::CANCELLED
    }
}
