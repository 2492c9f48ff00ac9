//! The script: what it may say, and how it is read. The format is described at the head of the crate.

use std::time::Duration;

use hango_domain::conversation::{StopReason, Usage};
use hango_domain::model::{ModelFailure, ModelFailureKind};
use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::scene::Scene;

/// The time before each word where a script does not say another.
pub(crate) const WORD_DELAY: Duration = Duration::from_millis(5);

/// What a scripted model does.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The time before each word that is streamed, in milliseconds; `None` is 5.
    pub word_delay_ms: Option<u64>,
    /// The first one that matches a call answers it.
    #[serde(default)]
    pub rules: Vec<Rule>,
}

/// When to say what.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What must be in what the user said last, in any case; `None` matches anything.
    pub text: Option<String>,
    /// How many answers the model gave since; `None` matches any number.
    pub turn: Option<usize>,
    /// How often the rule answers in this process; `None` is without limit.
    pub times: Option<u32>,
    /// What is streamed, in this order.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// Why the model stops; `None` goes by the steps.
    pub stop_reason: Option<StopReason>,
    /// What the answer costs; `None` is estimated.
    pub usage: Option<TokenCounts>,
    /// After how many deltas the stream breaks off; `None` never.
    pub cut_after: Option<usize>,
}

/// A part of an answer.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Said word by word.
    Text(String),
    /// Thought word by word.
    Thinking(String),
    /// A tool call.
    Tool(ToolStep),
    /// Nothing, for so many milliseconds.
    WaitMs(u64),
    /// The end, with a failure.
    Fail(FailStep),
}

/// A tool call.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ToolStep {
    /// The tool.
    pub name: String,
    /// The arguments.
    #[serde(default)]
    pub input: Map<String, Value>,
    /// The arguments as the model spells them, in place of `input`; need not be JSON.
    pub arguments: Option<String>,
    /// The id of the call; `None` counts the calls of the conversation.
    pub id: Option<String>,
}

/// A failure.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct FailStep {
    /// What can be done about it.
    pub kind: FailureKind,
    /// For people.
    #[serde(default)]
    pub message: String,
    /// How long to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

/// The kinds of [`ModelFailureKind`], as a script spells them.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is the domain's kind of that name")]
pub enum FailureKind {
    Unavailable,
    Auth,
    Rejected,
    Protocol,
    ContextExceeded,
    UnsupportedStop,
}

/// The members of [`Usage`], each 0 if absent.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "each is the domain's count of that name")]
pub struct TokenCounts {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_write_tokens: u64,
}

/// A text that is no script.
#[derive(Debug, Error)]
#[error("the script cannot be read: {0}")]
pub struct ScriptError(#[from] toml::de::Error);

impl Script {
    /// Reads a script.
    pub fn from_toml(text: &str) -> Result<Self, ScriptError> {
        Ok(toml::from_str(text)?)
    }

    pub(crate) fn word_delay(&self) -> Duration {
        self.word_delay_ms.map_or(WORD_DELAY, Duration::from_millis)
    }
}

impl Rule {
    /// Whether it answers a call, how often it did so already apart.
    pub(crate) fn matches(&self, scene: &Scene) -> bool {
        let said = |text: &String| scene.text.to_lowercase().contains(&text.to_lowercase());
        self.text.as_ref().is_none_or(said) && self.turn.is_none_or(|turn| turn == scene.turn)
    }

    /// The rule with what its texts refer to.
    pub(crate) fn filled(&self, scene: &Scene) -> Self {
        let mut rule = self.clone();
        for step in &mut rule.steps {
            if let Step::Text(text) | Step::Thinking(text) = step {
                *text = scene.fill(text);
            }
        }
        rule
    }
}

impl FailStep {
    pub(crate) fn failure(&self) -> ModelFailure {
        let kind = match self.kind {
            FailureKind::Unavailable => ModelFailureKind::Unavailable,
            FailureKind::Auth => ModelFailureKind::Auth,
            FailureKind::Rejected => ModelFailureKind::Rejected,
            FailureKind::Protocol => ModelFailureKind::Protocol,
            FailureKind::ContextExceeded => ModelFailureKind::ContextExceeded,
            FailureKind::UnsupportedStop => ModelFailureKind::UnsupportedStop,
        };
        let message = match self.message.as_str() {
            "" => "the script says so",
            message => message,
        };
        ModelFailure {
            retry_after: self.retry_after_ms.map(Duration::from_millis),
            ..ModelFailure::new(kind, message)
        }
    }
}

impl From<TokenCounts> for Usage {
    fn from(counts: TokenCounts) -> Self {
        Self {
            input_tokens: counts.input_tokens,
            output_tokens: counts.output_tokens,
            cache_read_tokens: counts.cache_read_tokens,
            cache_write_tokens: counts.cache_write_tokens,
            estimated: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_in_the_documentation_is_a_script() {
        let documentation = include_str!("lib.rs");
        let example: Vec<&str> = documentation
            .lines()
            .skip_while(|line| *line != "//! ```toml")
            .skip(1)
            .take_while(|line| *line != "//! ```")
            .map(|line| line.trim_start_matches("//!"))
            .collect();

        let script = Script::from_toml(&example.join("\n")).expect("a script");

        assert_eq!(script.word_delay(), Duration::from_millis(15));
        let [weather, failing] = script.rules.as_slice() else {
            panic!("two rules");
        };
        assert_eq!(weather.steps.len(), 5);
        assert_eq!(weather.stop_reason, Some(StopReason::MaxTokens));
        assert_eq!(weather.cut_after, Some(4));
        let failure = FailStep {
            kind: FailureKind::Unavailable,
            message: "overloaded".to_owned(),
            retry_after_ms: Some(500),
        };
        assert_eq!(failing.steps, [Step::Fail(failure)]);
    }

    #[test]
    fn what_a_script_cannot_say_is_an_error_with_its_place() {
        for text in [
            "[[rule]]",
            "[[rules]]\nsteps = [{ say = 'hi' }]",
            "[[rules]]\nsteps = [{ text = 'hi', wait_ms = 3 }]",
            "[[rules]]\nsteps = [{ fail = { kind = 'odd' } }]",
            "[[rules]]\nstop_reason = 'bored'",
        ] {
            let error = Script::from_toml(text).expect_err("no script").to_string();

            assert!(error.contains("line"), "{error}");
        }
    }
}
