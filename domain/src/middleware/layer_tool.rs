//! A tool that a layer adds: it works on the run's memory, and on nothing else.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Scratch;
use crate::memory::RunMemory;
use crate::model::CallContext;
use crate::note::Notes;
use crate::tool::panic::{catch, panicked};
use crate::tool::{Idempotency, ToolDef, ToolResult};

/// A tool of a layer, as a value.
#[derive(Clone)]
pub struct LayerTool {
    /// What a model sees of it.
    pub definition: ToolDef,
    /// What may happen to a call of it that a crash left in doubt. The memory of an unfinished turn is
    /// lost with its process, so executing a call again is nearly always right.
    pub idempotency: Idempotency,
    /// What a call does.
    pub execute: Arc<Execute>,
}

/// Executes one call of a layer's tool. Whatever goes wrong is a result with `is_error`.
pub type Execute = dyn Fn(&LayerCall<'_>, &mut RunMemory) -> ToolResult + Send + Sync;

/// One call of a layer's tool.
#[derive(Clone, Copy, Debug)]
pub struct LayerCall<'a> {
    /// Who asks; the turn tells one batch from another.
    pub context: &'a CallContext,
    /// The call's place in its batch, counting from 1. Calls run side by side: where the last one is to
    /// stand, the highest position is the last.
    pub position: u32,
    /// The arguments.
    pub input: &'a Map<String, Value>,
    /// What layers keep for this batch.
    pub scratch: &'a Scratch,
    /// Where to report.
    pub notes: &'a Notes,
}

impl LayerTool {
    /// Executes one call. One that panics brings an error result and leaves the memory as it was.
    pub fn call(&self, call: &LayerCall<'_>, memory: &mut RunMemory) -> ToolResult {
        let mut changed = memory.clone();
        match catch(|| (self.execute)(call, &mut changed)) {
            Ok(result) => {
                *memory = changed;
                result
            }
            Err(message) => panicked(&message),
        }
    }
}

impl fmt::Debug for LayerTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayerTool")
            .field("definition", &self.definition)
            .field("idempotency", &self.idempotency)
            .finish_non_exhaustive()
    }
}
