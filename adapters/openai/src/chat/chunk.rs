//! What the wire carries: one chunk of a stream, or a whole answer, which is one chunk with a `message`
//! in place of a `delta`.
//!
//! * Everything may be absent or `null`, and what is not named here is passed over: servers add members
//!   of their own.
//! * A member of a wrong type is no chunk. Only usage is read leniently, from plain JSON: an answer
//!   must not be lost over its bill.

use hango_domain::conversation::Usage;
use serde::Deserialize;
use serde_json::Value;

/// One `data:` of the stream.
#[derive(Debug, Deserialize)]
pub(crate) struct Chunk {
    pub(crate) choices: Option<Vec<Choice>>,
    pub(crate) usage: Option<Value>,
}

/// One candidate of the answer; hango asks for one.
#[derive(Debug, Deserialize)]
pub(crate) struct Choice {
    pub(crate) index: Option<u64>,
    pub(crate) finish_reason: Option<String>,
    delta: Option<Delta>,
    message: Option<Delta>,
}

impl Choice {
    /// What it adds: some servers send the whole `message` so far beside each delta.
    pub(crate) fn addition(self) -> Option<Delta> {
        self.delta.or(self.message)
    }
}

/// What a chunk adds to the answer.
#[derive(Debug, Deserialize)]
pub(crate) struct Delta {
    pub(crate) content: Option<Content>,
    pub(crate) refusal: Option<String>,
    pub(crate) reasoning_content: Option<String>,
    /// The same under another name, of newer servers.
    pub(crate) reasoning: Option<String>,
    pub(crate) tool_calls: Option<Vec<CallDelta>>,
    /// The protocol's older way to ask for a tool.
    pub(crate) function_call: Option<Value>,
}

/// Text, or a list of parts.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// A part of [`Content`]; of an unknown kind if it has neither.
#[derive(Debug, Deserialize)]
pub(crate) struct Part {
    pub(crate) text: Option<String>,
    pub(crate) thinking: Option<Content>,
}

/// A fragment of a tool call.
#[derive(Debug, Deserialize)]
pub(crate) struct CallDelta {
    pub(crate) index: Option<u64>,
    pub(crate) id: Option<String>,
    pub(crate) function: Option<FunctionDelta>,
    /// What the server wants back with the call, such as a thought's signature.
    pub(crate) extra_content: Option<Value>,
}

/// A fragment of the function that a call names.
#[derive(Debug, Deserialize)]
pub(crate) struct FunctionDelta {
    pub(crate) name: Option<String>,
    /// JSON text; of some servers the object itself.
    pub(crate) arguments: Option<Value>,
}

/// Tokens, whatever of them the server counted.
///
/// Some servers leave reasoning out of the completion; the total tells.
pub(crate) fn usage(wire: &Value) -> Usage {
    let count = |pointer: &str| wire.pointer(pointer).and_then(Value::as_u64);
    let input = count("/prompt_tokens").unwrap_or(0);
    let completion = count("/completion_tokens").unwrap_or(0);
    let total = count("/total_tokens").unwrap_or(0);
    Usage {
        input_tokens: input,
        output_tokens: completion.max(total.saturating_sub(input)),
        cache_read_tokens: count("/prompt_tokens_details/cached_tokens")
            .or_else(|| count("/prompt_cache_hit_tokens"))
            .unwrap_or(0),
        cache_write_tokens: count("/prompt_tokens_details/cache_write_tokens").unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usage_counts_cached_input_and_all_reasoning() {
        let wire = json!({
            "prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 37,
            "prompt_tokens_details": {"cached_tokens": 8},
        });

        let expected = Usage {
            input_tokens: 20,
            output_tokens: 17,
            cache_read_tokens: 8,
            cache_write_tokens: 0,
        };
        assert_eq!(usage(&wire), expected);
    }

    #[test]
    fn usage_that_makes_no_sense_counts_nothing() {
        assert_eq!(usage(&json!({"prompt_tokens": "many"})), Usage::default());
        assert_eq!(usage(&json!([])), Usage::default());
    }
}
