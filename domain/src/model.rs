//! Asking a model: the call, what streams back, the answer, and how it can fail.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::conversation::{Block, Message, ProviderData, StopReason, Usage, is_blank, json_bytes};
use crate::json;
use crate::tool::ToolDef;
use crate::{AgentId, RunId, RunTrace, SessionId, TenantId};

/// One request to a model, as the layers see and may rewrite it. What is stored never changes with it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCall {
    /// Who asks; layers read it.
    pub context: Arc<CallContext>,
    /// The model, in its provider's spelling.
    pub model: String,
    /// The system prompt: the agent's own block first, then the layers' in the order of the chain.
    pub system: Vec<SystemBlock>,
    /// The conversation, oldest first, partial messages left out. Rewrite with [`Arc::make_mut`].
    pub messages: Arc<Vec<Message>>,
    /// The tools that the model may ask for, in the order it sees them.
    pub tools: Vec<ToolDef>,
    /// The most it may answer, in tokens; `None` leaves it to the provider.
    pub max_tokens: Option<u32>,
    /// `None` leaves it to the provider.
    pub temperature: Option<f64>,
}

impl ModelCall {
    /// How many bytes of text it has, as the model reads them.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        let system = self.system.iter().map(|block| block.text.len());
        let said = self.messages.iter().flat_map(|message| &message.content);
        let tools = self
            .tools
            .iter()
            .map(|tool| tool.name.len() + tool.description.len() + json_bytes(&tool.parameters));
        system.chain(said.map(Block::text_bytes)).chain(tools).sum()
    }
}

/// Whom a call is made for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CallContext {
    /// The tenant.
    pub tenant: TenantId,
    /// The agent.
    pub agent: AgentId,
    /// The conversation.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// The turn, counting from 1.
    pub turn: u32,
    /// The claim, counting from 1.
    pub attempt: u32,
    /// The run's trace.
    pub trace: RunTrace,
}

/// One part of the system prompt. A layer that places a cache breakpoint names its index.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SystemBlock {
    /// The text; never empty.
    pub text: String,
    /// Whether the provider shall cache the prompt up to and including this block.
    pub cache_breakpoint: bool,
}

impl SystemBlock {
    /// A block without a cache breakpoint.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            cache_breakpoint: false,
        }
    }
}

/// A model's whole answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelReply {
    /// What it said, in order. May be empty.
    pub content: Vec<Block>,
    /// Why it stopped. An answer with a whole tool call says [`StopReason::ToolUse`] whatever its
    /// provider said, unless it was cut off ([`StopReason::MaxTokens`]).
    pub stop_reason: StopReason,
    /// What it cost.
    pub usage: Usage,
    /// Arguments that are not a JSON object, by the id of their call. The block has an empty object
    /// instead, and the call is never executed.
    pub invalid_inputs: BTreeMap<String, String>,
}

impl ModelReply {
    /// The same with a guess of what it cost, if its provider did not say. `sent` is how many bytes of
    /// text it answers.
    #[must_use]
    pub fn with_usage(mut self, sent: usize) -> Self {
        if !self.usage.is_told() {
            let said = self.content.iter().map(Block::text_bytes).sum();
            self.usage = Usage::estimate(sent, said);
        }
        self
    }

    /// Whether it neither says anything nor asks for a tool: reasoning alone is no answer.
    #[must_use]
    pub fn is_empty_answer(&self) -> bool {
        self.content.iter().all(|block| match block {
            Block::Text { text, .. } => is_blank(text),
            Block::ToolUse { .. } => false,
            Block::ToolResult { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::Provider(_) => true,
        })
    }
}

/// A model call that brought no whole answer.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{message}")]
pub struct ModelFailure {
    /// What can be done about it.
    pub kind: ModelFailureKind,
    /// For people: what happened, without secrets.
    pub message: String,
    /// Why the model stopped, where it stopped for a reason that the API has a word for.
    pub stop_reason: Option<StopReason>,
    /// How long the provider asked to wait.
    pub retry_after: Option<Duration>,
    /// Text and thinking that had arrived, never tool calls.
    pub partial: Vec<Block>,
    /// What it cost, as far as the provider said.
    pub usage: Usage,
    /// Whether deltas of it were shown to anybody.
    pub shown: bool,
    /// What it is called where failures are counted.
    pub cause: FailureCause,
}

/// What a failed try is called where failures are counted: few words, and none of a server's own.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum FailureCause {
    /// The server answered with this status.
    Status(u16),
    /// Nothing came in time.
    Timeout,
    /// There was no connection, or it broke off.
    Connection,
    /// What came is not an answer.
    InvalidResponse,
    /// None of these.
    Other,
}

impl FailureCause {
    /// What a failure of that kind is called by default.
    #[must_use]
    pub const fn of(kind: ModelFailureKind) -> Self {
        match kind {
            ModelFailureKind::Unavailable => Self::Connection,
            ModelFailureKind::Protocol => Self::InvalidResponse,
            ModelFailureKind::Auth
            | ModelFailureKind::Rejected
            | ModelFailureKind::ContextExceeded
            | ModelFailureKind::UnsupportedStop => Self::Other,
        }
    }
}

impl ModelFailure {
    /// A failure before anything arrived.
    #[must_use]
    pub fn new(kind: ModelFailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            stop_reason: None,
            retry_after: None,
            partial: Vec::new(),
            usage: Usage::default(),
            shown: false,
            cause: FailureCause::of(kind),
        }
    }

    /// The same by another cause than its kind's.
    #[must_use]
    pub fn caused_by(self, cause: FailureCause) -> Self {
        Self { cause, ..self }
    }
}

/// What can be done about a [`ModelFailure`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ModelFailureKind {
    /// Overloaded, unreachable, or broken off: try again later.
    Unavailable,
    /// The credentials are refused: an operator must act.
    Auth,
    /// The request is refused: the same request will be refused again.
    Rejected,
    /// What came is not the provider's protocol: try again, it may have been an accident.
    Protocol,
    /// The conversation does not fit the model.
    ContextExceeded,
    /// The model stopped in a way that the loop does not resume.
    UnsupportedStop,
}

impl ModelFailureKind {
    /// Whether another try may bring an answer.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::Unavailable | Self::Protocol => true,
            Self::Auth | Self::Rejected | Self::ContextExceeded | Self::UnsupportedStop => false,
        }
    }
}

/// One thing that a provider's stream says, in hango's terms. Blocks are told apart by `index`, which
/// counts up in the order of the answer's blocks but may have gaps.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// More of a text block.
    Text {
        /// The block.
        index: u32,
        /// What is appended.
        text: String,
    },
    /// More of a thinking block.
    Thinking {
        /// The block.
        index: u32,
        /// What is appended.
        text: String,
    },
    /// The signature of a thinking block; the last one stands.
    Signature {
        /// The block.
        index: u32,
        /// The signature.
        signature: String,
    },
    /// A whole block of reasoning that its provider keeps to itself.
    RedactedThinking {
        /// The block.
        index: u32,
        /// The provider's own encoding.
        data: String,
    },
    /// A tool call begins.
    ToolUse {
        /// The block.
        index: u32,
        /// The provider's id of it; empty when it sent none.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of a tool call's arguments, as JSON text.
    ToolInput {
        /// The block.
        index: u32,
        /// What is appended; never parsed before the stream is complete.
        json: String,
    },
    /// A whole block of a kind that hango does not know.
    Provider {
        /// The block.
        index: u32,
        /// What came.
        data: ProviderData,
    },
    /// What the provider attached to a block of text or reasoning, or to a tool call.
    Attach {
        /// The block.
        index: u32,
        /// What came.
        data: ProviderData,
    },
    /// What the provider calls the answer; what is said later stands.
    Named(AnswerNames),
    /// What the answer cost so far; the last one stands.
    Usage(Usage),
    /// Why the model stopped. Without it a stream is not complete.
    Stop(Stop),
}

impl StreamEvent {
    /// About how many bytes it adds to the answer.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text { text, .. } | Self::Thinking { text, .. } => text.len(),
            Self::Signature { signature, .. } => signature.len(),
            Self::RedactedThinking { data, .. } => data.len(),
            Self::ToolUse { id, name, .. } => id.len() + name.len(),
            Self::ToolInput { json, .. } => json.len(),
            Self::Provider { data, .. } | Self::Attach { data, .. } => {
                data.provider.len() + data.model.len() + json::weight(&data.data)
            }
            Self::Stop(Stop::Unsupported(reason)) => reason.len(),
            Self::Named(names) => names.bytes(),
            Self::Usage(_) | Self::Stop(Stop::Answer(_) | Stop::ContextExceeded) => 0,
        }
    }
}

/// What a provider calls an answer, in its own words: for whoever compares with what its operators see.
/// What it does not say is `None`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AnswerNames {
    /// The answer's id.
    pub id: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// Why it stopped.
    pub finish_reason: Option<String>,
}

/// Whether a text is short enough to be a name, and one at all.
fn is_name(text: &str) -> bool {
    (1..=256).contains(&text.len())
}

impl AnswerNames {
    /// What a provider says, without what is too long to be a name: a server may send anything.
    #[must_use]
    pub fn of(id: Option<&str>, model: Option<&str>, finish_reason: Option<&str>) -> Self {
        let name = |text: Option<&str>| text.filter(|it| is_name(it)).map(str::to_owned);
        Self {
            id: name(id),
            model: name(model),
            finish_reason: name(finish_reason),
        }
    }

    /// Adds what is said later. What is too long to be a name is none.
    pub fn add(&mut self, later: Self) {
        let name = |name: Option<String>| name.filter(|it| is_name(it));
        self.id = name(later.id).or(self.id.take());
        self.model = name(later.model).or(self.model.take());
        self.finish_reason = name(later.finish_reason).or(self.finish_reason.take());
    }

    fn bytes(&self) -> usize {
        let names = [&self.id, &self.model, &self.finish_reason];
        names.into_iter().flatten().map(String::len).sum()
    }
}

/// Why a model stopped, as its provider says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Stop {
    /// With an answer.
    Answer(StopReason),
    /// Because the conversation does not fit.
    ContextExceeded,
    /// In a way the loop does not resume; the provider's own word.
    Unsupported(String),
}
