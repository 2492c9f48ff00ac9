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
    /// Whether it is a guess, in whole or in part, because a provider did not say.
    #[serde(default, skip_serializing_if = "is_not")]
    pub estimated: bool,
}

/// How many bytes of text are about a token.
const BYTES_OF_TOKEN: usize = 4;

impl Usage {
    /// About what an answer of `said` bytes to `sent` bytes cost, where its provider does not say.
    #[must_use]
    pub fn estimate(sent: usize, said: usize) -> Self {
        let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(BYTES_OF_TOKEN));
        Self {
            input_tokens: tokens(sent).unwrap_or(u64::MAX),
            output_tokens: tokens(said).unwrap_or(u64::MAX),
            estimated: true,
            ..Self::default()
        }
    }

    /// Whether anybody counted anything.
    #[must_use]
    pub fn is_told(&self) -> bool {
        *self != Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_not(said: &bool) -> bool {
    !*said
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
            estimated: self.estimated || more.estimated,
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
    /// Every reason.
    pub const ALL: [Self; 6] = [
        Self::EndTurn,
        Self::ToolUse,
        Self::MaxTokens,
        Self::StopSequence,
        Self::Refusal,
        Self::PauseTurn,
    ];

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn o30_a_guess_is_marked_as_one_and_so_is_a_sum_that_holds_it() {
        let guess = Usage::estimate(9, 4);
        let told = Usage {
            input_tokens: 7,
            ..Usage::default()
        };

        assert_eq!((guess.input_tokens, guess.output_tokens), (3, 1));
        let sum = told + guess;
        assert_eq!((sum.input_tokens, sum.estimated), (10, true));
        assert_eq!(json!(sum)["estimated"], true);
        assert_eq!(json!(told).get("estimated"), None);
    }

    #[test]
    fn what_was_stored_before_there_were_guesses_is_none() {
        let stored = json!({
            "input_tokens": 1, "output_tokens": 2, "cache_read_tokens": 3, "cache_write_tokens": 4,
        });

        let read = Usage::deserialize(stored);

        assert_eq!(read.ok().map(|usage| usage.estimated), Some(false));
    }
}
