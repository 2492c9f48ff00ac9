//! The driver's batches: the calls of one answer side by side, in one attempt or more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hango_domain::agent_loop::{AgentLoop, Input, Step, Stop};
use hango_domain::journal::{self, ToolCall};
use hango_domain::memory::RunMemory;
use hango_domain::middleware::{Batch, ToolHandler, ToolRequest};
use hango_domain::run::Change;
use hango_domain::tool::{ToolFailure, ToolResult};
use hango_ports::telemetry::Observation;
use tokio::time::Instant;

use super::driver::{Driver, stopped};
use super::options::{Abandoned, RunOptions};
use super::supervise::caught;
use super::tool_call::BoundedTools;

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
            let result = call.result.unwrap_or_else(journal::unknown_outcome);
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
                    let written = self.save_told(change, options).await?;
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
        let calling = self.account.as_ref().map(|account| {
            let description = self.description(&tool, batch);
            account.calling(&request, description)
        });
        let base = Noting::new(&self.tools);
        let called = caught(self.chain.tool(request, batch, &base)).await;
        let result = called.unwrap_or_else(|| {
            ToolResult::failed(
                ToolFailure::Panic,
                "something in hango failed, and the outcome of the call is unknown",
            )
        });
        let facts = calling.and_then(|calling| calling.over(base.was_called(), &result));
        let took = begun.elapsed();
        self.telemetry.observe(Observation::ToolCalled {
            context,
            tool,
            took,
            is_error: result.is_error,
            facts,
        });
        Input::ToolReturned {
            position,
            result,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// What the model was told of a tool.
    fn description(&self, tool: &str, batch: &Batch) -> Option<String> {
        let registered = self.view.description(tool).map(str::to_owned);
        registered.or_else(|| {
            let layers = batch.change(|memory| self.chain.layer_tool(tool, memory));
            Some(layers?.definition.description)
        })
    }
}

/// The innermost handler of one call, which notes that it was reached.
struct Noting<'a> {
    tools: &'a BoundedTools,
    called: AtomicBool,
}

impl<'a> Noting<'a> {
    const fn new(tools: &'a BoundedTools) -> Self {
        Self {
            tools,
            called: AtomicBool::new(false),
        }
    }

    fn was_called(&self) -> bool {
        self.called.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl ToolHandler for Noting<'_> {
    async fn call(&self, call: ToolRequest, batch: &Batch) -> ToolResult {
        self.called.store(true, Ordering::Relaxed);
        self.tools.call(call, batch).await
    }
}
