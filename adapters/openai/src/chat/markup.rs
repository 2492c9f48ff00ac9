//! Reads a call that a model wrote as text.
//!
//! Two forms are known: the one of Hermes and Qwen, `{"name": "f", "arguments": {…}}`, and the one of
//! GLM, `f<arg_key>k</arg_key><arg_value>v</arg_value>…`, whose values are texts where the tool's
//! parameter is one, and else JSON. Only what names a tool of the request is a call.

use hango_domain::json;
use hango_domain::text::mend_json;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::asked::{Asked, MAX_ARGUMENTS};

/// A call as it was written.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Written {
    /// The tool.
    pub(crate) name: String,
    /// The arguments, as JSON text.
    pub(crate) arguments: String,
}

#[derive(Deserialize)]
struct Json<'a> {
    name: String,
    #[serde(borrow, alias = "parameters")]
    arguments: Option<&'a RawValue>,
}

/// The call that `markup` is, if it is one.
pub(crate) fn read(markup: &str, asked: &Asked) -> Option<Written> {
    let written = json(markup).or_else(|| arguments(markup, asked))?;
    asked.offers(&written.name).then_some(written)
}

fn json(markup: &str) -> Option<Written> {
    let mended = mend_json(markup);
    let json: Json<'_> = serde_json::from_str(&mended).ok()?;
    let arguments = json.arguments.map(RawValue::get).unwrap_or_default();
    Some(Written {
        name: json.name.trim().to_owned(),
        arguments: arguments.to_owned(),
    })
}

fn arguments(markup: &str, asked: &Asked) -> Option<Written> {
    let (name, mut rest) = markup.split_at(markup.find("<arg_key>").unwrap_or(markup.len()));
    let name = name.trim();
    let mut arguments = Map::new();
    let mut budget = MAX_ARGUMENTS;
    while !rest.trim_start().is_empty() {
        let (key, behind) = tagged(rest, "<arg_key>", "</arg_key>")?;
        let (value, behind) = tagged(behind, "<arg_value>", "</arg_value>")?;
        let key = key.trim();
        let json = || json::read(value, budget).ok();
        let read = if asked.is_text(name, key) {
            None
        } else {
            json()
        };
        let read = read.unwrap_or_else(|| value.into());
        budget = budget.checked_sub(key.len() + json::weight(&read))?;
        arguments.insert(key.to_owned(), read);
        rest = behind;
    }
    Some(Written {
        name: name.to_owned(),
        arguments: json::text(&Value::Object(arguments)),
    })
}

/// What stands between two tags at the beginning of a text, and what comes behind.
fn tagged<'a>(text: &'a str, open: &str, close: &str) -> Option<(&'a str, &'a str)> {
    text.trim_start().strip_prefix(open)?.split_once(close)
}

#[cfg(test)]
mod tests {
    use hango_domain::tool::ToolDef;
    use serde_json::json;

    use super::*;

    fn asked() -> Asked {
        Asked {
            tools: vec![ToolDef {
                name: "find".to_owned(),
                description: String::new(),
                parameters: json!({"properties": {"what": {"type": "string"}, "most": {"type": "integer"}}}),
            }],
            ..Asked::default()
        }
    }

    /// The arguments of a call of `find`.
    fn found(markup: &str) -> Option<Value> {
        let written = read(markup, &asked())?;
        assert_eq!(written.name, "find");
        Some(serde_json::from_str(&written.arguments).unwrap_or_default())
    }

    #[test]
    fn l16_the_form_of_hermes_and_qwen_is_read() {
        let expected = json!({"what": "5", "most": 5});

        for markup in [
            "\n{\"name\": \"find\", \"arguments\": {\"what\": \"5\", \"most\": 5}}\n",
            r#"{"arguments":{"what":"5","most":5},"name":" find "}"#,
            r#"{"name":"find","parameters":{"what":"5","most":5}}"#,
        ] {
            assert_eq!(found(markup), Some(expected.clone()), "{markup}");
        }
        let none = read(r#"{"name":"find"}"#, &asked()).expect("a call");
        assert_eq!(none.arguments, "");
    }

    #[test]
    fn l23_the_form_of_glm_is_read_by_the_tools_schema() {
        let markup = "find\n<arg_key>what</arg_key>\n<arg_value>5</arg_value>\n\
                      <arg_key>most</arg_key><arg_value>5</arg_value>\
                      <arg_key>how</arg_key><arg_value>[fast]</arg_value>\n";

        let expected = json!({"what": "5", "most": 5, "how": "[fast]"});
        assert_eq!(found(markup), Some(expected));
        assert_eq!(found("\nfind\n"), Some(json!({})));
    }

    #[test]
    fn l12_what_is_not_whole_or_names_no_tool_is_no_call() {
        for markup in [
            "",
            "seek",
            r#"{"name":"seek","arguments":{}}"#,
            r#"{"name":"find","arguments":{"what""#,
            "find<arg_key>what</arg_key>",
            "find<arg_key>what</arg_key><arg_value>5",
            "find<arg_key>what</arg_key><arg_value>5</arg_value>!",
        ] {
            assert_eq!(read(markup, &asked()), None, "{markup}");
        }
    }
}
