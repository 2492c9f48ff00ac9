//! Keeps a run from making the same tool call over and over.
//!
//! A call is the same when it names the same tool and its arguments are the same value, however they
//! are spelled. The calls of a run are counted across turns, attempts and restarts, blocked ones too;
//! from the threshold on a call is answered with a nudge, and not executed.
//!
//! What counts is what the model asked, in the order in which it asked: of equal calls in one batch the
//! one further ahead is the earlier, in whatever order they are executed and whatever of the batch an
//! earlier attempt got done.
//!
//! One count for each different call is kept, so the memory is bounded by the calls of the run, and
//! those by its turns and the length of an answer. Each of them stands whole in the history besides,
//! and costs more there. Dropping old counts would lift the guard from the runs that need it most.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::settings::Fields;
use crate::conversation::Block;
use crate::memory::{MemoryError, RunMemory};
use crate::middleware::{Batch, BeforeRunError, Middleware, RunView, ToolNext, ToolRequest};
use crate::note::Note;
use crate::tool::{ToolFailure, ToolResult};
use crate::{canonical, text};

/// The layer: from the `threshold`-th equal call of a run on, none is executed.
#[derive(Clone, Copy, Debug)]
pub struct RepeatCall {
    threshold: u32,
}

/// What an agent may set of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Settings {
    /// Whether it is there.
    pub enabled: bool,
    /// Equal calls of a run, at which the call is not made any more.
    pub threshold: u32,
}

impl Settings {
    pub(super) fn read(fields: &mut Fields<'_>, threshold: u32) -> Self {
        Self {
            enabled: fields.switch("enabled", true),
            threshold: fields.count("threshold", &RepeatCall::THRESHOLDS, threshold),
        }
    }
}

/// What the layer remembers of a run.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counts {
    /// How often each call was made, by its key.
    made: BTreeMap<String, u32>,
}

/// For each call of the batch, by position, how often it was made before.
type Before = BTreeMap<u32, u32>;

impl RepeatCall {
    /// The layer's name.
    pub const NAME: &'static str = "repeat_call";

    /// What a threshold may be: at 1 no tool could be called.
    pub const THRESHOLDS: std::ops::RangeInclusive<u32> = 2..=1000;

    /// The layer with that threshold.
    #[must_use]
    pub const fn new(threshold: u32) -> Self {
        Self { threshold }
    }

    /// How often the call was made before it. The first call of a batch to arrive counts all of them.
    fn made_before(call: &ToolRequest, batch: &Batch) -> Result<u32, MemoryError> {
        batch.change(|memory| {
            batch.scratch(Self::NAME, |before: &mut Before| {
                if before.is_empty() {
                    *before = count(batch.calls(), memory)?;
                }
                // Whatever else comes by, no model asked for it.
                Ok(before.get(&call.position).copied().unwrap_or(0))
            })
        })
    }
}

#[async_trait]
impl Middleware for RepeatCall {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// Makes sure that there are counts, and that they can be read.
    async fn before_run(
        &self,
        run: &RunView<'_>,
        memory: &mut RunMemory,
    ) -> Result<Option<Vec<Block>>, BeforeRunError> {
        if memory.load::<Counts>(Self::NAME)?.is_none() {
            if run.resumed {
                run.notes.add(Note::StateMissing { layer: Self::NAME });
            }
            memory.store(Self::NAME, &Counts::default())?;
        }
        Ok(None)
    }

    async fn tool(&self, call: ToolRequest, batch: &Batch, next: ToolNext<'_>) -> ToolResult {
        match Self::made_before(&call, batch) {
            Ok(made) if made.saturating_add(1) < self.threshold => next.run(call, batch).await,
            Ok(made) => {
                let tool = call.name;
                batch.notes().add(Note::RepeatCallBlocked { tool });
                let text = format!(
                    "this exact call was already made {made} times; use the previous result or change \
                     approach"
                );
                ToolResult::failed(ToolFailure::RepeatBlocked, text)
            }
            Err(error) => ToolResult::error(format!("the call was not executed: {error}")),
        }
    }
}

/// Counts the calls of a batch, in the order of their positions.
fn count(calls: &[ToolRequest], memory: &mut RunMemory) -> Result<Before, MemoryError> {
    let mut counts: Counts = memory.load(RepeatCall::NAME)?.unwrap_or_default();
    let mut before = Before::new();
    for call in calls {
        let made = counts.made.entry(key(call)).or_default();
        before.insert(call.position, *made);
        *made = made.saturating_add(1);
    }
    memory.store(RepeatCall::NAME, &counts)?;
    Ok(before)
}

/// The bytes of a key: every boundary writes all keys of a run, and half a digest tells calls apart.
const KEY_BYTES: usize = 16;

/// The same for equal calls, and for no others: of SHA-256 over the name and the canonical arguments, both
/// as a store gives them back to the next attempt.
fn key(call: &ToolRequest) -> String {
    let mut input = call.input.clone();
    text::clean_map(&mut input);
    let digest = Sha256::new()
        .chain_update(text::clean(&call.name).as_bytes())
        // Neither of the two holds it.
        .chain_update(b"\0")
        .chain_update(canonical::object(&input).as_bytes())
        .finalize();
    digest
        .iter()
        .take(KEY_BYTES)
        .fold(String::new(), |key, byte| key + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests;
