//! Checks a call's arguments against its tool's JSON Schema, before anything is done with them.

use std::fmt::Write;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

/// How many mismatches are listed; more are counted.
const MAX_LISTED: usize = 20;

/// How much of one mismatch is shown: it quotes the argument.
const MAX_CHARS: usize = 300;

/// What a tool takes.
#[derive(Debug)]
pub(crate) struct Arguments(Validator);

impl Arguments {
    /// Compiles a schema. References to other documents are not followed.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err("it does not say \"type\": \"object\"".to_owned());
        }
        // Texts are a model's: no pattern may take longer than they are long.
        let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
        let validator = options.build(schema).map_err(|error| mismatch(&error))?;
        Ok(Self(validator))
    }

    /// Every mismatch with its path, for the model; `Ok` if there is none.
    pub(crate) fn check(&self, input: &Map<String, Value>) -> Result<(), String> {
        let input = Value::Object(input.clone());
        let mut errors = self.0.iter_errors(&input);
        let listed: Vec<String> = errors
            .by_ref()
            .take(MAX_LISTED)
            .map(|error| mismatch(&error))
            .collect();
        if listed.is_empty() {
            return Ok(());
        }
        let mut text = String::from("the arguments do not match the tool's parameters:");
        for line in &listed {
            let _ = write!(text, "\n- {line}");
        }
        match errors.count() {
            0 => {}
            more => {
                let _ = write!(text, "\n- and {more} more");
            }
        }
        Err(text)
    }
}

/// The arguments without those that are null: many models send that for what they leave out. It is for
/// schemas in which null has no meaning of its own.
pub(crate) fn given(input: &Map<String, Value>) -> Map<String, Value> {
    let given = input.iter().filter(|(_, value)| !value.is_null());
    given
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn mismatch(error: &ValidationError<'_>) -> String {
    let path = error.instance_path().to_string();
    let text = error.to_string();
    let text = match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    match path.as_str() {
        "" => text,
        path => format!("{path}: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments() -> Arguments {
        let schema = json!({
            "type": "object",
            "required": ["title"],
            "properties": {
                "title": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "additionalProperties": false,
        });
        Arguments::new(&schema).expect("a schema")
    }

    fn check(input: Value) -> Result<(), String> {
        let Value::Object(input) = input else {
            panic!("an object");
        };
        arguments().check(&input)
    }

    #[test]
    fn arguments_that_match_pass() {
        assert_eq!(check(json!({"title": "x", "tags": ["a"]})), Ok(()));
    }

    #[test]
    fn every_mismatch_is_listed_with_its_path() {
        let text = check(json!({"tags": ["a", 1], "colour": "red"})).expect_err("three mistakes");

        assert!(
            text.contains("- \"title\" is a required property"),
            "{text}"
        );
        assert!(
            text.contains("- /tags/1: 1 is not of type \"string\""),
            "{text}"
        );
        assert!(text.contains("'colour'"), "{text}");
    }

    #[test]
    fn null_is_an_argument_that_was_left_out() {
        let input = json!({"title": "x", "tags": null});
        let Value::Object(input) = input else {
            panic!("an object");
        };

        assert_eq!(Value::Object(given(&input)), json!({"title": "x"}));
    }

    #[test]
    fn what_is_listed_is_short() {
        let tags: Vec<Value> = (0..100).map(|_| json!({"x": "y".repeat(1000)})).collect();

        let text = check(json!({"title": "x", "tags": tags})).expect_err("many mistakes");

        assert!(text.ends_with("- and 80 more"));
        assert!(text.len() < 8000);
    }

    #[test]
    fn a_schema_must_be_one_of_an_object() {
        for schema in [
            json!({"type": "string"}),
            json!({}),
            json!(true),
            json!({"type": "object", "properties": {"x": {"type": "text"}}}),
            json!({"type": "object", "required": "title"}),
            json!({"type": "object", "$ref": "https://example.com/schema.json"}),
            json!({"type": "object", "properties": {"x": {"pattern": "^(a+)+\\1$"}}}),
        ] {
            assert!(Arguments::new(&schema).is_err(), "{schema}");
        }
    }
}
