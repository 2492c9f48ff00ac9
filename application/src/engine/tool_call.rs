//! The innermost tool call: within its time, its result within its size.

use std::time::Duration;

use async_trait::async_trait;
use hango_domain::chain::Chain;
use hango_domain::middleware::{Batch, ToolHandler, ToolRequest};
use hango_domain::text;
use hango_domain::tool::{ToolFailure, ToolResult, View};
use tokio::task::JoinHandle;
use tracing::Instrument;

/// Executes the tools of one run.
pub(super) struct BoundedTools {
    pub(super) chain: Chain,
    pub(super) view: View,
    pub(super) timeout: Duration,
    pub(super) max_bytes: usize,
}

#[async_trait]
impl ToolHandler for BoundedTools {
    async fn call(&self, call: ToolRequest, batch: &Batch) -> ToolResult {
        let result = if self.view.contains(&call.name) {
            self.registered(call).await
        } else {
            // A layer's tool only works on the run's memory, and an unknown one does nothing.
            self.chain.execute(call, &self.view, batch).await
        };
        self.cut(&result)
    }
}

impl BoundedTools {
    /// A registered tool has a task of its own: one that blocks its thread holds up neither its run nor
    /// its time limit.
    async fn registered(&self, call: ToolRequest) -> ToolResult {
        let view = self.view.clone();
        let executed = async move {
            let name = call.name.clone();
            view.call(&name, call.into_invocation()).await
        };
        // What is logged meanwhile, a panic's stack too, carries the run's ids.
        let mut task = AbortOnDrop(tokio::spawn(executed.in_current_span()));
        match tokio::time::timeout(self.timeout, &mut task.0).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => ToolResult::failed(
                ToolFailure::Cancelled,
                "the tool was stopped before it returned",
            ),
            Err(_) => ToolResult::failed(
                ToolFailure::Timeout,
                format!(
                    "the tool did not return within {} ms and was stopped; whether it took effect is \
                     unknown",
                    self.timeout.as_millis()
                ),
            ),
        }
    }

    fn cut(&self, result: &ToolResult) -> ToolResult {
        let cut = |text: &str| text::truncate(text, self.max_bytes).into_owned();
        ToolResult {
            for_llm: cut(&result.for_llm),
            for_user: result.for_user.as_deref().map(cut),
            ..result.clone()
        }
    }
}

struct AbortOnDrop(JoinHandle<ToolResult>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
