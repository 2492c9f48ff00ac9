//! Writes a call as the protocol's request body.
//!
//! * The system prompt is one message, its blocks a blank line apart; without blocks there is none.
//! * Results follow directly on the calls that they answer, one message each, before anything else that
//!   the user said.
//! * Thinking is not sent. What a provider attached, and blocks of its own, go back to the same provider
//!   and model only, as members of the call or message that they belong to.
//! * Blank text is left out, and a message of which nothing is left too: strict servers refuse both.

use hango_domain::conversation::{Block, Message, ProviderData, Role, is_blank};
use hango_domain::model::ModelCall;
use hango_domain::tool::ToolDef;
use serde_json::{Map, Value, json};
use url::Url;

use crate::quirk::Quirk;

/// Writes the requests of one provider.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    provider: String,
    /// What the limit of an answer is called.
    max_tokens: &'static str,
    /// Whether a call's temperature is sent.
    says_temperature: bool,
    extra: Map<String, Value>,
}

impl Requests {
    /// For the provider of that name at that address. `extra` wins over what a request would say.
    pub(crate) fn new(
        provider: &str,
        url: &Url,
        extra: Map<String, Value>,
        quirks: &[Quirk],
    ) -> Self {
        // OpenAI's reasoning models refuse the protocol's first name, and others know no other.
        let max_tokens = match url.host_str() {
            Some("api.openai.com") => "max_completion_tokens",
            _ => "max_tokens",
        };
        Self {
            provider: provider.to_owned(),
            max_tokens,
            says_temperature: !quirks.contains(&Quirk::NoTemperature),
            extra,
        }
    }

    /// The body that asks for a call's answer as a stream.
    pub(crate) fn body(&self, call: &ModelCall) -> Map<String, Value> {
        let mut body = Map::new();
        let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
        put("model", call.model.as_str().into());
        put("messages", self.messages(call).into());
        put("stream", true.into());
        put("stream_options", json!({"include_usage": true}));
        if !call.tools.is_empty() {
            put("tools", call.tools.iter().map(tool).collect());
        }
        if let Some(limit) = call.max_tokens {
            put(self.max_tokens, limit.into());
        }
        if let Some(temperature) = call.temperature.filter(|_| self.says_temperature) {
            put("temperature", temperature.into());
        }
        body.extend(self.extra.clone());
        body
    }

    fn messages(&self, call: &ModelCall) -> Vec<Value> {
        let mut messages = Vec::new();
        if let Some(system) = paragraphs(call.system.iter().map(|block| block.text.as_str())) {
            messages.push(json!({"role": "system", "content": system}));
        }
        for message in call.messages.iter() {
            match message.role {
                Role::User => user(message, &mut messages),
                Role::Assistant => messages.extend(self.assistant(message, &call.model)),
            }
        }
        messages
    }

    fn assistant(&self, message: &Message, model: &str) -> Option<Value> {
        let mut own = Map::new();
        let mut calls = Vec::new();
        for block in &message.content {
            match block {
                Block::ToolUse {
                    id,
                    name,
                    input,
                    provider_data,
                } => {
                    let arguments = Value::Object(input.clone()).to_string();
                    let function = json!({"name": name, "arguments": arguments});
                    let mut call = self.members(provider_data.as_ref(), model);
                    call.insert("id".to_owned(), id.as_str().into());
                    call.insert("type".to_owned(), "function".into());
                    call.insert("function".to_owned(), function);
                    calls.push(Value::Object(call));
                }
                Block::Provider(data) => own.extend(self.members(Some(data), model)),
                Block::Text { .. }
                | Block::ToolResult { .. }
                | Block::Thinking { .. }
                | Block::RedactedThinking { .. } => {}
            }
        }
        let text = paragraphs(message.content.iter().filter_map(Block::as_text));
        if text.is_none() && calls.is_empty() {
            return None;
        }
        own.insert("role".to_owned(), "assistant".into());
        // An empty text beside calls is what every server takes: llama.cpp's takes neither null nor
        // nothing.
        own.insert("content".to_owned(), text.unwrap_or_default().into());
        if !calls.is_empty() {
            own.insert("tool_calls".to_owned(), calls.into());
        }
        Some(Value::Object(own))
    }

    /// The members that this provider attached while it answered as this model.
    fn members(&self, data: Option<&ProviderData>, model: &str) -> Map<String, Value> {
        let own = data.filter(|data| data.provider == self.provider && data.model == model);
        own.and_then(|data| data.data.as_object())
            .cloned()
            .unwrap_or_default()
    }
}

fn user(message: &Message, messages: &mut Vec<Value>) {
    for block in &message.content {
        if let Block::ToolResult {
            tool_use_id,
            content,
            ..
        } = block
        {
            messages.push(json!({"role": "tool", "tool_call_id": tool_use_id, "content": content}));
        }
    }
    if let Some(text) = paragraphs(message.content.iter().filter_map(Block::as_text)) {
        messages.push(json!({"role": "user", "content": text}));
    }
}

fn tool(tool: &ToolDef) -> Value {
    let function = json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    });
    json!({"type": "function", "function": function})
}

/// The texts that say something, a blank line apart; `None` if none does.
fn paragraphs<'a>(texts: impl Iterator<Item = &'a str>) -> Option<String> {
    let texts: Vec<&str> = texts.filter(|text| !is_blank(text)).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

#[cfg(test)]
mod tests;
