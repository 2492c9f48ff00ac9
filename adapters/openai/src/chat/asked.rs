//! What was asked for, as far as the answer is measured by it.

use hango_domain::accumulator::MAX_ANSWER_BYTES;
use hango_domain::json;
use hango_domain::tool::ToolDef;
use serde_json::Value;

/// What arguments may take of memory.
pub(crate) const MAX_ARGUMENTS: usize = MAX_ANSWER_BYTES + (128 << 10);

/// The request behind an answer.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// The model.
    pub(crate) model: String,
    /// The most tokens that the answer may have, if the request set a limit.
    pub(crate) limit: Option<u64>,
    /// The tools that the model may ask for.
    pub(crate) tools: Vec<ToolDef>,
    /// Whether calls that stand in the text are taken for calls.
    pub(crate) calls_in_text: bool,
    /// Whether tagged thoughts that stand in the text are taken for thinking.
    pub(crate) think_tags: bool,
}

impl Asked {
    /// Whether an answer of so many tokens has come to its limit.
    pub(crate) fn is_spent(&self, output_tokens: u64) -> bool {
        self.limit.is_some_and(|limit| output_tokens >= limit)
    }

    /// Whether the model may ask for that tool.
    pub(crate) fn offers(&self, tool: &str) -> bool {
        self.schema(tool).is_some()
    }

    /// Whether a parameter of a tool is a text.
    pub(crate) fn is_text(&self, tool: &str, parameter: &str) -> bool {
        let schema = self.schema(tool);
        let property = schema.and_then(|schema| schema.get("properties")?.get(parameter));
        property.and_then(|property| property.get("type")) == Some(&Value::from("string"))
    }

    /// Whether arguments are an object with every member that the tool requires.
    pub(crate) fn is_whole(&self, tool: &str, arguments: &str) -> bool {
        let arguments = if arguments.trim().is_empty() {
            "{}"
        } else {
            arguments
        };
        let members = match json::read(arguments, MAX_ARGUMENTS) {
            Ok(Value::String(twice)) => json::read(&twice, MAX_ARGUMENTS),
            once => once,
        };
        let Ok(Value::Object(members)) = members else {
            return false;
        };
        let required = self.schema(tool).and_then(|schema| schema.get("required"));
        let required = required.and_then(Value::as_array).into_iter().flatten();
        let mut required = required.filter_map(Value::as_str);
        required.all(|name| members.contains_key(name))
    }

    fn schema(&self, tool: &str) -> Option<&Value> {
        let tool = self.tools.iter().find(|known| known.name == tool)?;
        Some(&tool.parameters)
    }
}
