//! Reads JSON that strangers send, in an amount of memory that is known before.
//!
//! * A few bytes of JSON can become a hundred times as many of [`Value`]s. So every value has a
//!   [weight], about what it takes of memory, and reading stops where a budget is spent. Text is counted
//!   before it is read: `serde_json` collects a string that has an escape in a buffer of its own, which
//!   can be twice as large.
//! * Half a surrogate pair can't be in a Rust string. It can come as an escape, and is read as U+FFFD
//!   where a strict parser refuses the whole document.

use std::cell::Cell;
use std::fmt::{self, Write};

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::text::mend_json;

/// What a value weighs beside its text: its place in a list that has room to grow, or in a map.
const VALUE: usize = 112;

/// What an object weighs beside its members, for it has room for several.
const OBJECT: usize = 640;

/// Why a text could not be read.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum Unreadable {
    /// It is not JSON, or nested too deeply.
    #[error("not JSON")]
    NotJson,
    /// It weighs more than this.
    #[error("JSON that takes more than {0} bytes of memory")]
    TooLarge(usize),
}

/// The value that `json` is, if its values and the text of `json` weigh no more than `budget`.
pub fn read(json: &str, budget: usize) -> Result<Value, Unreadable> {
    let too_large = Unreadable::TooLarge(budget);
    let left = Cell::new(Some(budget.checked_sub(json.len()).ok_or(too_large)?));
    let json = mend_json(json);
    let mut reader = serde_json::Deserializer::from_str(&json);
    let value = Weighed(&left).deserialize(&mut reader);
    let value = value.and_then(|value| reader.end().map(|()| value));
    value.map_err(|_| left.get().map_or(too_large, |_| Unreadable::NotJson))
}

/// The text of a value, in no more memory than it needs.
#[must_use]
pub fn text(value: &Value) -> String {
    let mut length = Length(0);
    // Writing a value fails only if its writer does, and these two do not.
    let _ = write!(length, "{value}");
    let mut text = String::with_capacity(length.0);
    let _ = write!(text, "{value}");
    text
}

/// How long a text is that nobody keeps.
struct Length(usize);

impl Write for Length {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

/// About how many bytes of memory a value takes.
#[must_use]
pub fn weight(value: &Value) -> usize {
    let more = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(weight).sum(),
        Value::Object(members) => weight_of_members(members),
    };
    VALUE + more
}

/// The same of an object's members, and of what holds them.
#[must_use]
pub fn weight_of_members(members: &Map<String, Value>) -> usize {
    let members = members
        .iter()
        .map(|(name, value)| name.len() + weight(value));
    OBJECT + members.sum::<usize>()
}

/// Reads a value, and stops where it weighs more than what is left of the budget; nothing is left then.
struct Weighed<'b>(&'b Cell<Option<usize>>);

impl Weighed<'_> {
    fn weigh<E: de::Error>(&self, more: usize) -> Result<(), E> {
        let left = self.0.get().and_then(|left| left.checked_sub(more));
        self.0.set(left);
        left.map(drop).ok_or_else(|| E::custom("too large"))
    }
}

impl<'de> DeserializeSeed<'de> for Weighed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.weigh(VALUE)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Weighed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(Weighed(self.0))? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        self.weigh(OBJECT)?;
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            members.insert(name, map.next_value_seed(Weighed(self.0))?);
        }
        Ok(members.into())
    }
}

#[cfg(test)]
mod tests;
