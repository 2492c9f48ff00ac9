//! The members of a block, or of a delta, as they are taken out, put together and weighed.

use hango_domain::json::{self, Unreadable};
use serde_json::map::Entry;
use serde_json::{Map, Value};

use crate::frame::Wrong;

/// No kind of a block or of a delta has a longer name.
const MAX_KIND: usize = 100;

/// What a block or a delta is.
pub(crate) fn kind(members: &Map<String, Value>) -> Result<String, Wrong> {
    match members.get("type") {
        Some(Value::String(kind)) if kind.len() <= MAX_KIND => Ok(kind.clone()),
        _ => Err(Wrong::Corrupt("that does not say what it brings")),
    }
}

/// A text that may be absent or null.
pub(crate) fn optional(members: &mut Map<String, Value>, name: &str) -> Result<String, Wrong> {
    match members.remove(name) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(Wrong::Corrupt("with a member of a wrong type")),
    }
}

/// A text that must be there.
pub(crate) fn required(members: &mut Map<String, Value>, name: &str) -> Result<String, Wrong> {
    match members.remove(name) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(Wrong::Corrupt("that lacks what an event of its kind has")),
    }
}

/// Whether a member says nothing.
pub(crate) fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// Puts what a delta brings into a block: texts and lists grow, anything else is replaced.
pub(crate) fn merge(block: &mut Map<String, Value>, delta: Map<String, Value>) {
    for (name, more) in delta.into_iter().filter(|(name, _)| name != "type") {
        match block.entry(name) {
            Entry::Vacant(free) => {
                free.insert(more);
            }
            Entry::Occupied(mut taken) => match (taken.get_mut(), more) {
                (Value::String(text), Value::String(more)) => text.push_str(&more),
                (Value::Array(list), Value::Array(more)) => list.extend(more),
                (value, more) => *value = more,
            },
        }
    }
}

/// What a block will weigh more with what a delta brings.
pub(crate) fn added(block: &Map<String, Value>, delta: &Map<String, Value>) -> usize {
    let members = delta.iter().filter(|(name, _)| *name != "type");
    let weights = members.map(|(name, more)| match (block.get(name), more) {
        (Some(Value::String(_)), Value::String(more)) => more.len(),
        (_, more) => name.len() + json::weight(more),
    });
    weights.sum()
}

/// How long a text is, if it is one.
pub(crate) fn length_of(value: Option<&Value>) -> usize {
    value.and_then(Value::as_str).map_or(0, str::len)
}

/// A block with the arguments that came for it; `None` if they were cut off.
pub(crate) fn with_input(
    mut block: Map<String, Value>,
    input: &str,
    budget: usize,
) -> Result<Option<Map<String, Value>>, Unreadable> {
    if !input.is_empty() {
        match json::read(input, budget) {
            Ok(input) => block.insert("input".to_owned(), input),
            Err(Unreadable::NotJson) => return Ok(None),
            Err(too_large @ Unreadable::TooLarge(_)) => return Err(too_large),
        };
    }
    Ok(Some(block))
}
