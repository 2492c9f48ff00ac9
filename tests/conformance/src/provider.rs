//! What every provider must do, as `ports/src/provider.rs` and `domain/src/model.rs` say it.
//!
//! A provider stands between hango and somebody else's model. Its tests write once how the other side
//! [acts](Act); the checks then look at nothing but the port. [`remote`] is for providers that reach
//! another process: it looks at the other side too.

pub mod answer;
mod asking;
pub mod failure;
pub mod remote;

use std::sync::Arc;
use std::time::Duration;

use hango_domain::conversation::{StopReason, Usage};
use hango_domain::model::ModelFailureKind;
use hango_ports::Provider;
use serde_json::{Map, Value};

use crate::other_side::OtherSide;

/// What happens behind the provider in a check.
#[derive(Clone, Debug)]
pub struct Play {
    /// What becomes of the calls, in the order in which they arrive.
    pub acts: Vec<Act>,
    /// How long the provider is told to wait, for a connection, for the first byte and between two.
    /// One that waits for nobody may pass it over.
    pub patience: Duration,
}

/// What becomes of one call.
#[derive(Clone, Debug)]
pub enum Act {
    /// A whole answer.
    Answers(Spoken),
    /// These words arrive, each by itself, and then the connection ends without a reason.
    BreaksOff(Vec<String>),
    /// These words arrive, each by itself, and then nothing more, while the connection stays. Without
    /// words nothing arrives at all.
    Hangs(Vec<String>),
    /// The call ends in such a failure, in whatever way the protocol says it. Where the other side has
    /// words for people, they quote the credentials that it was called with.
    Fails(ModelFailureKind),
    /// The other side is too busy, and says when to come back.
    Busy(Duration),
}

/// A whole answer, as the other side gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct Spoken {
    /// The text, in the pieces in which it arrives.
    pub words: Vec<String>,
    /// The tool calls behind the text.
    pub calls: Vec<Called>,
    /// Why it ends: [`StopReason::EndTurn`], [`StopReason::ToolUse`] or [`StopReason::MaxTokens`].
    pub stop: StopReason,
    /// What it cost. Only input and output are counted.
    pub usage: Usage,
}

/// A tool call, as the other side makes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub input: Map<String, Value>,
}

/// A provider that reaches another process, and that process.
pub struct RemoteProvider {
    /// The provider.
    pub provider: Arc<dyn Provider>,
    /// Whom it reaches.
    pub other_side: Arc<dyn OtherSide>,
    /// The credential that it was configured with.
    pub secret: String,
}

impl Play {
    /// These acts, for a provider that has all the time it needs.
    fn of(acts: impl IntoIterator<Item = Act>) -> Self {
        Self {
            acts: acts.into_iter().collect(),
            patience: Duration::from_mins(1),
        }
    }

    /// The same for a provider that soon loses patience.
    fn impatient(self) -> Self {
        Self {
            patience: Duration::from_millis(100),
            ..self
        }
    }
}

impl Spoken {
    /// This text and nothing else.
    fn text(words: &[&str]) -> Self {
        Self {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            calls: Vec::new(),
            stop: StopReason::EndTurn,
            usage: Usage {
                input_tokens: 21,
                output_tokens: 4,
                ..Usage::default()
            },
        }
    }

    /// An act of its own.
    fn act(&self) -> Act {
        Act::Answers(self.clone())
    }
}
