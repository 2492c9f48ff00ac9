//! Writes a call as the protocol's request body.
//!
//! * The system prompt is a list of blocks, with the cache's marks where the call has them.
//! * Blocks keep their order. What a provider attached to a block, reasoning, and blocks of its own go
//!   back to the same provider and model only, as they came.
//! * Blank text is left out, and so is an assistant's message of which nothing or only reasoning is left,
//!   and reasoning at the end of one, which is what a cut-off answer leaves: the API refuses all of them.
//!   What then stands side by side with the same role is one message.
//! * A failed tool that said nothing has a word put into its mouth: the API refuses its silence.

use std::collections::{HashMap, HashSet};

use hango_domain::conversation::{Block, Message, ProviderData, Role, is_blank};
use hango_domain::model::{ModelCall, SystemBlock};
use hango_domain::tool::ToolDef;
use serde_json::{Map, Value, json};

use crate::quirk::Quirk;

/// The limit of an answer where nobody sets one: the API has to be given a number. None of Anthropic's
/// models has a lower limit of its own.
const MAX_TOKENS: u32 = 32_000;

/// How many marks a request may have.
const MAX_CACHE_MARKS: usize = 4;

/// What a tool is said to have said that failed without a word.
const FAILED: &str = "The tool failed.";

/// Writes the requests of one provider.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    provider: String,
    /// Whether a call's temperature is sent.
    says_temperature: bool,
    /// How many of the marks are left to the system prompt.
    cache_marks: usize,
    extra: Map<String, Value>,
}

impl Requests {
    /// For the provider of that name. `extra` wins over what a request would say; but its tools, which are
    /// the server's own, stand behind those of the call.
    pub(crate) fn new(provider: &str, extra: Map<String, Value>, quirks: &[Quirk]) -> Self {
        let marked: usize = extra.values().map(cache_marks).sum();
        let marked = marked + usize::from(has_mark(&extra));
        Self {
            provider: provider.to_owned(),
            says_temperature: !quirks.contains(&Quirk::NoTemperature) && !thinks(&extra),
            cache_marks: MAX_CACHE_MARKS.saturating_sub(marked),
            extra,
        }
    }

    /// The body that asks for a call's answer as a stream.
    pub(crate) fn body(&self, call: &ModelCall) -> Map<String, Value> {
        let mut body = Map::new();
        let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
        put("model", call.model.as_str().into());
        put("max_tokens", call.max_tokens.unwrap_or(MAX_TOKENS).into());
        put("stream", true.into());
        let system = self.system(&call.system);
        if !system.is_empty() {
            put("system", system.into());
        }
        let tools: Vec<Value> = call.tools.iter().map(tool).collect();
        if !tools.is_empty() {
            put("tools", tools.into());
        }
        if let Some(temperature) = call.temperature.filter(|_| self.says_temperature) {
            put("temperature", temperature.into());
        }
        put("messages", self.messages(call).into());
        for (name, extra) in self.extra.clone() {
            let before = body.remove(&name).filter(|_| name == "tools");
            body.insert(name, behind(before, extra));
        }
        body
    }

    /// Of more marks than a request may have the last ones stay: each covers what the ones before it do.
    fn system(&self, blocks: &[SystemBlock]) -> Vec<Value> {
        let blocks: Vec<_> = blocks.iter().filter(|it| !is_blank(&it.text)).collect();
        let marks = blocks.iter().filter(|block| block.cache_breakpoint).count();
        let mut dropped = marks.saturating_sub(self.cache_marks);
        let mut written = Vec::with_capacity(blocks.len());
        for block in blocks {
            let mut text = json!({"type": "text", "text": block.text});
            if block.cache_breakpoint && dropped > 0 {
                dropped -= 1;
            } else if block.cache_breakpoint {
                text["cache_control"] = json!({"type": "ephemeral"});
            }
            written.push(text);
        }
        written
    }

    fn messages(&self, call: &ModelCall) -> Vec<Value> {
        let mut ids = Ids::default();
        let mut messages: Vec<(Role, Vec<Value>)> = Vec::new();
        for message in call.messages.iter() {
            let content = self.content(message, &call.model, &mut ids);
            match messages.last_mut() {
                _ if content.is_empty() => {}
                Some((role, before)) if *role == message.role => before.extend(content),
                Some(_) | None => messages.push((message.role, content)),
            }
        }
        let written = messages.into_iter().map(|(role, content)| {
            let role = match role {
                Role::User => "user",
                Role::Assistant => "assistant",
            };
            json!({"role": role, "content": content})
        });
        written.collect()
    }

    fn content(&self, message: &Message, model: &str, ids: &mut Ids) -> Vec<Value> {
        let blocks = message.content.iter();
        let mut content: Vec<_> = blocks
            .filter_map(|block| self.block(block, model, ids))
            .collect();
        while content.pop_if(|last| is_reasoning(last)).is_some() {}
        content
    }

    fn block(&self, block: &Block, model: &str, ids: &mut Ids) -> Option<Value> {
        let (own, written) = match block {
            Block::Text { text, .. } if is_blank(text) => return None,
            Block::Text {
                text,
                provider_data,
            } => (
                self.members(provider_data.as_ref(), model),
                json!({"type": "text", "text": text}),
            ),
            Block::ToolUse {
                id,
                name,
                input,
                provider_data,
            } => (
                self.members(provider_data.as_ref(), model),
                json!({"type": "tool_use", "id": ids.sent(id), "name": name, "input": input}),
            ),
            Block::ToolResult {
                tool_use_id,
                content,
                is_error,
                for_user: _,
            } => (None, result(&ids.sent(tool_use_id), content, *is_error)),
            Block::Thinking {
                thinking,
                signature,
                provider_data,
            } => (
                Some(self.members(provider_data.as_ref(), model)?),
                json!({"type": "thinking", "thinking": thinking, "signature": signature}),
            ),
            Block::RedactedThinking {
                data,
                provider_data,
            } => (
                Some(self.members(provider_data.as_ref(), model)?),
                json!({"type": "redacted_thinking", "data": data}),
            ),
            Block::Provider(data) => (Some(self.members(Some(data), model)?), json!({})),
        };
        let mut block = own.unwrap_or_default();
        if let Value::Object(written) = written {
            block.extend(written);
        }
        Some(Value::Object(block))
    }

    /// The members that this provider attached while it answered as this model; `None` if none of it is
    /// its own.
    fn members(&self, data: Option<&ProviderData>, model: &str) -> Option<Map<String, Value>> {
        let own = data.filter(|data| data.provider == self.provider && data.model == model)?;
        own.data.as_object().cloned()
    }
}

/// The ids of calls as the API takes them: it is strict about their letters, and other providers are not.
#[derive(Default)]
struct Ids {
    sent: HashMap<String, String>,
    taken: HashSet<String>,
}

impl Ids {
    /// What becomes of an id. It depends only on those before it, so that a conversation which grows keeps
    /// its beginning, and with it the provider's cache.
    fn sent(&mut self, id: &str) -> String {
        if let Some(sent) = self.sent.get(id) {
            return sent.clone();
        }
        let is_legal = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
        let legal: String = id
            .chars()
            .map(|char| if is_legal(&char) { char } else { '_' })
            .collect();
        let mut sent = legal.clone();
        let mut count = 1;
        while !self.taken.insert(sent.clone()) {
            count += 1;
            sent = format!("{legal}_{count}");
        }
        self.sent.insert(id.to_owned(), sent.clone());
        sent
    }
}

fn result(id: &str, content: &str, is_error: bool) -> Value {
    if !is_error {
        return json!({"type": "tool_result", "tool_use_id": id, "content": content});
    }
    let content = if is_blank(content) { FAILED } else { content };
    json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": true})
}

fn tool(tool: &ToolDef) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.parameters,
    })
}

/// A list behind another; anything else takes the place of what was there.
fn behind(before: Option<Value>, extra: Value) -> Value {
    match (before, extra) {
        (Some(Value::Array(mut before)), Value::Array(extra)) => {
            before.extend(extra);
            before.into()
        }
        (_, extra) => extra,
    }
}

fn is_reasoning(block: &Value) -> bool {
    matches!(
        block["type"].as_str(),
        Some("thinking" | "redacted_thinking")
    )
}

/// Whether every answer begins with reasoning, as far as the operator asks for it.
fn thinks(extra: &Map<String, Value>) -> bool {
    let thinking = extra.get("thinking").and_then(|it| it.get("type"));
    thinking.is_some_and(|kind| kind != "disabled")
}

/// The marks of the cache within a value.
fn cache_marks(value: &Value) -> usize {
    match value {
        Value::Array(values) => values.iter().map(cache_marks).sum(),
        Value::Object(members) => {
            let within: usize = members.values().map(cache_marks).sum();
            within + usize::from(has_mark(members))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn has_mark(members: &Map<String, Value>) -> bool {
    members
        .get("cache_control")
        .is_some_and(|mark| !mark.is_null())
}

#[cfg(test)]
mod tests;
