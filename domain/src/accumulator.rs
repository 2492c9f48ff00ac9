//! Puts a model's answer together from what its provider streams.
//!
//! * An answer is whole only if its stop reason arrived; before that there is only a
//!   [partial](Accumulator::partial) one, for people.
//! * Fragments of arguments are joined by block, and read when the answer is whole. What can't be read
//!   as an object leaves an empty object in the call and its text in
//!   [`invalid_inputs`](ModelReply::invalid_inputs).
//! * Calls decide: an answer with a call is a tool turn, one without is none, whatever its provider
//!   says; but one that was cut off stays cut off.
//! * An answer has a limit in bytes and in calls; what exceeds it is not the provider's protocol. What
//!   arguments take when they are read has the same limit; beyond it they are such as can't be read.

mod input;

use std::collections::BTreeMap;
use std::mem;

use serde_json::Map;
use thiserror::Error;

use self::input::read_input;
use crate::conversation::{Block, ProviderData, StopReason, UniqueIds, Usage, is_blank};
use crate::json;
use crate::model::{ModelFailure, ModelFailureKind, ModelReply, Stop, StreamEvent};
use crate::text::truncate;

/// How many bytes an answer may have unless something else is [said](Accumulator::with_limit).
pub const MAX_ANSWER_BYTES: usize = 7 << 18;

/// How many tools an answer may ask for.
pub const MAX_TOOL_CALLS: usize = 64;

/// What a block takes beside its text.
const BLOCK_BYTES: usize = 512;

/// What the arguments of all calls may weigh beyond the limit, for what holds their text.
const INPUTS_ROOM: usize = 128 << 10;

/// How much of a stop reason that nobody knows is told.
const MAX_REASON_BYTES: usize = 100;

/// An answer as far as it has arrived.
#[derive(Clone, Debug)]
pub struct Accumulator {
    prefix: String,
    limit: usize,
    bytes: usize,
    calls: usize,
    blocks: BTreeMap<u32, Draft>,
    usage: Usage,
    stop: Option<Stop>,
}

/// A block as far as it has arrived.
#[derive(Clone, Debug)]
enum Draft {
    Text {
        text: String,
        attached: Option<ProviderData>,
    },
    Thinking {
        thinking: String,
        signature: String,
        attached: Option<ProviderData>,
    },
    Call {
        id: String,
        name: String,
        json: String,
        attached: Option<ProviderData>,
    },
    /// One that came in one piece.
    Whole(Block),
}

/// An event that can't follow those before it.
#[derive(Clone, Copy, Debug, Error)]
enum Nonsense {
    #[error("block {0} of the answer continues as another kind of block")]
    OtherKind(u32),
    #[error("block {0} of the answer begins twice")]
    BeginsTwice(u32),
    #[error("block {0} of the answer continues and never began")]
    NeverBegan(u32),
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
    #[error("the answer asks for more than {MAX_TOOL_CALLS} tools")]
    TooManyCalls,
}

impl Accumulator {
    /// Nothing yet. A call without an id gets `{prefix}_{index}`, so `prefix` should tell turns apart,
    /// such as `call_3`.
    #[must_use]
    pub fn new(prefix: impl Into<String>) -> Self {
        Self::with_limit(prefix, MAX_ANSWER_BYTES)
    }

    /// The same for an answer of at most `limit` bytes.
    #[must_use]
    pub fn with_limit(prefix: impl Into<String>, limit: usize) -> Self {
        Self {
            prefix: prefix.into(),
            limit,
            bytes: 0,
            calls: 0,
            blocks: BTreeMap::new(),
            usage: Usage::default(),
            stop: None,
        }
    }

    /// Takes in what came next. After a failure, a [`ModelFailureKind::Protocol`], the answer is lost.
    pub fn push(&mut self, event: StreamEvent) -> Result<(), ModelFailure> {
        self.take(event)
            .map_err(|nonsense| self.failure(ModelFailureKind::Protocol, nonsense.to_string()))
    }

    /// The whole answer; called when the stream has ended.
    pub fn finish(mut self) -> Result<ModelReply, ModelFailure> {
        match self.stop.take() {
            None => Err(self.failure(
                ModelFailureKind::Unavailable,
                "the stream ended before its stop reason",
            )),
            Some(Stop::ContextExceeded) => Err(self.failure(
                ModelFailureKind::ContextExceeded,
                "the conversation does not fit the model's context",
            )),
            Some(Stop::Unsupported(reason)) => Err(self.unsupported(&reason)),
            Some(Stop::Answer(StopReason::PauseTurn)) => {
                Err(self.unsupported(StopReason::PauseTurn.as_str()))
            }
            Some(Stop::Answer(
                reason @ (StopReason::EndTurn
                | StopReason::ToolUse
                | StopReason::MaxTokens
                | StopReason::StopSequence
                | StopReason::Refusal),
            )) => Ok(self.reply(reason)),
        }
    }

    /// Text and thinking as far as they have arrived, without calls and blank blocks.
    #[must_use]
    pub fn partial(&self) -> Vec<Block> {
        self.blocks
            .values()
            .filter_map(|draft| match draft {
                Draft::Text { text, attached } if !is_blank(text) => Some(Block::Text {
                    text: text.clone(),
                    provider_data: attached.clone(),
                }),
                Draft::Thinking {
                    thinking,
                    signature,
                    attached,
                } if !is_blank(thinking) => Some(Block::Thinking {
                    thinking: thinking.clone(),
                    signature: signature.clone(),
                    provider_data: attached.clone(),
                }),
                Draft::Text { .. }
                | Draft::Thinking { .. }
                | Draft::Call { .. }
                | Draft::Whole(_) => None,
            })
            .collect()
    }

    /// A failure of `kind` that keeps what has arrived. Whether it was shown, its caller knows.
    #[must_use]
    pub fn failure(&self, kind: ModelFailureKind, message: impl Into<String>) -> ModelFailure {
        ModelFailure {
            partial: self.partial(),
            usage: self.usage,
            ..ModelFailure::new(kind, message)
        }
    }

    fn unsupported(&self, reason: &str) -> ModelFailure {
        let shown = truncate(reason, MAX_REASON_BYTES);
        let message = format!("the model stopped with {shown}, which is not supported");
        let paused = reason == StopReason::PauseTurn.as_str();
        ModelFailure {
            stop_reason: paused.then_some(StopReason::PauseTurn),
            ..self.failure(ModelFailureKind::UnsupportedStop, message)
        }
    }

    fn take(&mut self, event: StreamEvent) -> Result<(), Nonsense> {
        self.weigh(event.bytes())?;
        match event {
            StreamEvent::Text { index, text: more } => match self.open(index, Draft::text)? {
                Draft::Text { text, .. } => text.push_str(&more),
                Draft::Thinking { .. } | Draft::Call { .. } | Draft::Whole(_) => {
                    return Err(Nonsense::OtherKind(index));
                }
            },
            StreamEvent::Thinking { index, text } => {
                self.open_thinking(index)?.0.push_str(&text);
            }
            StreamEvent::Signature { index, signature } => {
                *self.open_thinking(index)?.1 = signature;
            }
            StreamEvent::RedactedThinking { index, data } => {
                let provider_data = None;
                let block = Block::RedactedThinking {
                    data,
                    provider_data,
                };
                self.begin(index, Draft::Whole(block))?;
            }
            StreamEvent::Provider { index, data } => {
                self.begin(index, Draft::Whole(Block::Provider(data)))?;
            }
            StreamEvent::ToolUse { index, id, name } => {
                self.calls += 1;
                if self.calls > MAX_TOOL_CALLS {
                    return Err(Nonsense::TooManyCalls);
                }
                self.begin(index, Draft::call(id, name))?;
            }
            StreamEvent::ToolInput { index, json: more } => match self.begun(index)? {
                Draft::Call { json, .. } => json.push_str(&more),
                Draft::Text { .. } | Draft::Thinking { .. } | Draft::Whole(_) => {
                    return Err(Nonsense::OtherKind(index));
                }
            },
            StreamEvent::Attach { index, data } => match self.begun(index)? {
                Draft::Text { attached, .. }
                | Draft::Thinking { attached, .. }
                | Draft::Call { attached, .. }
                | Draft::Whole(Block::RedactedThinking {
                    provider_data: attached,
                    ..
                }) => *attached = Some(data),
                Draft::Whole(_) => return Err(Nonsense::OtherKind(index)),
            },
            // Of no meaning for what is said.
            StreamEvent::Named(_) => {}
            StreamEvent::Usage(usage) => self.usage = usage,
            StreamEvent::Stop(stop) => self.stop = Some(stop),
        }
        Ok(())
    }

    /// Counts before anything is kept, so that the limit is one of memory.
    fn weigh(&mut self, bytes: usize) -> Result<(), Nonsense> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limit {
            return Err(Nonsense::TooLarge(self.limit));
        }
        Ok(())
    }

    fn open(&mut self, index: u32, fresh: fn() -> Draft) -> Result<&mut Draft, Nonsense> {
        if !self.blocks.contains_key(&index) {
            self.weigh(BLOCK_BYTES)?;
        }
        Ok(self.blocks.entry(index).or_insert_with(fresh))
    }

    fn open_thinking(&mut self, index: u32) -> Result<(&mut String, &mut String), Nonsense> {
        match self.open(index, Draft::thinking)? {
            Draft::Thinking {
                thinking,
                signature,
                ..
            } => Ok((thinking, signature)),
            Draft::Text { .. } | Draft::Call { .. } | Draft::Whole(_) => {
                Err(Nonsense::OtherKind(index))
            }
        }
    }

    fn begin(&mut self, index: u32, block: Draft) -> Result<(), Nonsense> {
        self.weigh(BLOCK_BYTES)?;
        match self.blocks.insert(index, block) {
            None => Ok(()),
            Some(_) => Err(Nonsense::BeginsTwice(index)),
        }
    }

    fn begun(&mut self, index: u32) -> Result<&mut Draft, Nonsense> {
        self.blocks
            .get_mut(&index)
            .ok_or(Nonsense::NeverBegan(index))
    }

    fn reply(mut self, reason: StopReason) -> ModelReply {
        let mut ids = UniqueIds::default();
        let mut invalid_inputs = BTreeMap::new();
        let mut budget = self.limit.saturating_add(INPUTS_ROOM);
        let mut content = Vec::with_capacity(self.blocks.len());
        for (index, draft) in mem::take(&mut self.blocks) {
            match draft {
                Draft::Text { text, .. } if is_blank(&text) => {}
                Draft::Text { text, attached } => content.push(Block::Text {
                    text,
                    provider_data: attached,
                }),
                // Some providers send the signature alone, and want it back.
                Draft::Thinking {
                    thinking,
                    signature,
                    ..
                } if is_blank(&thinking) && signature.is_empty() => {}
                Draft::Thinking {
                    thinking,
                    signature,
                    attached,
                } => content.push(Block::Thinking {
                    thinking,
                    signature,
                    provider_data: attached,
                }),
                Draft::Call {
                    id,
                    name,
                    mut json,
                    attached,
                } => {
                    json.shrink_to_fit();
                    let id = if id.is_empty() {
                        ids.claim(&format!("{}_{index}", self.prefix))
                    } else {
                        ids.claim(&id)
                    };
                    let input = read_input(&json, budget).unwrap_or_else(|| {
                        invalid_inputs.insert(id.clone(), json);
                        Map::new()
                    });
                    budget = budget.saturating_sub(json::weight_of_members(&input));
                    content.push(Block::ToolUse {
                        id,
                        name,
                        input,
                        provider_data: attached,
                    });
                }
                Draft::Whole(block) => content.push(block),
            }
        }
        ModelReply {
            stop_reason: calls_decide(reason, self.calls > 0),
            content,
            usage: self.usage,
            invalid_inputs,
        }
    }
}

impl Draft {
    fn text() -> Self {
        Self::Text {
            text: String::new(),
            attached: None,
        }
    }

    fn thinking() -> Self {
        Self::Thinking {
            thinking: String::new(),
            signature: String::new(),
            attached: None,
        }
    }

    fn call(id: String, name: String) -> Self {
        Self::Call {
            id,
            name,
            json: String::new(),
            attached: None,
        }
    }
}

fn calls_decide(reason: StopReason, has_calls: bool) -> StopReason {
    match (reason, has_calls) {
        (StopReason::MaxTokens, _) => StopReason::MaxTokens,
        (_, true) => StopReason::ToolUse,
        (StopReason::ToolUse, false) => StopReason::EndTurn,
        (
            StopReason::EndTurn
            | StopReason::StopSequence
            | StopReason::Refusal
            | StopReason::PauseTurn,
            false,
        ) => reason,
    }
}

#[cfg(test)]
mod tests;
