//! An event of the stream, by its class.
//!
//! * A known frame has the members that it must have; what else it has is passed over.
//! * An unknown one is skipped: the protocol may add kinds of events at any time.
//! * Anything else is corrupt, and ends the answer: a known frame without its members, or no frame at
//!   all. Were it skipped, a part of the answer would silently be missing.
//!
//! One that reports an error ends it too, with what it reports.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// No kind of event has a longer name.
const MAX_KIND: usize = 100;

/// One event of the stream.
#[derive(Debug)]
pub(crate) enum Frame {
    /// The answer begins; what it has cost so far.
    Start(StartMessage),
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
    /// One of a kind that is not known.
    Unknown(String),
}

/// A whole answer, in place of a stream.
#[derive(Debug, Deserialize)]
pub(crate) struct Whole {
    #[serde(default, deserialize_with = "text")]
    pub(crate) id: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) model: Option<String>,
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

#[derive(Deserialize)]
struct Start {
    message: Option<StartMessage>,
}

/// What is known of an answer when it begins.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct StartMessage {
    #[serde(default, deserialize_with = "text")]
    pub(crate) id: Option<String>,
    #[serde(default, deserialize_with = "text")]
    pub(crate) model: Option<String>,
    pub(crate) usage: Option<Value>,
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
    /// The frame that a payload is. Its `type` says which; where it has none, the event's name does.
    pub(crate) fn of(name: Option<&str>, payload: Value) -> Result<Self, Wrong> {
        let kind = match (payload.is_object(), payload.get("type")) {
            (true, None | Some(Value::Null)) => None,
            (true, Some(Value::String(kind))) if kind.len() <= MAX_KIND => Some(kind.clone()),
            (true, Some(_)) | (false, _) => return Err(LACKING),
        };
        let reports = payload.get("error").is_some_and(|it| !it.is_null());
        if kind.is_none() && reports {
            return Err(Wrong::Reported(payload));
        }
        Ok(match kind.as_deref().or(name) {
            Some("message_start") => {
                Self::Start(parse::<Start>(payload)?.message.unwrap_or_default())
            }
            Some("content_block_start") => {
                let BlockStart {
                    index,
                    content_block: block,
                } = parse(payload)?;
                Self::BlockStart { index, block }
            }
            Some("content_block_delta") => {
                let BlockDelta { index, delta } = parse(payload)?;
                Self::BlockDelta { index, delta }
            }
            Some("content_block_stop") => Self::BlockStop {
                index: parse::<BlockStop>(payload)?.index,
            },
            Some("message_delta") => {
                let Delta { delta: end, usage } = parse(payload)?;
                Self::Delta { end, usage }
            }
            Some("message_stop") => Self::Stop,
            Some("error") => return Err(Wrong::Reported(payload)),
            Some("ping") | None => Self::Nothing,
            Some(unknown) => Self::Unknown(unknown.to_owned()),
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

/// A frame without what it must have.
const LACKING: Wrong = Wrong::Corrupt("that lacks what an event of its kind has");

/// A member that is told only where it is text: an answer is never lost over its name.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => Some(text),
        _ => None,
    })
}

/// Takes a payload for what it must be.
fn parse<T: DeserializeOwned>(payload: Value) -> Result<T, Wrong> {
    serde_json::from_value(payload).map_err(|_| LACKING)
}
