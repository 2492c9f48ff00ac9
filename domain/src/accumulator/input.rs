//! Reads a tool call's arguments, as the providers of this world spell them.

use serde_json::{Map, Value};

use crate::json;

/// The arguments in `json`, `None` if they are not an object or take more than `budget`. Providers send
/// nothing or `null` for no arguments, put `null` before them, and encode them twice.
pub(super) fn read_input(json: &str, budget: usize) -> Option<Map<String, Value>> {
    let json = json.trim();
    let json = match json.strip_prefix("null").map(str::trim_start) {
        Some(rest) if rest.is_empty() || rest.starts_with('{') => rest,
        Some(_) | None => json,
    };
    if json.is_empty() {
        return Some(Map::new());
    }
    let input = match json::read(json, budget).ok()? {
        Value::String(encoded) => {
            let left = budget.saturating_sub(encoded.len());
            json::read(&encoded, left).ok()?
        }
        once => once,
    };
    match input {
        Value::Object(input) => Some(input),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// More than any arguments of these tests weigh.
    const PLENTY: usize = 1 << 20;

    #[test]
    fn arguments_are_read_as_providers_send_them() {
        let x = json!({"x": 1});
        let table = [
            ("", json!({})),
            (" \n", json!({})),
            ("null", json!({})),
            ("null{\"x\":1}", x.clone()),
            (" null {\"x\":1} ", x.clone()),
            ("{\"x\":1}", x.clone()),
            (r#""{\"x\":1}""#, x),
            (r#"{"x":"\ud83d"}"#, json!({"x": "\u{fffd}"})),
            (r#"{"x":"\ud83d\ude00"}"#, json!({"x": "😀"})),
        ];

        for (json, expected) in table {
            assert_eq!(read_input(json, PLENTY).map(Value::Object), Some(expected));
        }
    }

    #[test]
    fn arguments_that_are_no_object_can_not_be_read() {
        for json in [
            "{\"cmd\": \"ls",
            "{\"a\":1}{\"b\":2}",
            "[1]",
            "7",
            "nullify",
            "null null",
            r#""""#,
            r#""[1]""#,
            r#""\"{}\"""#,
        ] {
            assert_eq!(read_input(json, PLENTY), None);
        }
    }

    #[test]
    fn arguments_that_weigh_too_much_can_not_be_read() {
        let once = r#"{"x":[1,2]}"#;
        let values = json::weight(&json!({"": [1, 2]}));

        for (json, text) in [
            (once, once.len()),
            // The one and what it encodes.
            (r#""{\"x\":[1,2]}""#, 2 * once.len()),
        ] {
            assert!(read_input(json, text + values).is_some(), "{json}");
            assert_eq!(read_input(json, text + values - 1), None, "{json}");
        }
    }
}
