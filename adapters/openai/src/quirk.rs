//! What an operator has to say about a server, because nobody can see it from outside.

use std::str::FromStr;

use thiserror::Error;

/// A way in which a server, or the models behind it, differ from the protocol's documentation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Quirk {
    /// `no_temperature`: its models refuse a request that says how they shall sample.
    NoTemperature,
    /// `no_stream_options`: it refuses a request that asks for usage at the end of the stream. What such
    /// a server does not tell by itself, nobody knows.
    NoStreamOptions,
    /// `max_tokens`: it knows the limit of an answer by this name, though its host is OpenAI's.
    MaxTokens,
    /// `max_completion_tokens`: it knows the limit of an answer by this name only, as OpenAI's reasoning
    /// models do behind other hosts.
    MaxCompletionTokens,
    /// `nine_character_ids`: it takes no id of a call but one of nine letters and digits, as Mistral.
    NineCharacterIds,
    /// `named_results`: it wants the tool's name on each result, as Gemini.
    NamedResults,
    /// `thought_signatures`: it refuses calls without the signature that its model gave them, as
    /// Gemini 3. Calls of other models are told as text.
    ThoughtSignatures,
    /// `wants_reasoning`: it refuses an assistant's message without `reasoning_content`, though an empty
    /// one will do, as Kimi and DeepSeek while they think. Theirs they get back in any case; this is for
    /// what others said before.
    WantsReasoning,
    /// `no_reasoning`: it refuses the reasoning that it sent itself.
    NoReasoning,
    /// `calls_in_text`: it leaves calls in the text as its models write them, between `<tool_call>` and
    /// `</tool_call>`. Those that name a tool of the request are taken for calls.
    CallsInText,
    /// `think_tags`: it leaves thoughts in the text as its models write them, between `<think>` and
    /// `</think>` at the beginning. They are taken for thinking, and not sent back.
    ThinkTags,
}

impl Quirk {
    const ALL: [(&str, Self); 11] = [
        ("no_temperature", Self::NoTemperature),
        ("no_stream_options", Self::NoStreamOptions),
        ("max_tokens", Self::MaxTokens),
        ("max_completion_tokens", Self::MaxCompletionTokens),
        ("nine_character_ids", Self::NineCharacterIds),
        ("named_results", Self::NamedResults),
        ("thought_signatures", Self::ThoughtSignatures),
        ("wants_reasoning", Self::WantsReasoning),
        ("no_reasoning", Self::NoReasoning),
        ("calls_in_text", Self::CallsInText),
        ("think_tags", Self::ThinkTags),
    ];
}

/// There is no quirk of that name.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("no quirk of this kind of provider; there are {}", Quirk::ALL.map(|(name, _)| name).join(", "))]
pub struct UnknownQuirk;

impl FromStr for Quirk {
    type Err = UnknownQuirk;

    fn from_str(name: &str) -> Result<Self, UnknownQuirk> {
        let known = Self::ALL.iter().find(|(known, _)| *known == name);
        known.map(|(_, quirk)| *quirk).ok_or(UnknownQuirk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_quirk_is_known_by_its_name_and_an_unknown_one_is_told_them_all() {
        for (name, quirk) in Quirk::ALL {
            assert_eq!(name.parse(), Ok(quirk));
            assert!(UnknownQuirk.to_string().contains(name));
        }
        assert_eq!("odd".parse::<Quirk>(), Err(UnknownQuirk));
    }
}
