//! The driver's batches: the calls of one answer side by side, in one attempt or more.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hango_domain::agent_loop::{AgentLoop, Input, Step, Stop};
use hango_domain::journal::{self, ToolCall};
use hango_domain::memory::RunMemory;
use hango_domain::middleware::{Batch, ToolRequest};
use hango_domain::run::Change;
use hango_domain::tool::ToolResult;
use hango_ports::telemetry::Observation;
use tokio::time::Instant;

use super::driver::{Driver, stopped};
use super::options::{Abandoned, RunOptions};
use super::supervise::caught;

impl Driver<'_> {
    /// The batch of the open turn.
    pub(super) fn batch(&self, agent: &AgentLoop, memory: &RunMemory) -> Batch {
        let context = self.context_of(agent.turn());
        let calls = agent.open_calls();
        let calls = calls
            .iter()
            .map(|call| ToolRequest::new(Arc::clone(&context), call));
        Batch::new(memory.clone(), self.notes.clone()).of(calls.collect())
    }

    /// The batch that an earlier attempt began, with what the calls that are not executed again did to
    /// the memory done anew. `None` if there are none.
    pub(super) async fn reopen(&self, batch: Batch, passed: Vec<ToolCall>) -> Option<Batch> {
        if passed.is_empty() {
            return None;
        }
        let context = self.context_of(passed[0].turn);
        for call in passed {
            let request = ToolRequest::new(Arc::clone(&context), &call);
            let unknown = || ToolResult::error(journal::OUTCOME_UNKNOWN);
            let result = call.result.unwrap_or_else(unknown);
            caught(self.chain.replay(request, result, &self.view, &batch)).await;
        }
        // The attempt that executed the calls has reported them.
        drop(self.notes.take());
        Some(batch)
    }

    /// Executes a batch, from its first calls to the step that follows it; the memory after it. Inside,
    /// the loop only records results and begins the calls that were waiting.
    pub(super) async fn execute(
        &self,
        agent: &mut AgentLoop,
        batch: Batch,
        first: Vec<ToolCall>,
        options: &RunOptions<'_>,
    ) -> Result<(Step, RunMemory), Abandoned> {
        let context = self.context_of(agent.turn());
        let mut running = FuturesUnordered::new();
        let mut step = Step::Execute(first);
        let follows = loop {
            step = match step {
                Step::Execute(calls) => {
                    if let Some(stop) = options.stop_now() {
                        options.advance(agent, stopped(stop))?
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
                        options.advance(agent, input)?
                    }
                }
                Step::Save(change @ Change::Record(_)) => {
                    let written = self.save(change, options).await?;
                    let standing = written.standing;
                    options.advance(agent, Input::Saved { standing })?
                }
                other => break other,
            };
        };
        drop(running);
        Ok((follows, batch.into_memory()))
    }

    async fn call_tool(&self, request: ToolRequest, batch: &Batch) -> Input {
        let begun = Instant::now();
        let context = Arc::clone(&request.context);
        let (position, tool) = (request.position, request.name.clone());
        let called = caught(self.chain.tool(request, batch, &self.tools)).await;
        let result = called.unwrap_or_else(|| {
            ToolResult::error("something in hango failed, and the outcome of the call is unknown")
        });
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
}
