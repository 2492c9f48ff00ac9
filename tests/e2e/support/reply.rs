//! What the provider answers, and how: word by word, with pauses, or held.

use std::time::Duration;

use serde_json::{Value, json};

use super::gate::Gate;

/// One answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    words: Vec<String>,
    calls: Vec<(String, Value)>,
    /// Before anything is sent.
    pub(crate) wait: Duration,
    /// Between any two pieces.
    pub(crate) pace: Duration,
    /// Holds the answer once so many pieces are sent.
    pub(crate) hold: Option<(usize, Gate)>,
    /// Refuses, and asks for so many seconds of rest.
    pub(crate) rest: Option<u32>,
}

impl Reply {
    /// Text, a word at a time.
    pub(crate) fn text(text: &str) -> Self {
        Self {
            words: text.split_inclusive(' ').map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// Calls of tools with their arguments.
    pub(crate) fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let calls = calls.into_iter();
        Self {
            calls: calls
                .map(|(name, input)| (name.to_owned(), input))
                .collect(),
            ..Self::default()
        }
    }

    /// No answer, but the wish to be asked again after so many seconds.
    pub(crate) fn busy_for(seconds: u32) -> Self {
        Self {
            rest: Some(seconds),
            ..Self::default()
        }
    }

    /// A pause before anything is sent.
    pub(crate) fn after(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// A pause between any two pieces.
    pub(crate) fn paced(self, pace: Duration) -> Self {
        Self { pace, ..self }
    }

    /// Held once so many pieces are sent; the first piece only says who speaks.
    pub(crate) fn held_after(self, pieces: usize, gate: &Gate) -> Self {
        Self {
            hold: Some((pieces, gate.clone())),
            ..self
        }
    }

    /// Held when everything but the stop reason is sent.
    pub(crate) fn held_before_end(self, gate: &Gate) -> Self {
        let pieces = 1 + self.words.len() + 2 * self.calls.len();
        self.held_after(pieces, gate)
    }

    /// The text, a word at a time.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    /// The calls with their arguments.
    pub(crate) fn calls_with_input(&self) -> &[(String, Value)] {
        &self.calls
    }

    /// How many calls it makes.
    pub(crate) fn calls_made(&self) -> usize {
        self.calls.len()
    }

    /// The pieces as they go over the wire; `ids` are those of the calls.
    pub(crate) fn pieces(&self, ids: &[String]) -> Vec<String> {
        let mut pieces = vec![delta(&json!({"role": "assistant", "content": null}), None)];
        for word in &self.words {
            pieces.push(delta(&json!({"content": word}), None));
        }
        for (index, ((name, input), id)) in self.calls.iter().zip(ids).enumerate() {
            let begin = json!({"index": index, "id": id, "type": "function",
                               "function": {"name": name, "arguments": ""}});
            let input = json!({"index": index, "function": {"arguments": input.to_string()}});
            pieces.push(delta(&json!({"tool_calls": [begin]}), None));
            pieces.push(delta(&json!({"tool_calls": [input]}), None));
        }
        let reason = if self.calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        };
        pieces.push(delta(&json!({}), Some(reason)));
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
        pieces.push(event(&json!({"choices": [], "usage": usage})));
        pieces.push("data: [DONE]\n\n".to_owned());
        pieces
    }
}

fn delta(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    event(&json!({"choices": [choice]}))
}

fn event(body: &Value) -> String {
    let mut event = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "test"});
    if let (Some(event), Some(body)) = (event.as_object_mut(), body.as_object()) {
        event.extend(body.clone());
    }
    format!("data: {event}\n\n")
}
