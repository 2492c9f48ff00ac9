//! JSON as the API takes it: no deeper and no wider than can be handled by whoever it is handed on to, and
//! with one value for each name, so that nobody who reads it later sees another.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The deepest nesting of lists and objects, the document's own level counted.
const MAX_DEPTH: usize = 32;

/// The most fields of an object, and items of a list.
const MAX_WIDTH: usize = 10_000;

/// Reads a whole document.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Levels(MAX_DEPTH).deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// How many levels there may be.
#[derive(Clone, Copy)]
struct Levels(usize);

impl Levels {
    fn inside<E: Error>(self) -> Result<Self, E> {
        let inside = self.0.checked_sub(1).map(Self);
        inside.ok_or_else(|| E::custom(format_args!("it may be nested {MAX_DEPTH} levels deep")))
    }
}

/// Refuses one more than there may be.
fn room_behind<E: Error>(length: usize) -> Result<(), E> {
    if length < MAX_WIDTH {
        return Ok(());
    }
    Err(E::custom(format_args!(
        "a list or an object may have {MAX_WIDTH} entries"
    )))
}

impl<'de> DeserializeSeed<'de> for Levels {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Levels {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, it: bool) -> Result<Value, E> {
        Ok(Value::Bool(it))
    }

    fn visit_i64<E>(self, it: i64) -> Result<Value, E> {
        Ok(Value::Number(it.into()))
    }

    fn visit_u64<E>(self, it: u64) -> Result<Value, E> {
        Ok(Value::Number(it.into()))
    }

    fn visit_f64<E: Error>(self, it: f64) -> Result<Value, E> {
        let number = Number::from_f64(it);
        number
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, it: &str) -> Result<Value, E> {
        Ok(Value::String(it.to_owned()))
    }

    fn visit_string<E>(self, it: String) -> Result<Value, E> {
        Ok(Value::String(it))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inside)? {
            room_behind(list.len())?;
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            room_behind(object.len())?;
            if object.contains_key(&name) {
                return Err(A::Error::custom("an object has two fields of one name"));
            }
            object.insert(name, fields.next_value_seed(inside)?);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn what_is_in_its_bounds_is_read_as_anybody_reads_it() {
        let text = r#"{"a": [null, true, -1, 18446744073709551615, 1.5, "\u00e9\ud83d\ude00", {}], "": 0}"#;

        let read = parse(text.as_bytes()).expect("it is JSON");

        let expected: Value = serde_json::from_str(text).expect("it is JSON");
        assert_eq!(read, expected);
    }

    #[test]
    fn d20_it_is_nested_32_levels_deep_at_most() {
        for (levels, good) in [
            (31, true),
            (32, true),
            (33, false),
            (127, false),
            (128, false),
            (100_000, false),
        ] {
            assert_eq!(parse(nested(levels).as_bytes()).is_ok(), good, "{levels}");
            let object = format!("{}0{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
            assert_eq!(parse(object.as_bytes()).is_ok(), good, "{levels}");
        }
    }

    #[test]
    fn d21_it_is_10000_entries_wide_at_most() {
        let list = |length: usize| json!(vec![0; length]).to_string();
        let object = |length: usize| {
            let fields: Map<_, _> = (0..length).map(|n| (n.to_string(), Value::Null)).collect();
            Value::Object(fields).to_string()
        };

        assert!(parse(list(MAX_WIDTH).as_bytes()).is_ok());
        assert!(parse(list(MAX_WIDTH + 1).as_bytes()).is_err());
        assert!(parse(object(MAX_WIDTH).as_bytes()).is_ok());
        assert!(parse(object(MAX_WIDTH + 1).as_bytes()).is_err());
    }

    #[test]
    fn d22_a_name_has_one_value() {
        for text in [
            r#"{"url": "good", "url": "evil"}"#,
            r#"[{"a": 1, "\u0061": 1}]"#,
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse(br#"{"a": {"a": 1}, "A": 1}"#).is_ok());
    }
}
