//! What an answer cost, and why it ended.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// Tokens, as the provider counted them.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// All input, cached included.
    pub input_tokens: u64,
    /// All output, reasoning included.
    pub output_tokens: u64,
    /// The part of the input that was read from a cache.
    pub cache_read_tokens: u64,
    /// The part of the input that was written to a cache.
    pub cache_write_tokens: u64,
}

impl Add for Usage {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(more.input_tokens),
            output_tokens: self.output_tokens.saturating_add(more.output_tokens),
            cache_read_tokens: self
                .cache_read_tokens
                .saturating_add(more.cache_read_tokens),
            cache_write_tokens: self
                .cache_write_tokens
                .saturating_add(more.cache_write_tokens),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        *self = *self + more;
    }
}

/// Why a model stopped, of the reasons that leave an answer.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It said what it had to say.
    EndTurn,
    /// It asks for tools.
    ToolUse,
    /// Its output reached the limit.
    MaxTokens,
    /// It produced one of the caller's stop sequences.
    StopSequence,
    /// It refused, or its provider did.
    Refusal,
    /// Its provider wants to be asked to go on; hango does not.
    PauseTurn,
}

impl StopReason {
    /// The word of the HTTP contract and of the stores.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::StopSequence => "stop_sequence",
            Self::Refusal => "refusal",
            Self::PauseTurn => "pause_turn",
        }
    }
}
