//! What the wire carries: one chunk of a stream, or a whole answer, which is one chunk with a `message`
//! in place of a `delta`.
//!
//! * Everything may be absent or `null`, and what is not named here is passed over: servers add members
//!   of their own.
//! * A member of a wrong type is no chunk. Read leniently is what an answer must not be lost over: its
//!   bill, and what only its server understands.
//! * A chunk takes no more memory than a few times its text, whatever a server puts into it. Lists are
//!   short, and what may be of any form stays text until it is known to be small.

use std::fmt;
use std::marker::PhantomData;

use hango_domain::conversation::Usage;
use hango_domain::model::AnswerNames;
use hango_provider_http::error_of;
use serde::de::{self, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The most elements that a list may have.
const MAX_LIST: usize = 256;

/// The most bytes of JSON of which it does not matter how much memory they become.
const SMALL: usize = 64 << 10;

/// How much is kept of what should be small and is not.
const BEGINNING: usize = 2 << 10;

/// One `data:` of the stream.
#[derive(Debug, Deserialize)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow)]
    pub(crate) choices: Option<Few<Choice<'a>>>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    /// `error` where the chunk itself is one.
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    request_id: Option<&'a RawValue>,
}

/// One candidate of the answer; hango asks for one.
#[derive(Debug, Deserialize)]
pub(crate) struct Choice<'a> {
    pub(crate) index: Option<u64>,
    pub(crate) finish_reason: Option<String>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    message: Option<Delta<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// What a chunk adds to the answer.
#[derive(Debug, Deserialize)]
pub(crate) struct Delta<'a> {
    pub(crate) content: Option<Content>,
    pub(crate) refusal: Option<String>,
    pub(crate) reasoning_content: Option<String>,
    /// The same under another name, of newer servers.
    pub(crate) reasoning: Option<String>,
    #[serde(borrow)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) tool_calls: Option<Few<CallDelta<'a>>>,
    /// The protocol's older way to ask for a tool.
    pub(crate) function_call: Option<IgnoredAny>,
    #[serde(borrow)]
    extra_content: Option<&'a RawValue>,
}

/// A fragment of a tool call.
#[derive(Debug, Deserialize)]
pub(crate) struct CallDelta<'a> {
    pub(crate) index: Option<u64>,
    pub(crate) id: Option<String>,
    #[serde(borrow)]
    pub(crate) function: Option<FunctionDelta<'a>>,
    #[serde(borrow)]
    extra_content: Option<&'a RawValue>,
}

/// A fragment of the function that a call names.
#[derive(Debug, Deserialize)]
pub(crate) struct FunctionDelta<'a> {
    pub(crate) name: Option<String>,
    /// A string of JSON text; of some servers the object itself.
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// What stands in a chunk beside the protocol's own members. Only Google's is known.
#[derive(Debug, Default, Deserialize)]
struct Extra {
    google: Option<Google>,
}

#[derive(Debug, Deserialize)]
struct Google {
    /// Whether what is said is a thought.
    thought: Option<bool>,
    thought_signature: Option<String>,
}

/// A piece of reasoning that a server wants back as it came. Which members there are, its `type` says.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Detail {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signature: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) index: Option<u64>,
}

/// A name that a server gives; what is too long for one is not even read.
pub(crate) fn name(json: Option<&RawValue>) -> Option<String> {
    let json = json?.get();
    let is_short = json.len() <= 4096;
    is_short.then(|| serde_json::from_str(json).ok()).flatten()
}

impl Chunk<'_> {
    /// What the server calls the answer; `None` where it says nothing.
    pub(crate) fn names(&self) -> Option<AnswerNames> {
        let (id, model) = (name(self.id), name(self.model));
        let names = AnswerNames::of(id.as_deref(), model.as_deref(), None);
        (names != AnswerNames::default()).then_some(names)
    }

    /// The error that the chunk reports, if it reports one; `json` is its text.
    pub(crate) fn error(&self, json: &str) -> Option<Value> {
        if self
            .object
            .is_some_and(|object| object.get() == "\"error\"")
        {
            return Some(small(json));
        }
        let first = self.choices.as_ref().and_then(|choices| choices.0.first());
        let errors = [self.error, first.and_then(|choice| choice.error)];
        let mut payloads = errors.into_iter().flatten().map(|error| {
            let id = self.request_id.map(RawValue::get).map(small);
            json!({"error": small(error.get()), "request_id": id})
        });
        payloads.find(|payload| error_of(payload).is_some())
    }

    /// What the answer cost so far, if the chunk tells.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let wire = self.usage.map(RawValue::get).map(small)?;
        wire.is_object().then(|| usage(&wire))
    }
}

impl<'a> Choice<'a> {
    /// What it adds: some servers send the whole `message` so far beside each delta.
    pub(crate) fn addition(self) -> Option<Delta<'a>> {
        self.delta.or(self.message)
    }
}

impl Delta<'_> {
    /// Reasoning to send back; none if it is not as documented.
    pub(crate) fn details(&self) -> Vec<Detail> {
        let details = self.reasoning_details.map(RawValue::get);
        Few::all(details.and_then(|json| serde_json::from_str(json).ok()))
    }

    /// Whether what it says is a thought.
    pub(crate) fn is_thought(&self) -> bool {
        let google = google(self.extra_content);
        google.and_then(|google| google.thought).unwrap_or(false)
    }
}

impl CallDelta<'_> {
    /// The signature of the thought that led to the call.
    pub(crate) fn signature(&self) -> Option<String> {
        google(self.extra_content)?.thought_signature
    }
}

impl FunctionDelta<'_> {
    /// More of the arguments, as JSON text.
    pub(crate) fn arguments(&self) -> String {
        let json = self.arguments.map(RawValue::get).unwrap_or_default();
        serde_json::from_str(json).unwrap_or_else(|_| json.to_owned())
    }
}

/// Text, or a list of parts, sorted into what is said and what is thought.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub(crate) text: String,
    pub(crate) thinking: String,
}

/// A part of [`Content`]; of an unknown kind if it has neither.
#[derive(Debug, Deserialize)]
struct Part<'a> {
    text: Option<String>,
    /// Parts of their own, or a text.
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    /// Whether the text is a thought.
    thought: Option<bool>,
}

impl Content {
    fn read(json: &str) -> serde_json::Result<Self> {
        let mut content = Self::default();
        if json.starts_with('"') {
            content.text = serde_json::from_str(json)?;
            return Ok(content);
        }
        for part in serde_json::from_str::<Few<Part<'_>>>(json)?.0 {
            if let Some(thinking) = part.thinking {
                content.thinking.push_str(&Self::words(thinking.get())?);
            }
            let text = part.text.unwrap_or_default();
            match part.thought {
                Some(true) => content.thinking.push_str(&text),
                Some(false) | None => content.text.push_str(&text),
            }
        }
        Ok(content)
    }

    /// A text, or the texts of a list of parts. What is within those stays unread, however deep it goes.
    fn words(json: &str) -> serde_json::Result<String> {
        if json.starts_with('"') {
            return serde_json::from_str(json);
        }
        let Few(parts) = serde_json::from_str::<Few<Part<'_>>>(json)?;
        Ok(parts.into_iter().filter_map(|part| part.text).collect())
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Self::read(raw.get()).map_err(de::Error::custom)
    }
}

/// A list of no more elements than anybody needs.
#[derive(Debug)]
pub(crate) struct Few<T>(Vec<T>);

impl<T> Few<T> {
    /// The elements of a list that may be absent.
    pub(crate) fn all(list: Option<Self>) -> Vec<T> {
        list.map(|list| list.0).unwrap_or_default()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Elements<T> {
            type Value = Few<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of at most {MAX_LIST} elements")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Few<T>, A::Error> {
                let mut few = Vec::new();
                while let Some(element) = list.next_element()? {
                    if few.len() == MAX_LIST {
                        return Err(de::Error::invalid_length(MAX_LIST + 1, &self));
                    }
                    few.push(element);
                }
                Ok(Few(few))
            }
        }

        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

/// A value that should be small; the beginning of its text if it is not.
fn small(json: &str) -> Value {
    let value = (json.len() <= SMALL).then(|| serde_json::from_str(json).ok());
    let beginning = || &json[..json.floor_char_boundary(BEGINNING)];
    value.flatten().unwrap_or_else(|| beginning().into())
}

fn google(extra: Option<&RawValue>) -> Option<Google> {
    let extra: Option<Extra> = serde_json::from_str(extra?.get()).ok();
    extra?.google
}

/// Tokens, whatever of them the server counted.
///
/// Some servers leave reasoning out of the completion; the total tells.
fn usage(wire: &Value) -> Usage {
    let count = |pointer: &str| wire.pointer(pointer).and_then(Value::as_u64);
    let input = count("/prompt_tokens").unwrap_or(0);
    let completion = count("/completion_tokens").unwrap_or(0);
    let total = count("/total_tokens").unwrap_or(0);
    Usage {
        input_tokens: input,
        output_tokens: completion.max(total.saturating_sub(input)),
        cache_read_tokens: count("/prompt_tokens_details/cached_tokens")
            .or_else(|| count("/prompt_cache_hit_tokens"))
            .unwrap_or(0),
        cache_write_tokens: count("/prompt_tokens_details/cache_write_tokens").unwrap_or(0),
        estimated: false,
    }
}

#[cfg(test)]
mod tests;
