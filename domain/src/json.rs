//! Reads JSON that strangers send, in an amount of memory that is known before.
//!
//! * A few bytes of JSON can become a hundred times as many of [`Value`]s. So every value has a
//!   [weight], about what it takes of memory, and reading stops where a budget is spent. Nothing is held
//!   beside the text and what has been read of it.
//! * Half a surrogate pair can't be in a Rust string. It can come as an escape, and is read as U+FFFD
//!   where a strict parser refuses the whole document.
//! * All else is as `serde_json` reads it, numbers and the depth at which it gives up included.

use std::fmt::{self, Write};

use serde_json::{Map, Number, Value};
use thiserror::Error;

/// What a value weighs beside its text: its place in a list that has room to grow, or in a map.
const VALUE: usize = 112;

/// What an object weighs beside its members, for it has room for several.
const OBJECT: usize = 640;

/// How many lists and objects may be in each other.
const MAX_DEPTH: usize = 127;

/// No number is longer, however exact it is.
const MAX_NUMBER: usize = 4 << 10;

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

/// The value that `json` is, if it weighs no more than `budget`.
pub fn read(json: &str, budget: usize) -> Result<Value, Unreadable> {
    let mut reader = Reader {
        json,
        at: 0,
        budget,
        weight: 0,
    };
    let value = reader.value(0)?;
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(Unreadable::NotJson),
    }
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

struct Reader<'a> {
    json: &'a str,
    at: usize,
    budget: usize,
    /// Of all that was read.
    weight: usize,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Value, Unreadable> {
        self.weigh(VALUE)?;
        match self.peek() {
            Some(b'{' | b'[') if depth == MAX_DEPTH => Err(Unreadable::NotJson),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(_) | None => Err(Unreadable::NotJson),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, Unreadable> {
        self.weigh(OBJECT)?;
        let mut members = Map::new();
        self.at += 1;
        if self.eats(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(Unreadable::NotJson);
            }
            let name = self.string()?;
            if !self.eats(b':') {
                return Err(Unreadable::NotJson);
            }
            members.insert(name, self.value(depth + 1)?);
            if self.eats(b'}') {
                return Ok(Value::Object(members));
            }
            if !self.eats(b',') {
                return Err(Unreadable::NotJson);
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, Unreadable> {
        let mut values = Vec::new();
        self.at += 1;
        if self.eats(b']') {
            return Ok(Value::Array(values));
        }
        loop {
            values.push(self.value(depth + 1)?);
            if self.eats(b']') {
                return Ok(Value::Array(values));
            }
            if !self.eats(b',') {
                return Err(Unreadable::NotJson);
            }
        }
    }

    /// The string that begins here.
    fn string(&mut self) -> Result<String, Unreadable> {
        let start = self.at + 1;
        let mut at = start;
        loop {
            match self.json.as_bytes().get(at) {
                Some(b'"') => break,
                Some(b'\\') => at += 2,
                Some(0..0x20) | None => return Err(Unreadable::NotJson),
                Some(_) => at += 1,
            }
        }
        self.at = at + 1;
        let raw = &self.json[start..at];
        // It is gone through twice, so that not a byte is held in vain.
        let mut length = 0;
        unescape(raw, |text| length += text.len()).ok_or(Unreadable::NotJson)?;
        self.weigh(length)?;
        let mut string = String::with_capacity(length);
        unescape(raw, |text| string.push_str(text)).ok_or(Unreadable::NotJson)?;
        Ok(string)
    }

    fn number(&mut self) -> Result<Value, Unreadable> {
        let rest = &self.json[self.at..];
        let is_part = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
        let end = rest.bytes().position(|byte| !is_part(byte));
        let digits = &rest[..end.unwrap_or(rest.len())];
        if digits.len() > MAX_NUMBER {
            return Err(Unreadable::NotJson);
        }
        self.at += digits.len();
        let number: Result<Number, _> = serde_json::from_str(digits);
        number.map(Value::Number).map_err(|_| Unreadable::NotJson)
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Unreadable> {
        if !self.json[self.at..].starts_with(word) {
            return Err(Unreadable::NotJson);
        }
        self.at += word.len();
        Ok(value)
    }

    /// The next byte that is no white space; it stays.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.json.as_bytes()[self.at..];
        let space = rest.iter().position(|byte| !b" \n\r\t".contains(byte));
        self.at += space.unwrap_or(rest.len());
        self.json.as_bytes().get(self.at).copied()
    }

    fn eats(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn weigh(&mut self, more: usize) -> Result<(), Unreadable> {
        self.weight = self.weight.saturating_add(more);
        if self.weight > self.budget {
            return Err(Unreadable::TooLarge(self.budget));
        }
        Ok(())
    }
}

/// Hands on what a string means, piece by piece; `None` behind the first escape that is none.
fn unescape(raw: &str, mut take: impl FnMut(&str)) -> Option<()> {
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        take(&rest[..at]);
        let (char, length) = escaped(&rest[at..])?;
        take(char.encode_utf8(&mut [0; 4]));
        rest = &rest[at + length..];
    }
    take(rest);
    Some(())
}

/// The character whose escape begins a text, and how long the escape is.
fn escaped(text: &str) -> Option<(char, usize)> {
    let char = match text.as_bytes().get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let high = unit(text)?;
            return Some(match (char::from_u32(high), text.get(6..).and_then(unit)) {
                (Some(char), _) => (char, 6),
                (None, Some(low @ 0xdc00..=0xdfff)) if high < 0xdc00 => (paired(high, low)?, 12),
                (None, _) => (char::REPLACEMENT_CHARACTER, 6),
            });
        }
        _ => return None,
    };
    Some((char, 2))
}

/// The UTF-16 unit whose escape, `\uXXXX`, begins a text.
fn unit(text: &str) -> Option<u32> {
    let digits = text.get(..6)?.strip_prefix("\\u")?;
    let mut digits = digits.bytes().map(|byte| char::from(byte).to_digit(16));
    digits.try_fold(0, |unit, digit| Some(unit << 4 | digit?))
}

/// The character that the two halves of a pair are.
fn paired(high: u32, low: u32) -> Option<char> {
    char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00))
}

#[cfg(test)]
mod tests;
