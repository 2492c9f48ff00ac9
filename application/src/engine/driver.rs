//! The only loop that awaits. It owns nothing but the order: it asks the domain's loop for a step,
//! performs it through the ports, and reports what happened.

use std::sync::Arc;
use std::time::Duration;

use hango_domain::agent::AgentSnapshot;
use hango_domain::agent_loop::{AgentLoop, Input, Step, Stop};
use hango_domain::chain::Chain;
use hango_domain::conversation::{Block, Message, Usage};
use hango_domain::memory::RunMemory;
use hango_domain::model::{CallContext, ModelCall, ModelFailure};
use hango_domain::note::Notes;
use hango_domain::run::RunStatus;
use hango_domain::tool::View;
use hango_ports::telemetry::{FailedTry, Observation};
use hango_ports::{EventSink, RunStore, Telemetry};
use tokio::time::Instant;

use super::account::Account;
use super::gate::ProviderGate;
use super::model_call::StreamedModel;
use super::options::{Abandoned, RunOptions};
use super::saving::carries_memory;
use super::supervise::caught;
use super::tool_call::BoundedTools;

/// A run's memory, and what of it is on record.
pub(super) struct Memory {
    /// As it was stored last.
    pub(super) stored: RunMemory,
    /// As it is.
    pub(super) now: RunMemory,
}

/// What executes one run.
pub(super) struct Driver<'a> {
    pub(super) runs: &'a dyn RunStore,
    pub(super) sink: &'a dyn EventSink,
    pub(super) telemetry: &'a dyn Telemetry,
    pub(super) gate: &'a ProviderGate,
    pub(super) agent: AgentSnapshot,
    pub(super) chain: Chain,
    pub(super) view: View,
    pub(super) model: StreamedModel,
    pub(super) tools: BoundedTools,
    pub(super) context: CallContext,
    pub(super) notes: Notes,
    pub(super) account: Option<Arc<Account>>,
}

impl Driver<'_> {
    /// Executes `agent` to its end or its return to the queue, and says where the run stands then.
    pub(super) async fn run(
        &self,
        mut agent: AgentLoop,
        memory: Memory,
        begin: Input,
        options: &RunOptions<'_>,
    ) -> Result<RunStatus, Abandoned> {
        let Memory {
            stored: mut stored_memory,
            now: mut memory,
        } = memory;
        self.report_notes(&self.context_of(agent.turn()));
        let begun = self.batch(&agent, &memory);
        let mut reopened = self.reopen(begun, agent.passed_calls()).await;
        if let Some(batch) = &reopened {
            memory = batch.change(|memory| memory.clone());
        }
        let mut status = RunStatus::Running;
        let mut step = options.advance(&mut agent, begin)?;
        loop {
            step = match step {
                Step::Save(change) => {
                    let change = self.with_memory(change, &mut memory, &stored_memory);
                    let carries_memory = carries_memory(&change);
                    let written = self.save_told(change, options).await?;
                    if carries_memory {
                        stored_memory.clone_from(&memory);
                    }
                    status = written.status;
                    let standing = written.standing;
                    options.advance(&mut agent, Input::Saved { standing })?
                }
                Step::CallModel => {
                    let asked =
                        self.call_model(agent.turn(), agent.messages(), &mut memory, options);
                    let input = asked.await;
                    options.advance(&mut agent, input)?
                }
                Step::Wait(wait) => {
                    let waited = wait_unless_draining(wait, options);
                    let waited = options.unless_stopped(waited).await;
                    let input = waited.map_or_else(stopped, |()| Input::Waited);
                    options.advance(&mut agent, input)?
                }
                Step::Execute(calls) => {
                    let batch = reopened.take();
                    let batch = batch.unwrap_or_else(|| self.batch(&agent, &memory));
                    let (step, after) = self.execute(&mut agent, batch, calls, options).await?;
                    memory = after;
                    step
                }
                Step::Done if status == RunStatus::Running => return Err(Abandoned::LeaseLost),
                Step::Done => return Ok(status),
            };
        }
    }

    /// One try of the turn's model call.
    async fn call_model(
        &self,
        turn: u32,
        messages: Arc<Vec<Message>>,
        memory: &mut RunMemory,
        options: &RunOptions<'_>,
    ) -> Input {
        let settings = &self.agent.settings;
        let left = || options.deadline.saturating_duration_since(Instant::now());
        if let Some(stop) = options.stop_now() {
            return stopped(stop);
        }
        let pass = match self.gate.enter(&settings.provider, &settings.model) {
            Ok(pass) => pass,
            Err(wait) => return Input::Blocked { wait, left: left() },
        };
        let context = self.context_of(turn);
        let call = ModelCall {
            context: Arc::clone(&context),
            model: settings.model.clone(),
            system: self.chain.system(&settings.system_prompt, memory),
            messages,
            tools: self.chain.tools(&self.view, memory),
            max_tokens: settings.max_tokens,
            temperature: settings.temperature,
        };
        let begun = Instant::now();
        let asked = caught(self.chain.model(call, memory, &self.model, &self.notes));
        let asked = self.model.noting_its_beginning(asked, || pass.answers());
        let asked = options.unless_stopped(asked).await;
        self.report_notes(&context);
        let reply = match asked {
            Ok(Some(reply)) => reply,
            Ok(None) => return stopped(Stop::Internal("the model call panicked".to_owned())),
            Err(reason) => {
                let partial = self.model.take_partial();
                return Input::Stopped {
                    reason,
                    partial: partial.content,
                    usage: partial.usage,
                };
            }
        };
        self.telemetry.observe(Observation::ModelCalled {
            context,
            took: begun.elapsed(),
            failure: reply.as_ref().err().map(FailedTry::from),
        });
        match &reply {
            Ok(_) => pass.answers(),
            Err(failure) => pass.failed(failure, spread(failure, begun)),
        }
        Input::Replied {
            reply,
            left: left(),
        }
    }

    pub(super) fn context_of(&self, turn: u32) -> Arc<CallContext> {
        Arc::new(CallContext {
            turn,
            ..self.context.clone()
        })
    }

    pub(super) fn report_notes(&self, context: &Arc<CallContext>) {
        for note in self.notes.take() {
            if let Some(account) = &self.account {
                account.noted(note.clone());
            }
            self.telemetry.observe(Observation::Noted {
                context: Arc::clone(context),
                note,
            });
        }
    }
}

async fn wait_unless_draining(wait: Duration, options: &RunOptions<'_>) {
    tokio::select! {
        biased;
        () = options.draining.cancelled() => {}
        () = tokio::time::sleep(wait) => {}
    }
}

pub(super) fn stopped(reason: Stop) -> Input {
    Input::Stopped {
        reason,
        partial: Vec::<Block>::new(),
        usage: Usage::default(),
    }
}

/// A number between 0 and 1 that differs between calls that fail together.
fn spread(failure: &ModelFailure, begun: Instant) -> f64 {
    let nanos = begun.elapsed().subsec_nanos() ^ u32::try_from(failure.message.len()).unwrap_or(0);
    f64::from(nanos % 1000) / 1000.0
}

#[cfg(test)]
mod tests;
