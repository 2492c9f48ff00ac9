//! The points around what a run waits for: models and tools.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use hango_domain::model::{ModelCall, ModelFailure, ModelFailureKind};
use hango_domain::tool::{Idempotency, Invocation, Tool, ToolDef, ToolResult};
use hango_ports::Provider;
use hango_ports::provider::AnswerStream;

use super::{Failpoints, Reached};

/// The points of providers: around a call, and before each piece of its answer.
pub(super) const PROVIDER: &[&str] = &[
    "provider.before",
    "provider.after",
    "provider.stream.before",
    "provider.stream.after",
    "provider.event.before",
];

/// The points of tools.
pub(super) const TOOL: &[&str] = &[
    "tool.before",
    "tool.after",
    "tool.call.before",
    "tool.call.after",
];

/// A provider with its points.
pub(super) struct ArmedProvider {
    provider: Arc<dyn Provider>,
    points: Failpoints,
}

impl ArmedProvider {
    pub(super) fn new(provider: Arc<dyn Provider>, points: Failpoints) -> Self {
        Self { provider, points }
    }
}

fn broken(reached: Reached) -> ModelFailure {
    ModelFailure::new(ModelFailureKind::Unavailable, reached.to_string())
}

#[async_trait]
impl Provider for ArmedProvider {
    fn kind(&self) -> &'static str {
        self.provider.kind()
    }

    async fn stream(&self, call: ModelCall) -> Result<AnswerStream, ModelFailure> {
        let kind = self.kind();
        let before = ["provider.before", "provider.stream.before"];
        self.points.pass(before, kind).await.map_err(broken)?;
        let answer = self.provider.stream(call).await;
        let after = ["provider.stream.after", "provider.after"];
        self.points.pass(after, kind).await.map_err(broken)?;
        let points = self.points.clone();
        let answer = answer?.then(move |event| {
            let points = points.clone();
            async move {
                let before = ["provider.event.before"];
                points.pass(before, kind).await.map_err(broken)?;
                event
            }
        });
        Ok(Box::pin(answer))
    }
}

/// A tool with its points.
pub(super) struct ArmedTool {
    name: String,
    tool: Arc<dyn Tool>,
    points: Failpoints,
}

impl ArmedTool {
    pub(super) fn new(tool: Arc<dyn Tool>, points: Failpoints) -> Self {
        let name = tool.definition().name;
        Self { name, tool, points }
    }
}

#[async_trait]
impl Tool for ArmedTool {
    fn definition(&self) -> ToolDef {
        self.tool.definition()
    }

    fn idempotency(&self) -> Idempotency {
        self.tool.idempotency()
    }

    async fn execute(&self, invocation: Invocation) -> ToolResult {
        let before = ["tool.before", "tool.call.before"];
        if let Err(reached) = self.points.pass(before, &self.name).await {
            return ToolResult::error(reached.to_string());
        }
        let result = self.tool.execute(invocation).await;
        let after = ["tool.call.after", "tool.after"];
        match self.points.pass(after, &self.name).await {
            Ok(()) => result,
            Err(reached) => ToolResult::error(reached.to_string()),
        }
    }
}
