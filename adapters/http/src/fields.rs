//! Reading JSON strictly: every field that is missing, unknown or of another type is found, not only
//! the first. Where a value is wrong a default stands in for it, so that the rest can be read.

use std::fmt;

use hango_application::use_cases::{Fault, FaultCode, Input};
use hango_domain::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::params::canonical;
use crate::time;

/// The most bytes of pointers to what cannot be kept.
pub(crate) const MOST_POINTERS: usize = 64 * 1024;

/// A place in a document, and where faults are collected.
pub(crate) struct Place<'a> {
    pointer: String,
    faults: &'a mut Vec<Fault>,
}

/// The fields of an object; each is taken once, and what is left is unknown.
pub(crate) struct Fields<'a> {
    place: Place<'a>,
    left: Map<String, Value>,
    /// Those that were asked for.
    known: Vec<&'static str>,
}

/// Reads a whole document, in which `faults` were found already.
pub(crate) fn document<T>(
    value: Value,
    mut faults: Vec<Fault>,
    read: impl FnOnce(&mut Fields<'_>) -> T,
) -> Input<T> {
    let is_object = value.is_object();
    if !is_object {
        let detail = "an object is expected";
        faults.push(Fault::new("", FaultCode::InvalidType, detail));
    }
    // Of what is no object nothing is missing.
    let mut ignored = Vec::new();
    let mut fields = Fields {
        place: Place {
            pointer: String::new(),
            faults: if is_object { &mut faults } else { &mut ignored },
        },
        left: match value {
            Value::Object(fields) => fields,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        },
        known: Vec::new(),
    };
    let value = read(&mut fields);
    fields.finish();
    Input::with_faults(value, faults)
}

impl Fields<'_> {
    /// A field that must be there.
    pub(crate) fn required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Value, &mut Place<'_>) -> Option<T>,
    ) -> Option<T> {
        if !self.left.contains_key(name) {
            let mut place = self.place.inside(name);
            place.fault(FaultCode::Required, "this field is required");
        }
        self.optional(name, read)
    }

    /// A field that may be left out.
    pub(crate) fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Value, &mut Place<'_>) -> Option<T>,
    ) -> Option<T> {
        let value = self.take(name)?;
        read(value, &mut self.place.inside(name))
    }

    /// A field that may be left out, or be null to say that there is no value.
    #[expect(
        clippy::option_option,
        reason = "left out, null and a value are three things"
    )]
    pub(crate) fn nullable<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Value, &mut Place<'_>) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.take(name)? {
            Value::Null => Some(None),
            value => read(value, &mut self.place.inside(name)).map(Some),
        }
    }

    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.left.remove(name)
    }

    /// What is left is unknown.
    fn finish(mut self) {
        for name in self.left.keys() {
            let mut place = self.place.inside(name);
            place.fault(FaultCode::UnknownField, unknown("field", name, &self.known));
        }
    }
}

impl Place<'_> {
    /// Notes that something is wrong here.
    pub(crate) fn fault(&mut self, code: FaultCode, detail: impl Into<String>) {
        self.faults
            .push(Fault::new(self.pointer.clone(), code, detail));
    }

    /// Notes that another type is expected here.
    fn expected<T>(&mut self, what: &str) -> Option<T> {
        self.fault(FaultCode::InvalidType, format!("{what} is expected"));
        None
    }

    /// The place of a field or an item of what is here.
    fn inside(&mut self, name: &str) -> Place<'_> {
        Place {
            pointer: format!("{}/{}", self.pointer, escaped(name)),
            faults: self.faults,
        }
    }
}

/// Text.
pub(crate) fn text(value: Value, place: &mut Place<'_>) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            place.expected("text")
        }
    }
}

/// An id.
pub(crate) fn id<T: From<Uuid>>(value: Value, place: &mut Place<'_>) -> Option<T> {
    let id = canonical(&text(value, place)?);
    if id.is_none() {
        place.fault(FaultCode::InvalidFormat, "an id is expected");
    }
    id.map(T::from)
}

/// A moment.
pub(crate) fn moment(value: Value, place: &mut Place<'_>) -> Option<Timestamp> {
    let moment = time::parse(&text(value, place)?);
    if moment.is_none() {
        let detail = "a moment such as 2030-01-31T12:00:00Z is expected";
        place.fault(FaultCode::InvalidFormat, detail);
    }
    moment
}

/// A whole number that is not negative.
pub(crate) fn count(value: Value, place: &mut Place<'_>) -> Option<u64> {
    let Value::Number(number) = value else {
        return place.expected("a whole number");
    };
    if let Some(count) = number.as_u64() {
        return Some(count);
    }
    if number.as_f64().is_some_and(|number| number.fract() == 0.0) {
        place.fault(FaultCode::OutOfRange, "the number is out of range");
        return None;
    }
    place.expected("a whole number")
}

/// A number.
pub(crate) fn number(value: Value, place: &mut Place<'_>) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            place.expected("a number")
        }
    }
}

/// Any object.
pub(crate) fn object(value: Value, place: &mut Place<'_>) -> Option<Map<String, Value>> {
    match value {
        Value::Object(fields) => Some(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            place.expected("an object")
        }
    }
}

/// A list; `None` stands for an item that could not be read.
pub(crate) fn list<T>(
    item: impl Fn(Value, &mut Place<'_>) -> Option<T>,
) -> impl FnOnce(Value, &mut Place<'_>) -> Option<Vec<Option<T>>> {
    move |value, place| {
        let Value::Array(items) = value else {
            return place.expected("a list");
        };
        let items = items.into_iter().enumerate();
        Some(
            items
                .map(|(at, value)| item(value, &mut place.inside(&at.to_string())))
                .collect(),
        )
    }
}

/// An object of known fields.
pub(crate) fn fields<T>(
    read: impl Fn(&mut Fields<'_>) -> T,
) -> impl Fn(Value, &mut Place<'_>) -> Option<T> {
    move |value, place| {
        let fields = object(value, place)?;
        let mut fields = Fields {
            place: Place {
                pointer: place.pointer.clone(),
                faults: place.faults,
            },
            left: fields,
            known: Vec::new(),
        };
        let value = read(&mut fields);
        fields.finish();
        Some(value)
    }
}

/// One of a closed list of words.
pub(crate) fn word<T: Copy>(
    words: &'static [(&'static str, T)],
) -> impl FnOnce(Value, &mut Place<'_>) -> Option<T> {
    move |value, place| {
        let said = text(value, place)?;
        let known = words.iter().find(|(word, _)| *word == said);
        if known.is_none() {
            place.fault(FaultCode::InvalidFormat, one_of(words));
        }
        known.map(|(_, meaning)| *meaning)
    }
}

/// What may be said where a word is expected.
pub(crate) fn one_of<T>(words: &[(&'static str, T)]) -> String {
    let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    format!("one of {} is expected", words.join(", "))
}

/// Where a value is in its document; written down only where something is wrong.
pub(crate) enum Path<'a> {
    Document,
    Item(&'a Self, usize),
    Field(&'a Self, &'a str),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document => Ok(()),
            Self::Item(list, at) => write!(f, "{list}/{at}"),
            Self::Field(object, name) => write!(f, "{object}/{}", escaped(name)),
        }
    }
}

/// Finds the strings, keys included, that hold U+0000: the first ones, where listing them all would take
/// more than the document itself may.
pub(crate) fn find_null_characters(value: &Value) -> Vec<Fault> {
    let mut found = NullCharacters {
        faults: Vec::new(),
        room: MOST_POINTERS,
    };
    found.look_at(value, &Path::Document);
    found.faults
}

struct NullCharacters {
    faults: Vec<Fault>,
    /// How many bytes of pointers there may be.
    room: usize,
}

impl NullCharacters {
    fn look_at(&mut self, value: &Value, path: &Path<'_>) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => self.check(text, path),
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.look_at(item, &Path::Item(path, at));
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    let path = Path::Field(path, name);
                    self.check(name, &path);
                    self.look_at(field, &path);
                }
            }
        }
    }

    fn check(&mut self, text: &str, path: &Path<'_>) {
        if self.room > 0 && text.contains('\0') {
            let pointer = path.to_string();
            self.room = self.room.saturating_sub(pointer.len());
            let detail = "U+0000 cannot be kept";
            self.faults
                .push(Fault::new(pointer, FaultCode::InvalidText, detail));
        }
    }
}

/// Says that there is no such thing, and which one was probably meant.
pub(crate) fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let near = |known: &&str| {
        let most = known.len() / 3;
        known.len().abs_diff(name.len()) <= most
            && strsim::damerau_levenshtein(name, known) <= most.max(1)
    };
    match known
        .iter()
        .copied()
        .filter(near)
        .min_by_key(|known| strsim::damerau_levenshtein(name, known))
    {
        Some(near) => format!("there is no such {what}; did you mean {near:?}?"),
        None => format!("there is no such {what}"),
    }
}

/// A name as a part of a JSON pointer.
pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
