//! An event of the stream, by its class.
//!
//! * A known frame has the members that it must have. What else it has is passed over and costs nothing:
//!   events at both ends of an answer repeat the request, with its instructions and tools.
//! * An unknown one is skipped: the protocol has dozens, and adds more at any time.
//! * Anything else is corrupt, and ends the answer: a known frame without its members, or what is not
//!   JSON at all. Were it skipped, a part of the answer would silently be missing.
//!
//! One that reports an error ends it too, with what it reports. Items stay the text they are: whoever
//! keeps one reads it.

use std::fmt;
use std::marker::PhantomData;

use hango_domain::json;
use hango_domain::model::AnswerNames;
use serde::de::{Error, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::chat::name;

/// How many items an answer may have.
pub(crate) const MAX_ITEMS: usize = 256;

/// What an error, or a bill, may take of memory.
const MAX_REPORT: usize = 64 << 10;

/// How the kinds of events begin that say nothing which another event does not say too.
const PASSED_OVER: [&str; 8] = [
    "response.content_part.",
    "response.created",
    "response.in_progress",
    "response.output_text.",
    "response.queued",
    "response.reasoning_",
    "response.refusal.",
    "response.web_search_call.",
];

/// One event of the stream.
#[derive(Debug)]
pub(crate) enum Frame<'a> {
    /// An item begins.
    Begins { index: Option<u32>, item: Head },
    /// More of an item.
    Adds(Addition),
    /// A call's arguments are complete.
    Arguments(Arguments),
    /// An item is complete.
    Ends {
        index: Option<u32>,
        item: &'a RawValue,
    },
    /// The answer ended, in that way.
    Over(Status, Response<'a>),
    /// Nothing that says anything.
    Nothing,
    /// One of a kind that is not known.
    Unknown(String),
}

/// What tells an item from others.
#[derive(Debug, Deserialize)]
pub(crate) struct Head {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) id: Option<String>,
    pub(crate) call_id: Option<String>,
    pub(crate) name: Option<String>,
}

/// More of an item.
#[derive(Debug)]
pub(crate) struct Addition {
    pub(crate) what: Piece,
    pub(crate) index: Option<u32>,
    pub(crate) id: String,
    /// Which of the item's parts it belongs to.
    pub(crate) part: u32,
    pub(crate) more: String,
}

/// What is added to an item.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Piece {
    Text,
    Refusal,
    /// Reasoning, put into words for people.
    Summary,
    /// The reasoning itself, of models that show it.
    Reasoning,
    Arguments,
}

/// All of a call's arguments.
#[derive(Debug, Deserialize)]
pub(crate) struct Arguments {
    #[serde(rename = "output_index")]
    pub(crate) index: Option<u32>,
    #[serde(rename = "item_id")]
    pub(crate) id: Option<String>,
    #[serde(rename = "arguments")]
    pub(crate) json: String,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Status {
    Completed,
    Incomplete,
    Failed,
}

/// What holds of the whole answer.
#[derive(Debug, Deserialize)]
pub(crate) struct Response<'a> {
    status: Option<String>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    incomplete_details: Option<IncompleteDetails>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<Items<'a>>,
}

#[derive(Debug, Deserialize)]
struct IncompleteDetails {
    reason: Option<String>,
}

/// Why a frame ends the answer.
#[derive(Debug)]
pub(crate) enum Wrong {
    /// It is corrupt, in words that go on where "an event" left off.
    Corrupt(&'static str),
    /// The server failed; what it says of that.
    Reported(Value),
}

/// What tells a frame's class.
#[derive(Deserialize)]
struct Class {
    #[serde(rename = "type")]
    kind: Option<String>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Begins {
    output_index: Option<u32>,
    item: Head,
}

#[derive(Deserialize)]
struct Delta {
    output_index: Option<u32>,
    item_id: Option<String>,
    content_index: Option<u32>,
    summary_index: Option<u32>,
    #[serde(rename = "delta")]
    more: String,
}

#[derive(Deserialize)]
struct Ends<'a> {
    output_index: Option<u32>,
    #[serde(borrow)]
    item: &'a RawValue,
}

#[derive(Deserialize)]
struct Over<'a> {
    #[serde(borrow)]
    response: Response<'a>,
}

/// An error, beside or within the event that reports it.
#[derive(Deserialize)]
struct Report<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    request_id: Option<&'a RawValue>,
}

/// A list of at most [`MAX_ITEMS`].
#[derive(Debug)]
struct Items<'a>(Vec<&'a RawValue>);

impl<'a> Frame<'a> {
    /// Reads an event of that name. Its `type` says what it is; where it has none, its name does.
    pub(crate) fn read(name: Option<&str>, json: &'a str) -> Result<Self, Wrong> {
        let json = json.trim();
        if json.is_empty() || json == "[DONE]" {
            return Ok(Self::Nothing);
        }
        let class: Class = parse(json)?;
        let Some(kind) = class.kind.as_deref().or(name) else {
            return match class.error {
                Some(_) => Err(Wrong::Reported(parse::<Report<'_>>(json)?.payload())),
                None => Ok(Self::Nothing),
            };
        };
        Ok(match kind {
            "response.output_item.added" => {
                let Begins { output_index, item } = parse(json)?;
                let index = output_index;
                Self::Begins { index, item }
            }
            "response.output_text.delta" => Self::adds(Piece::Text, json)?,
            "response.refusal.delta" => Self::adds(Piece::Refusal, json)?,
            "response.reasoning_summary_text.delta" => Self::adds(Piece::Summary, json)?,
            "response.reasoning_text.delta" => Self::adds(Piece::Reasoning, json)?,
            "response.function_call_arguments.delta" => Self::adds(Piece::Arguments, json)?,
            "response.function_call_arguments.done" => Self::Arguments(parse(json)?),
            "response.output_item.done" => {
                let Ends { output_index, item } = parse(json)?;
                let index = output_index;
                Self::Ends { index, item }
            }
            "response.completed" => Self::over(Status::Completed, json)?,
            "response.incomplete" => Self::over(Status::Incomplete, json)?,
            "response.failed" => Self::over(Status::Failed, json)?,
            "error" => return Err(Wrong::Reported(parse::<Report<'_>>(json)?.payload())),
            known if PASSED_OVER.iter().any(|begin| known.starts_with(begin)) => Self::Nothing,
            unknown => Self::Unknown(unknown.to_owned()),
        })
    }

    fn adds(what: Piece, json: &str) -> Result<Self, Wrong> {
        let delta: Delta = parse(json)?;
        let part = match what {
            Piece::Summary => delta.summary_index,
            Piece::Text | Piece::Refusal | Piece::Reasoning | Piece::Arguments => {
                delta.content_index
            }
        };
        Ok(Self::Adds(Addition {
            what,
            index: delta.output_index,
            id: delta.item_id.unwrap_or_default(),
            part: part.unwrap_or(0),
            more: delta.more,
        }))
    }

    /// A server that calls a broken answer completed is believed where it says so within.
    fn over(by_event: Status, json: &'a str) -> Result<Self, Wrong> {
        let Over { response } = parse(json)?;
        let status = match (by_event, response.status()) {
            (Status::Completed, Some(status)) => status,
            (by_event, _) => by_event,
        };
        Ok(Self::Over(status, response))
    }
}

impl<'a> Response<'a> {
    /// Reads an answer that came in one piece.
    pub(crate) fn read(json: &'a str) -> Result<(Status, Self), Wrong> {
        let none = Wrong::Corrupt("that is no response");
        let Ok(response) = serde_json::from_str::<Self>(json) else {
            // A proxy's error need not look like anything of this protocol's.
            return Err(match serde_json::from_str::<Report<'_>>(json) {
                Ok(report) if report.error.is_some() => Wrong::Reported(report.payload()),
                Ok(_) | Err(_) => none,
            });
        };
        match response.status() {
            Some(status) => Ok((status, response)),
            None if response.error.is_some() => Ok((Status::Failed, response)),
            None => Err(none),
        }
    }

    /// The answer's items, in their order.
    pub(crate) fn output(&self) -> &[&'a RawValue] {
        self.output.as_ref().map_or(&[], |items| &items.0)
    }

    /// Why it is not complete, in the server's word.
    pub(crate) fn reason(&self) -> &str {
        let details = self.incomplete_details.as_ref();
        let reason = details.and_then(|details| details.reason.as_deref());
        reason.unwrap_or("incomplete")
    }

    /// What the server calls it.
    pub(crate) fn names(&self) -> AnswerNames {
        let (id, model) = (name(self.id), name(self.model));
        let details = self.incomplete_details.as_ref();
        let reason = details.and_then(|details| details.reason.as_deref());
        let reason = reason.or(self.status.as_deref());
        AnswerNames::of(id.as_deref(), model.as_deref(), reason)
    }

    /// What it cost, as the server tells it.
    pub(crate) fn usage(&self) -> Option<Value> {
        small(self.usage).filter(Value::is_object)
    }

    /// The error that it ended with.
    pub(crate) fn report(&self) -> Value {
        json!({"error": small(self.error)})
    }

    fn status(&self) -> Option<Status> {
        match self.status.as_deref()? {
            "completed" => Some(Status::Completed),
            "incomplete" => Some(Status::Incomplete),
            "failed" | "cancelled" => Some(Status::Failed),
            _ => None,
        }
    }
}

impl Head {
    /// What tells this item from others.
    pub(crate) fn of(item: &RawValue) -> Result<Self, Wrong> {
        parse(item.get())
    }

    /// Its ids, either of which may be empty.
    pub(crate) fn ids(&self) -> [&str; 2] {
        [&self.id, &self.call_id].map(|id| id.as_deref().unwrap_or_default())
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self) -> usize {
        let names = [&self.id, &self.call_id, &self.name];
        names.into_iter().flatten().map(String::len).sum()
    }
}

impl Report<'_> {
    fn payload(&self) -> Value {
        let error = small(self.error).filter(|error| !error.is_null());
        let flat = || json!({"code": small(self.code), "message": small(self.message)});
        json!({
            "error": error.unwrap_or_else(flat),
            "request_id": small(self.request_id),
        })
    }
}

/// A value that should be small; none if it is not.
fn small(json: Option<&RawValue>) -> Option<Value> {
    json::read(json?.get(), MAX_REPORT).ok()
}

/// Reads JSON as what it must be.
fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, Wrong> {
    serde_json::from_str(json).map_err(|error| {
        Wrong::Corrupt(if error.is_data() {
            "that lacks what an event of its kind has"
        } else {
            "that is not JSON"
        })
    })
}

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

struct Elements<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for Elements<'a> {
    type Value = Items<'a>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "at most {MAX_ITEMS} items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = elements.next_element()? {
            if items.len() == MAX_ITEMS {
                return Err(Error::custom("too many items"));
            }
            items.push(item);
        }
        Ok(Items(items))
    }
}
