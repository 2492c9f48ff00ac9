//! The rest of the onion, seen from one layer, and the handlers at its core.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::{Batch, LayerCall, Middleware};
use crate::conversation;
use crate::journal::ToolCall;
use crate::memory::RunMemory;
use crate::model::{CallContext, ModelCall, ModelFailure, ModelFailureKind, ModelReply};
use crate::note::Notes;
use crate::tool::panic::Boxed;
use crate::tool::{Invocation, ToolResult};

/// Makes model calls, inside of every layer. The application implements it over a provider.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait ModelHandler: Send + Sync {
    /// Makes one call. Dropping the future aborts it.
    ///
    /// # Errors
    ///
    /// [`ModelFailure`] if there is no whole answer.
    async fn call(&self, call: ModelCall) -> Result<ModelReply, ModelFailure>;
}

/// Executes tool calls, inside of every layer: the only place where a tool is executed. The
/// application implements it over [`Chain::execute`](crate::chain::Chain::execute) and applies the
/// timeout.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait ToolHandler: Send + Sync {
    /// Executes one call. Dropping the future cancels it.
    async fn call(&self, call: ToolRequest, batch: &Batch) -> ToolResult;
}

/// One tool call, as the layers see and may rewrite it. What is stored never changes with it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolRequest {
    /// Who asks; layers read it.
    pub context: Arc<CallContext>,
    /// Its place in the batch, counting from 1.
    pub position: u32,
    /// The tool, as the model spelled it.
    pub name: String,
    /// The arguments.
    pub input: Map<String, Value>,
    /// The model's id of the call.
    pub tool_use_id: String,
    /// The same on every execution of this call, and on no other.
    pub idempotency_key: String,
}

impl ToolRequest {
    /// The request that executes a call of the journal.
    #[must_use]
    pub fn new(context: Arc<CallContext>, call: &ToolCall) -> Self {
        Self {
            context,
            position: call.position,
            name: call.name.clone(),
            input: call.input.clone(),
            tool_use_id: call.tool_use_id.clone(),
            idempotency_key: call.idempotency_key(),
        }
    }

    /// What a registered tool is given.
    #[must_use]
    pub fn into_invocation(self) -> Invocation {
        Invocation {
            input: self.input,
            run: self.context.run,
            tool_use_id: self.tool_use_id,
            idempotency_key: self.idempotency_key,
            traceparent: self.context.trace.traceparent(),
        }
    }

    /// What a layer's tool is given.
    #[must_use]
    pub fn as_layer_call<'a>(&'a self, batch: &'a Batch) -> LayerCall<'a> {
        LayerCall {
            context: &self.context,
            position: self.position,
            input: &self.input,
            scratch: batch.kept(),
            notes: batch.notes(),
        }
    }
}

/// What a model call has yet to pass. `Copy`: running it twice is a retry, not running it is a short
/// circuit, changing what it is given is a rewrite.
#[derive(Clone, Copy)]
pub struct ModelNext<'a> {
    pub(crate) layers: &'a [Arc<dyn Middleware>],
    pub(crate) base: &'a dyn ModelHandler,
    pub(crate) notes: &'a Notes,
}

impl<'a> ModelNext<'a> {
    /// Runs the layers further in, then the model.
    ///
    /// The validator stands at the very end, behind the innermost layer: whatever a layer made of the
    /// conversation, an illegal one is [`ModelFailureKind::Rejected`] before a provider sees it.
    pub fn run<'b>(
        self,
        call: ModelCall,
        memory: &'b mut RunMemory,
    ) -> Boxed<'b, Result<ModelReply, ModelFailure>>
    where
        'a: 'b,
    {
        match self.layers.split_first() {
            Some((layer, layers)) => layer.model(call, memory, Self { layers, ..self }),
            None => Box::pin(async move {
                if let Err(illegal) = conversation::validate(&call.messages) {
                    let message = format!("the conversation is not legal: {illegal}");
                    return Err(ModelFailure::new(ModelFailureKind::Rejected, message));
                }
                self.base.call(call).await
            }),
        }
    }

    /// Where to report.
    #[must_use]
    pub const fn notes(self) -> &'a Notes {
        self.notes
    }
}

/// What a tool call has yet to pass; see [`ModelNext`].
#[derive(Clone, Copy)]
pub struct ToolNext<'a> {
    pub(crate) layers: &'a [Arc<dyn Middleware>],
    pub(crate) base: &'a dyn ToolHandler,
}

impl<'a> ToolNext<'a> {
    /// Runs the layers further in, then the tool.
    pub fn run<'b>(self, call: ToolRequest, batch: &'b Batch) -> Boxed<'b, ToolResult>
    where
        'a: 'b,
    {
        match self.layers.split_first() {
            Some((layer, layers)) => layer.tool(call, batch, Self { layers, ..self }),
            None => self.base.call(call, batch),
        }
    }
}
