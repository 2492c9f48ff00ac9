//! The onion: an agent's layers in their order, around each model call and each tool call.
//!
//! Index 0 is outermost. The order is decided in one place, [`layers::stack`](crate::layers::stack).

use std::sync::Arc;

use async_trait::async_trait;

use crate::conversation::{self, Block};
use crate::memory::RunMemory;
use crate::middleware::{
    Batch, BeforeRunError, LayerTool, Middleware, ModelHandler, ModelNext, RunView, ToolHandler,
    ToolNext, ToolRequest,
};
use crate::model::{ModelCall, ModelFailure, ModelReply, SystemBlock};
use crate::note::Notes;
use crate::tool::panic::Boxed;
use crate::tool::{Idempotency, ToolDef, ToolResult, View};

/// Layers, outermost first. Cheap to clone.
#[derive(Clone)]
pub struct Chain {
    layers: Arc<[Arc<dyn Middleware>]>,
}

impl Chain {
    /// A chain of these layers, outermost first.
    #[must_use]
    pub fn new(layers: Vec<Arc<dyn Middleware>>) -> Self {
        Self {
            layers: layers.into(),
        }
    }

    /// The layers' names, outermost first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.layers.iter().map(|layer| layer.name())
    }

    /// Lets every layer prepare the run. Returns the content of one user's message to append, `None`
    /// if no layer has anything to say.
    ///
    /// # Errors
    ///
    /// That of the first layer that cannot: the run fails, and what `memory` holds does not matter.
    pub async fn before_run(
        &self,
        run: &RunView<'_>,
        memory: &mut RunMemory,
    ) -> Result<Option<Vec<Block>>, BeforeRunError> {
        self.before_run_watched(run, memory, |_| {}).await
    }

    /// The same; `ended` is told the name of each layer when its hook has ended.
    ///
    /// # Errors
    ///
    /// See [`before_run`](Self::before_run).
    pub async fn before_run_watched(
        &self,
        run: &RunView<'_>,
        memory: &mut RunMemory,
        mut ended: impl FnMut(&'static str) + Send,
    ) -> Result<Option<Vec<Block>>, BeforeRunError> {
        let mut appended = Vec::new();
        for layer in self.layers.iter() {
            let prepared = layer.before_run(run, memory).await;
            ended(layer.name());
            appended.extend(prepared?.unwrap_or_default());
        }
        // Results answer the message before: they stand in front of whatever else is said.
        appended.sort_by_key(|block| !matches!(block, Block::ToolResult { .. }));
        Ok((!appended.is_empty()).then_some(appended))
    }

    /// The system prompt of the next model call: the agent's own block, then the layers' in their
    /// order. Blank blocks are left out, so an index into the prompt is an index into what is sent.
    #[must_use]
    pub fn system(&self, agent_prompt: &str, memory: &RunMemory) -> Vec<SystemBlock> {
        let own = std::iter::once(SystemBlock::new(agent_prompt));
        let added = self
            .layers
            .iter()
            .flat_map(|layer| layer.system_blocks(memory));
        own.chain(added)
            .filter(|block| !conversation::is_blank(&block.text))
            .collect()
    }

    /// The tools of the next model call: the registered ones, then the layers' in their order. Where
    /// two bear one name, the first stands.
    #[must_use]
    pub fn tools(&self, view: &View, memory: &RunMemory) -> Vec<ToolDef> {
        let mut tools = view.definitions();
        for added in self.layer_tools(memory) {
            if tools.iter().all(|tool| tool.name != added.definition.name) {
                tools.push(added.definition);
            }
        }
        tools
    }

    /// The layers' tool of that exact name.
    #[must_use]
    pub fn layer_tool(&self, name: &str, memory: &RunMemory) -> Option<LayerTool> {
        self.layer_tools(memory)
            .find(|tool| tool.definition.name == name)
    }

    /// What may happen to a call of that tool that a crash left in doubt; `None` if there is no such
    /// tool.
    #[must_use]
    pub fn idempotency(&self, name: &str, view: &View, memory: &RunMemory) -> Option<Idempotency> {
        let layers = || Some(self.layer_tool(name, memory)?.idempotency);
        view.idempotency(name).or_else(layers)
    }

    /// Sends a model call through the layers to `base`.
    ///
    /// # Errors
    ///
    /// What the outermost layer returns.
    pub fn model<'a>(
        &'a self,
        call: ModelCall,
        memory: &'a mut RunMemory,
        base: &'a dyn ModelHandler,
        notes: &'a Notes,
    ) -> Boxed<'a, Result<ModelReply, ModelFailure>> {
        let layers = &self.layers;
        ModelNext {
            layers,
            base,
            notes,
        }
        .run(call, memory)
    }

    /// Sends a tool call through the layers to `base`.
    pub fn tool<'a>(
        &'a self,
        call: ToolRequest,
        batch: &'a Batch,
        base: &'a dyn ToolHandler,
    ) -> Boxed<'a, ToolResult> {
        let layers = &self.layers;
        ToolNext { layers, base }.run(call, batch)
    }

    /// Executes a call that has passed the layers: a registered tool's, then a layer's. A tool that is
    /// not there, and one that panics, bring an error result.
    pub async fn execute(&self, call: ToolRequest, view: &View, batch: &Batch) -> ToolResult {
        if !view.contains(&call.name)
            && let Some(tool) = batch.change(|memory| self.layer_tool(&call.name, memory))
        {
            let call = call.as_layer_call(batch);
            return batch.change(|memory| tool.call(&call, memory));
        }
        let name = call.name.clone();
        view.call(&name, call.into_invocation()).await
    }

    /// Does again what a call did to the memory whose batch goes on in a new attempt, without executing
    /// it: it passes the layers, and `result`, which is on record, answers it. A layer's tool only
    /// changes the memory, so that is executed.
    pub async fn replay(&self, call: ToolRequest, result: ToolResult, view: &View, batch: &Batch) {
        let base = OnRecord {
            chain: self,
            view,
            result,
        };
        self.tool(call, batch, &base).await;
    }

    /// Lets every layer leave what is to be remembered of a run that ends, innermost first, as an
    /// onion closes.
    pub fn after_run(&self, memory: &mut RunMemory) {
        for layer in self.layers.iter().rev() {
            layer.after_run(memory);
        }
    }

    /// The layers' tools, in their order.
    pub fn layer_tools(&self, memory: &RunMemory) -> impl Iterator<Item = LayerTool> {
        self.layers.iter().flat_map(|layer| layer.tools(memory))
    }
}

/// Answers a call that is not executed again.
struct OnRecord<'a> {
    chain: &'a Chain,
    view: &'a View,
    result: ToolResult,
}

#[async_trait]
impl ToolHandler for OnRecord<'_> {
    async fn call(&self, call: ToolRequest, batch: &Batch) -> ToolResult {
        if !self.view.contains(&call.name) {
            // An unknown tool does nothing.
            self.chain.execute(call, self.view, batch).await;
        }
        self.result.clone()
    }
}

#[cfg(test)]
mod tests;
