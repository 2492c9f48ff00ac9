//! One item of the answer: what is known of it while it arrives, and what its whole says.

use hango_domain::json;
use hango_domain::model::StreamEvent;
use serde_json::{Map, Value};

use super::frame::{Addition, Head, Piece, Wrong};

/// An item that has begun.
#[derive(Debug)]
pub(crate) struct Item {
    /// Its block.
    pub(crate) at: u32,
    /// The server's number of it.
    pub(crate) index: Option<u32>,
    /// Empty if there is none.
    pub(crate) id: String,
    pub(crate) kind: Kind,
    /// Whether nothing more comes of it.
    pub(crate) is_whole: bool,
}

/// What an item is.
#[derive(Debug)]
pub(crate) enum Kind {
    Message(Told),
    Reasoning(Told),
    Call(Call),
    /// One that hango has no word for.
    Kept,
}

/// What was passed on of an item.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// The part that came last.
    part: Option<(Piece, u32)>,
}

/// A call, which is told of when the answer is over.
#[derive(Debug, Default)]
pub(crate) struct Call {
    /// Empty while none came.
    pub(crate) id: String,
    /// Empty while none came.
    pub(crate) name: String,
    /// JSON text.
    pub(crate) arguments: String,
    /// What else the item has; `None` if its whole did not come.
    pub(crate) rest: Option<Map<String, Value>>,
}

/// What the whole of an item says.
pub(crate) struct Whole {
    /// What people read of it.
    pub(crate) text: String,
    /// Whether the model refuses.
    pub(crate) refuses: bool,
    /// The reasoning that only the server reads.
    pub(crate) signature: String,
    /// All else, to go back with it.
    pub(crate) rest: Map<String, Value>,
}

impl Kind {
    /// What an item of that type is.
    pub(crate) fn named(kind: &str) -> Self {
        match kind {
            "message" => Self::Message(Told::default()),
            "reasoning" => Self::Reasoning(Told::default()),
            "function_call" => Self::Call(Call::default()),
            _ => Self::Kept,
        }
    }

    /// What an item is that is added to.
    pub(crate) fn of(what: Piece) -> Self {
        Self::named(match what {
            Piece::Text | Piece::Refusal => "message",
            Piece::Summary | Piece::Reasoning => "reasoning",
            Piece::Arguments => "function_call",
        })
    }

    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl Item {
    /// Whether it has that id, one way or the other: calls have two, and some servers send only one.
    pub(crate) fn is_named(&self, id: &str) -> bool {
        let call = match &self.kind {
            Kind::Call(call) => call.id.as_str(),
            Kind::Message(_) | Kind::Reasoning(_) | Kind::Kept => "",
        };
        !id.is_empty() && (self.id == id || call == id)
    }

    /// Takes in what tells it from others, as far as it is not known.
    pub(crate) fn learn(&mut self, head: Head) {
        let learn = |known: &mut String, told: Option<String>| {
            if known.is_empty() {
                *known = told.unwrap_or_default();
            }
        };
        learn(&mut self.id, head.id);
        if let Kind::Call(call) = &mut self.kind {
            learn(&mut call.id, head.call_id);
            learn(&mut call.name, head.name);
        }
    }

    /// Passes on more of it. What is added to a call waits.
    pub(crate) fn add(&mut self, addition: Addition, out: &mut Vec<StreamEvent>) {
        let Addition {
            what, part, more, ..
        } = addition;
        if more.is_empty() {
            return;
        }
        let index = self.at;
        match &mut self.kind {
            Kind::Message(told) => {
                told.part = Some((what, part));
                out.push(StreamEvent::Text { index, text: more });
            }
            Kind::Reasoning(told) => {
                let before = told.part.replace((what, part));
                if before.is_some_and(|before| before != (what, part)) {
                    let text = "\n\n".to_owned();
                    out.push(StreamEvent::Thinking { index, text });
                }
                out.push(StreamEvent::Thinking { index, text: more });
            }
            Kind::Call(call) => call.arguments.push_str(&more),
            Kind::Kept => {}
        }
    }
}

impl Told {
    /// Whether nothing was.
    pub(crate) fn is_nothing(&self) -> bool {
        self.part.is_none()
    }
}

impl Whole {
    /// Takes a message apart.
    pub(crate) fn message(mut item: Map<String, Value>) -> Result<Self, Wrong> {
        let mut whole = Self::nothing();
        let mut content = item.remove("content").unwrap_or_default();
        for part in parts(&content)? {
            whole.refuses |= part.get("type").is_some_and(|kind| kind == "refusal");
            for name in ["text", "refusal"] {
                whole.text.push_str(text_of(part, name));
            }
        }
        item.remove("role");
        // They count the characters of their own part.
        if let Some([only]) = content.as_array_mut().map(Vec::as_mut_slice)
            && let Some(annotations) = only.get_mut("annotations")
        {
            item.insert("annotations".to_owned(), annotations.take());
        }
        whole.rest = something(item);
        Ok(whole)
    }

    /// Takes reasoning apart: its summary, or where it has none, what it says itself.
    pub(crate) fn reasoning(mut item: Map<String, Value>) -> Result<Self, Wrong> {
        let mut whole = Self::nothing();
        for list in ["summary", "content"].map(|name| item.get(name)) {
            let parts = parts(list.unwrap_or(&Value::Null))?;
            let texts = parts.iter().map(|part| text_of(part, "text"));
            let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
            if whole.text.is_empty() {
                whole.text = texts.join("\n\n");
            }
        }
        if let Some(Value::String(signature)) = item.remove("encrypted_content") {
            whole.signature = signature;
        }
        whole.rest = something(item);
        // The API wants it, though there be nothing in it.
        let summary = whole.rest.entry("summary");
        summary.or_insert_with(|| Value::Array(Vec::new()));
        Ok(whole)
    }

    fn nothing() -> Self {
        Self {
            text: String::new(),
            refuses: false,
            signature: String::new(),
            rest: Map::new(),
        }
    }
}

impl Call {
    /// Completes it. Its arguments are JSON text, of some servers the object itself.
    pub(crate) fn complete(&mut self, mut item: Map<String, Value>) {
        item.remove("call_id");
        item.remove("name");
        match item.remove("arguments") {
            None | Some(Value::Null) => {}
            Some(Value::String(json)) if json.is_empty() => {}
            Some(Value::String(json)) => self.arguments = json,
            Some(object) => self.arguments = json::text(&object),
        }
        self.rest = Some(something(item));
    }
}

/// The members that say something: the API refuses some of those that it sends as `null`.
fn something(mut item: Map<String, Value>) -> Map<String, Value> {
    item.retain(|_, value| match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => true,
    });
    item
}

fn parts(list: &Value) -> Result<&[Value], Wrong> {
    match list {
        Value::Null => Ok(&[]),
        Value::Array(parts) => Ok(parts),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            Err(Wrong::Corrupt("with a member of a wrong type"))
        }
    }
}

fn text_of<'a>(part: &'a Value, name: &str) -> &'a str {
    part.get(name).and_then(Value::as_str).unwrap_or_default()
}
