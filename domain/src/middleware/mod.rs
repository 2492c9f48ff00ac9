//! A layer of the onion: what it may do to a run, to a model call and to a tool call.
//!
//! A layer is one [`Middleware`] whose hooks do nothing unless it says otherwise:
//!
//! | hook | when | what it may do |
//! | --- | --- | --- |
//! | `before_run` | before a run's first model call, and again on resume | change the memory, append one message |
//! | `system_blocks` | on every model call | add to the system prompt |
//! | `tools` | on every model call | add tools |
//! | `model` | around each model call | rewrite it, repeat it, not make it, replace the answer |
//! | `tool` | around each tool call | likewise |
//! | `after_run` | once, before the end is committed | change the memory |
//!
//! Nothing a layer does changes what is stored of a conversation: it rewrites one call's copy. Deltas
//! never pass a layer. Only the innermost handler executes a tool, a layer's own included, so that no
//! call gets around the layers; a layer never answers a call for its own tool in its `tool` hook.

mod batch;
mod layer_tool;
mod next;

use async_trait::async_trait;
use thiserror::Error;

pub use batch::{Batch, Scratch};
pub use layer_tool::{Execute, LayerCall, LayerTool};
#[cfg(any(test, feature = "mocks"))]
pub use next::{MockModelHandler, MockToolHandler};
pub use next::{ModelHandler, ModelNext, ToolHandler, ToolNext, ToolRequest};

use crate::conversation::{Block, Message};
use crate::memory::{MemoryError, RunMemory};
use crate::model::{CallContext, ModelCall, ModelFailure, ModelReply, SystemBlock};
use crate::note::Notes;
use crate::tool::ToolResult;

/// One layer.
#[async_trait]
pub trait Middleware: Send + Sync {
    /// Unique in a chain: the key of what it remembers, and its name in events.
    fn name(&self) -> &'static str;

    /// Prepares a run before its first model call, and again whenever a new attempt resumes it, which
    /// it must bear. Returns blocks for the one user's message that the chain may append to the history;
    /// it is stored.
    ///
    /// # Errors
    ///
    /// The run fails.
    async fn before_run(
        &self,
        _run: &RunView<'_>,
        _memory: &mut RunMemory,
    ) -> Result<Option<Vec<Block>>, BeforeRunError> {
        Ok(None)
    }

    /// What it adds to the system prompt, behind the agent's own and that of layers further out.
    fn system_blocks(&self, _memory: &RunMemory) -> Vec<SystemBlock> {
        Vec::new()
    }

    /// The tools it adds, behind the registered ones and those of layers further out.
    fn tools(&self, _memory: &RunMemory) -> Vec<LayerTool> {
        Vec::new()
    }

    /// Wraps one model call. A layer that runs `next` more than once gives every try a copy of the
    /// memory and keeps the copy of the try whose answer it returns.
    ///
    /// # Errors
    ///
    /// That of the call it wraps, or its own.
    async fn model(
        &self,
        call: ModelCall,
        memory: &mut RunMemory,
        next: ModelNext<'_>,
    ) -> Result<ModelReply, ModelFailure> {
        next.run(call, memory).await
    }

    /// Wraps one tool call. The calls of a batch run side by side, so the memory is reached through
    /// the [`Batch`], and a copy of it would lose what other calls change meanwhile: a layer that runs
    /// `next` more than once makes its own changes when it knows which try it keeps.
    ///
    /// A batch that a crash interrupted goes on in a new attempt, with the memory of the last boundary.
    /// Calls that are not executed again then pass the layers once more, so that what they did to the
    /// memory is done again; `next` answers them with the result on record.
    async fn tool(&self, call: ToolRequest, batch: &Batch, next: ToolNext<'_>) -> ToolResult {
        next.run(call, batch).await
    }

    /// Leaves what is to be remembered of a run that ends. It cannot fail the run.
    fn after_run(&self, _memory: &mut RunMemory) {}
}

/// What a layer sees of a run before it begins or goes on.
#[derive(Clone, Copy, Debug)]
pub struct RunView<'a> {
    /// Whose run it is; the turn is the one that will be executed next.
    pub context: &'a CallContext,
    /// The conversation as it is stored, oldest first.
    pub history: &'a [Message],
    /// Whether the memory was read back from a turn boundary of this run, so that what a layer stored
    /// there ought to be in it.
    pub resumed: bool,
    /// Where to report.
    pub notes: &'a Notes,
}

/// Why a layer cannot let a run begin.
#[derive(Debug, Error)]
pub enum BeforeRunError {
    /// What it remembers cannot be read or written.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}
