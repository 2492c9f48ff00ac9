//! The parts of a message.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One part of a message. The JSON form is the one of the HTTP contract and of the stores. A field that
/// only a newer build knows is passed over: what is stored is never written again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Something said, never empty or blank where it is sent to a provider.
    Text {
        /// What was said.
        text: String,
        /// What the provider attached to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_data: Option<ProviderData>,
    },
    /// A model asks for a tool.
    ToolUse {
        /// Unique in its conversation; the result names it.
        id: String,
        /// The tool, as the model spelled it.
        name: String,
        /// The arguments; always an object, so that any provider takes it back.
        input: Map<String, Value>,
        /// What the provider attached to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_data: Option<ProviderData>,
    },
    /// The answer to a [`Block::ToolUse`] of the message before.
    ToolResult {
        /// The call that is answered.
        tool_use_id: String,
        /// What the model sees.
        content: String,
        /// What a person sees; `None` when it is the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        for_user: Option<String>,
        /// Whether the call failed. The model reads it and may try otherwise.
        is_error: bool,
    },
    /// Reasoning shown by a model, with the signature that its provider wants back.
    Thinking {
        /// The reasoning; may be empty when only the signature was sent.
        thinking: String,
        /// The provider's signature over it; empty when there is none.
        #[serde(default)]
        signature: String,
        /// What the provider attached to it. It says whose reasoning this is: without it, it goes back to
        /// nobody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_data: Option<ProviderData>,
    },
    /// Reasoning that the provider keeps to itself, sent back unread.
    RedactedThinking {
        /// The provider's own encoding.
        data: String,
        /// What the provider attached to it. It says whose reasoning this is: without it, it goes back to
        /// nobody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_data: Option<ProviderData>,
    },
    /// A block of a kind that hango does not know, kept as it came.
    Provider(ProviderData),
}

/// Something only its provider understands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderData {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model that sent it.
    pub model: String,
    /// What came, unchanged.
    pub data: Value,
}

impl Block {
    /// A text block with nothing attached.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            provider_data: None,
        }
    }

    /// The text of a text block, `None` for any other.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            Self::ToolUse { .. }
            | Self::ToolResult { .. }
            | Self::Thinking { .. }
            | Self::RedactedThinking { .. }
            | Self::Provider(_) => None,
        }
    }

    /// How many bytes of text it has, as a model reads them.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::Text { text, .. } => text.len(),
            Self::ToolUse { name, input, .. } => {
                name.len() + input.iter().map(bytes_of_member).sum::<usize>()
            }
            Self::ToolResult { content, .. } => content.len(),
            Self::Thinking { thinking, .. } => thinking.len(),
            Self::RedactedThinking { data, .. } => data.len(),
            Self::Provider(data) => json_bytes(&data.data),
        }
    }

    /// The id of a tool call, `None` for any other block.
    #[must_use]
    pub fn tool_use_id(&self) -> Option<&str> {
        match self {
            Self::ToolUse { id, .. } => Some(id),
            Self::Text { .. }
            | Self::ToolResult { .. }
            | Self::Thinking { .. }
            | Self::RedactedThinking { .. }
            | Self::Provider(_) => None,
        }
    }
}

fn bytes_of_member((name, value): (&String, &Value)) -> usize {
    name.len() + json_bytes(value)
}

/// About how many bytes a value has as JSON.
pub(crate) fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(values) => values.iter().map(json_bytes).sum::<usize>() + 2,
        Value::Object(members) => members.iter().map(bytes_of_member).sum::<usize>() + 2,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_newer_build_added_to_a_block_is_passed_over() {
        let stored = json!({
            "type": "text",
            "text": "hello",
            "citations": [],
            "provider_data": {"provider": "p", "model": "m", "data": 1, "kind": "extra"},
        });

        let read = Block::deserialize(stored).expect("it can be read");

        let provider_data = Some(ProviderData {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            data: json!(1),
        });
        let text = "hello".to_owned();
        assert_eq!(
            read,
            Block::Text {
                text,
                provider_data
            }
        );
    }
}
