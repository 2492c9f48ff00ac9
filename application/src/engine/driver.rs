//! The only loop that awaits. It owns nothing but the order: it asks the domain's loop for a step,
//! performs it through the ports, and reports what happened.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hango_domain::agent::AgentSnapshot;
use hango_domain::agent_loop::{AgentLoop, Input, LoopError, Step, Stop};
use hango_domain::chain::Chain;
use hango_domain::conversation::{Block, Message, Usage};
use hango_domain::journal::ToolCall;
use hango_domain::memory::RunMemory;
use hango_domain::middleware::{Batch, ToolRequest};
use hango_domain::model::{CallContext, ModelCall, ModelFailure};
use hango_domain::note::Notes;
use hango_domain::run::{Change, ChangeKind, RequeueReason, RunStatus};
use hango_domain::tool::View;
use hango_ports::event_sink::LiveEvent;
use hango_ports::run_store::{RunStoreError, Written};
use hango_ports::telemetry::Observation;
use hango_ports::{EventSink, RunStore, Telemetry};
use thiserror::Error;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::gate::ProviderGate;
use super::leases::LeaseGuard;
use super::model_call::StreamedModel;
use super::tool_call::BoundedTools;

/// The waits between repeats of a write whose outcome is unknown.
const FIRST_REPEAT: Duration = Duration::from_millis(50);
const LAST_REPEAT: Duration = Duration::from_secs(1);

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
}

/// What is particular to one execution of a run; later needs become fields here.
pub(super) struct RunOptions<'a> {
    /// The claim under which it executes.
    pub(super) lease: &'a LeaseGuard,
    /// Cancelled when the run's end is asked for.
    pub(super) cancel: CancellationToken,
    /// Cancelled when the run shall go back at its boundary.
    pub(super) draining: CancellationToken,
    /// Cancelled when it shall not wait for its boundary.
    pub(super) aborting: CancellationToken,
    /// When its time is over.
    pub(super) deadline: Instant,
}

/// Why an execution ended without a write of its own.
#[derive(Debug, Error)]
pub(super) enum Abandoned {
    /// The run belongs to somebody else, or may do so by now.
    #[error("the lease was lost")]
    LeaseLost,
    /// A defect: the driver reported what the loop had not asked for.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// A defect: the loop asked for a change that is not a holder's to make.
    #[error("the loop asked for {0:?}, which is not a holder's to make")]
    NotTheHolders(ChangeKind),
}

impl Driver<'_> {
    /// Executes `agent` to its end or its return to the queue, and says where the run stands then.
    pub(super) async fn run(
        &self,
        mut agent: AgentLoop,
        mut memory: RunMemory,
        begin: Input,
        options: &RunOptions<'_>,
    ) -> Result<RunStatus, Abandoned> {
        let mut saved_memory = memory.clone();
        let mut status = RunStatus::Running;
        let mut step = agent.advance(begin)?;
        loop {
            if options.draining.is_cancelled() {
                agent.give_back_at_boundary(RequeueReason::Drain);
            }
            step = match step {
                Step::Save(change) => {
                    let change = self.with_memory(change, &mut memory, &saved_memory);
                    let written = self.save(change, options).await?;
                    saved_memory.clone_from(&memory);
                    status = written.status;
                    let standing = written.standing;
                    agent.advance(Input::Saved { standing })?
                }
                Step::CallModel => {
                    let asked =
                        self.call_model(agent.turn(), agent.messages(), &mut memory, options);
                    let input = asked.await;
                    agent.advance(input)?
                }
                Step::Wait(wait) => {
                    let waited = wait_unless_draining(wait, options);
                    let input = options.unless_stopped(waited).await;
                    agent.advance(input.map_or_else(stopped, |()| Input::Waited))?
                }
                Step::Execute(calls) => {
                    self.execute(&mut agent, &mut memory, calls, options)
                        .await?
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
        let asked = self.chain.model(call, memory, &self.model, &self.notes);
        let asked = options.unless_stopped(asked).await;
        self.report_notes(&context);
        let reply = match asked {
            Ok(reply) => reply,
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
            failure: reply.as_ref().err().map(|failure| failure.kind),
        });
        match &reply {
            Ok(_) => pass.answered(),
            Err(failure) => pass.failed(failure, spread(failure, begun)),
        }
        Input::Replied {
            reply,
            left: left(),
        }
    }

    /// Executes a batch, from its first calls to the step that follows it. Inside, the loop only
    /// records results and begins the calls that were waiting.
    async fn execute(
        &self,
        agent: &mut AgentLoop,
        memory: &mut RunMemory,
        first: Vec<ToolCall>,
        options: &RunOptions<'_>,
    ) -> Result<Step, Abandoned> {
        let context = self.context_of(agent.turn());
        let batch = Batch::new(memory.clone(), self.notes.clone());
        let mut running = FuturesUnordered::new();
        let mut step = Step::Execute(first);
        let follows = loop {
            step = match step {
                Step::Execute(calls) => {
                    if let Some(stop) = options.stop_now() {
                        agent.advance(stopped(stop))?
                    } else {
                        running.extend(calls.into_iter().map(|call| {
                            let request = ToolRequest::new(Arc::clone(&context), &call);
                            self.call_tool(request, &batch)
                        }));
                        let ended = options.unless_stopped(running.next()).await;
                        self.report_notes(&context);
                        let input = match ended {
                            Ok(Some(returned)) => returned,
                            Ok(None) => stopped(Stop::Internal(
                                "the loop waits for calls that were not begun".to_owned(),
                            )),
                            Err(stop) => stopped(stop),
                        };
                        agent.advance(input)?
                    }
                }
                Step::Save(change @ Change::Record(_)) => {
                    let written = self.save(change, options).await?;
                    let standing = written.standing;
                    agent.advance(Input::Saved { standing })?
                }
                other => break other,
            };
        };
        drop(running);
        *memory = batch.into_memory();
        Ok(follows)
    }

    async fn call_tool(&self, request: ToolRequest, batch: &Batch) -> Input {
        let begun = Instant::now();
        let context = Arc::clone(&request.context);
        let (position, tool) = (request.position, request.name.clone());
        let result = self.chain.tool(request, batch, &self.tools).await;
        let took = begun.elapsed();
        self.telemetry.observe(Observation::ToolCalled {
            context,
            tool,
            took,
            is_error: result.is_error,
        });
        Input::ToolReturned {
            position,
            result,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Makes a change durable. While its outcome is unknown the very same write is repeated, for as
    /// long as the lease may be trusted.
    async fn save(&self, change: Change, options: &RunOptions<'_>) -> Result<Written, Abandoned> {
        let mut wait = FIRST_REPEAT;
        loop {
            let mut written = pin!(self.write(change.clone()));
            let outcome = tokio::select! {
                biased;
                outcome = &mut written => outcome?,
                () = options.lease.lost() => return Err(Abandoned::LeaseLost),
            };
            match outcome {
                Ok(written) => {
                    if !written.events.is_empty() {
                        self.sink.emit(LiveEvent::Durable(written.events.clone()));
                    }
                    return Ok(written);
                }
                Err(RunStoreError::Failure(failure)) => {
                    tracing::warn!(
                        error = &failure as &dyn std::error::Error,
                        "a write did not succeed; it is repeated while the lease holds"
                    );
                }
                Err(
                    refused @ (RunStoreError::Refused(_)
                    | RunStoreError::NotFound
                    | RunStoreError::AgentArchived
                    | RunStoreError::Line(_)),
                ) => {
                    tracing::warn!(
                        error = &refused as &dyn std::error::Error,
                        "a write was refused; the run is not executed here any more"
                    );
                    return Err(Abandoned::LeaseLost);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = options.lease.lost() => return Err(Abandoned::LeaseLost),
            }
            wait = (wait * 2).min(LAST_REPEAT);
        }
    }

    async fn write(&self, change: Change) -> Result<Result<Written, RunStoreError>, Abandoned> {
        let kind = change.kind();
        Ok(match change {
            Change::Repair(change) => self.runs.repair(change).await,
            Change::Answer(change) => self.runs.answer(change).await,
            Change::Resume(change) => self.runs.resume(change).await,
            Change::Record(change) => self.runs.record(change).await,
            Change::CompleteTurn(change) => self.runs.complete_turn(change).await,
            Change::Retry(change) => self.runs.retry(change).await,
            Change::GiveBack(change) => self.runs.give_back(change).await,
            Change::Finish(change) => self.runs.finish(change).await,
            Change::Claim { .. }
            | Change::Renew { .. }
            | Change::RequestCancel { .. }
            | Change::Reclaim(_) => return Err(Abandoned::NotTheHolders(kind)),
        })
    }

    /// Puts the memory into the writes that carry it, where it changed.
    fn with_memory(&self, change: Change, memory: &mut RunMemory, saved: &RunMemory) -> Change {
        match change {
            Change::CompleteTurn(mut boundary) => {
                boundary.memory = (memory != saved).then(|| memory.to_stored());
                boundary.todos = (memory.todos != saved.todos).then(|| memory.todos.clone());
                Change::CompleteTurn(boundary)
            }
            Change::Finish(mut end) => {
                self.chain.after_run(memory);
                end.memory = (memory != saved).then(|| memory.to_stored());
                end.todos = (memory.todos != saved.todos).then(|| memory.todos.clone());
                Change::Finish(end)
            }
            other => other,
        }
    }

    fn context_of(&self, turn: u32) -> Arc<CallContext> {
        Arc::new(CallContext {
            turn,
            ..self.context.clone()
        })
    }

    fn report_notes(&self, context: &Arc<CallContext>) {
        for note in self.notes.take() {
            self.telemetry.observe(Observation::Noted {
                context: Arc::clone(context),
                note,
            });
        }
    }
}

impl RunOptions<'_> {
    /// Why nothing may be begun any more, if that is so.
    fn stop_now(&self) -> Option<Stop> {
        if !self.lease.is_trusted() {
            Some(Stop::LeaseLost)
        } else if self.cancel.is_cancelled() {
            Some(Stop::Cancel)
        } else if Instant::now() >= self.deadline {
            Some(Stop::Deadline)
        } else if self.aborting.is_cancelled() {
            Some(Stop::Abort)
        } else {
            None
        }
    }

    /// Waits for `work`, unless it has to be broken off.
    async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T, Stop> {
        tokio::select! {
            biased;
            () = self.lease.lost() => Err(Stop::LeaseLost),
            () = self.cancel.cancelled() => Err(Stop::Cancel),
            done = work => Ok(done),
            () = tokio::time::sleep_until(self.deadline) => Err(Stop::Deadline),
            () = self.aborting.cancelled() => Err(Stop::Abort),
        }
    }
}

async fn wait_unless_draining(wait: Duration, options: &RunOptions<'_>) {
    tokio::select! {
        () = tokio::time::sleep(wait) => {}
        () = options.draining.cancelled() => {}
    }
}

fn stopped(reason: Stop) -> Input {
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
