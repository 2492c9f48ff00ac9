//! An event of the stream, by its class.
//!
//! * A known frame has the members that it must have; what else it has is passed over.
//! * An unknown one is skipped: the protocol may add kinds of events at any time.
//! * Anything else is corrupt, and ends the answer: a known frame without its members, or what is not
//!   JSON at all. Were it skipped, a part of the answer would silently be missing.
//!
//! One that reports an error ends it too, with what it reports.

use hango_domain::text::mend_json;
use hango_provider_http::Event;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value};

/// One event of the stream.
#[derive(Debug)]
pub(crate) enum Frame {
    /// The answer begins; what it has cost so far.
    Start { usage: Option<Value> },
    /// A block begins.
    BlockStart {
        index: u32,
        block: Map<String, Value>,
    },
    /// More of a block.
    BlockDelta {
        index: u32,
        delta: Map<String, Value>,
    },
    /// A block is complete.
    BlockStop { index: u32 },
    /// What holds of the whole answer.
    Delta { end: End, usage: Option<Value> },
    /// Nothing more comes.
    Stop,
    /// Nothing that says anything.
    Nothing,
}

/// A whole answer, in place of a stream.
#[derive(Debug, Deserialize)]
pub(crate) struct Whole {
    pub(crate) content: Vec<Map<String, Value>>,
    #[serde(flatten)]
    pub(crate) end: End,
    pub(crate) usage: Option<Value>,
}

/// Why an answer ended.
#[derive(Debug, Deserialize)]
pub(crate) struct End {
    pub(crate) stop_reason: Option<String>,
    stop_details: Option<Value>,
}

/// Why a frame ends the answer.
#[derive(Debug)]
pub(crate) enum Wrong {
    /// It is corrupt, in words that go on where "an event" left off.
    Corrupt(&'static str),
    /// The server failed; the whole payload.
    Reported(Value),
}

/// What tells a frame's class.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type")]
    kind: Option<String>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Start {
    message: Option<StartMessage>,
}

#[derive(Deserialize)]
struct StartMessage {
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct BlockStart {
    index: u32,
    content_block: Map<String, Value>,
}

#[derive(Deserialize)]
struct BlockDelta {
    index: u32,
    delta: Map<String, Value>,
}

#[derive(Deserialize)]
struct BlockStop {
    index: u32,
}

#[derive(Deserialize)]
struct Delta {
    delta: End,
    usage: Option<Value>,
}

impl Frame {
    /// Reads an event. Its `type` says what it is; where it has none, its name does.
    pub(crate) fn read(event: &Event) -> Result<Self, Wrong> {
        let data = event.data.trim();
        // Gateways end their streams so, out of a habit from another protocol.
        if data == "[DONE]" {
            return Ok(Self::Stop);
        }
        if data.is_empty() {
            return Ok(Self::Nothing);
        }
        let json = mend_json(data);
        let head: Head = parse(&json)?;
        Ok(match head.kind.as_deref().or(event.name.as_deref()) {
            Some("message_start") => Self::Start {
                usage: parse::<Start>(&json)?.message.and_then(|it| it.usage),
            },
            Some("content_block_start") => {
                let BlockStart {
                    index,
                    content_block: block,
                } = parse(&json)?;
                Self::BlockStart { index, block }
            }
            Some("content_block_delta") => {
                let BlockDelta { index, delta } = parse(&json)?;
                Self::BlockDelta { index, delta }
            }
            Some("content_block_stop") => Self::BlockStop {
                index: parse::<BlockStop>(&json)?.index,
            },
            Some("message_delta") => {
                let Delta { delta: end, usage } = parse(&json)?;
                Self::Delta { end, usage }
            }
            Some("message_stop") => Self::Stop,
            Some("error") => return Err(Wrong::Reported(parse(&json)?)),
            _ if head.kind.is_none() && head.error.is_some() => {
                return Err(Wrong::Reported(parse(&json)?));
            }
            Some(_) | None => Self::Nothing,
        })
    }
}

impl End {
    /// What the server says for people about a refusal.
    pub(crate) fn explanation(&self) -> Option<&str> {
        let explanation = self.stop_details.as_ref()?.get("explanation")?.as_str();
        explanation.filter(|text| !text.trim().is_empty())
    }
}

/// Reads JSON as what it must be.
fn parse<T: DeserializeOwned>(json: &str) -> Result<T, Wrong> {
    serde_json::from_str(json).map_err(|error| {
        Wrong::Corrupt(if error.is_data() {
            "that lacks what an event of its kind has"
        } else {
            "that is not JSON"
        })
    })
}
