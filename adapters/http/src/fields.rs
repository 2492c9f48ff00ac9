//! Reading JSON strictly: every field that is missing, unknown or of another type is found, not only
//! the first. Where a value is wrong a default stands in for it, so that the rest can be read.

use hango_application::use_cases::{Fault, FaultCode, Input};
use serde_json::{Map, Value};

/// A place in a document, and where faults are collected.
pub(crate) struct Place<'a> {
    pointer: String,
    faults: &'a mut Vec<Fault>,
}

/// The fields of an object; each is taken once, and what is left is unknown.
pub(crate) struct Fields<'a> {
    place: Place<'a>,
    fields: Map<String, Value>,
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
        fields: match value {
            Value::Object(fields) => fields,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        },
    };
    let value = read(&mut fields);
    fields.finish();
    Input::with_faults(value, faults)
}

impl Fields<'_> {
    /// A field that must be there.
    pub(crate) fn required<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Value, &mut Place<'_>) -> Option<T>,
    ) -> Option<T> {
        if !self.fields.contains_key(name) {
            let mut place = self.place.inside(name);
            place.fault(FaultCode::Required, "this field is required");
        }
        self.optional(name, read)
    }

    /// A field that may be left out.
    pub(crate) fn optional<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Value, &mut Place<'_>) -> Option<T>,
    ) -> Option<T> {
        let value = self.fields.remove(name)?;
        read(value, &mut self.place.inside(name))
    }

    /// A field that may be left out, or be null to say that there is no value.
    #[expect(
        clippy::option_option,
        reason = "left out, null and a value are three things"
    )]
    pub(crate) fn nullable<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Value, &mut Place<'_>) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.fields.remove(name)? {
            Value::Null => Some(None),
            value => read(value, &mut self.place.inside(name)).map(Some),
        }
    }

    /// What is left is unknown.
    fn finish(mut self) {
        for name in self.fields.keys() {
            let mut place = self.place.inside(name);
            place.fault(FaultCode::UnknownField, "there is no such field");
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
            fields,
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

/// Finds the strings, keys included, that hold U+0000.
pub(crate) fn find_null_characters(value: &Value, pointer: &str, faults: &mut Vec<Fault>) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => check_text(text, pointer, faults),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                find_null_characters(item, &format!("{pointer}/{at}"), faults);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let pointer = format!("{pointer}/{}", escaped(name));
                check_text(name, &pointer, faults);
                find_null_characters(field, &pointer, faults);
            }
        }
    }
}

fn check_text(text: &str, pointer: &str, faults: &mut Vec<Fault>) {
    if text.contains('\0') {
        let detail = "U+0000 cannot be kept";
        faults.push(Fault::new(pointer, FaultCode::InvalidText, detail));
    }
}

/// How deep lists and objects are nested, the outermost counted.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
    }
}

/// A name as a part of a JSON pointer.
pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
