//! Writes a call as the protocol's request body.
//!
//! * The conversation is a list of items, in its order: messages, calls, their outputs, reasoning, and
//!   items of the server's own kinds. The system prompt is no item but the `instructions`.
//! * What a provider attached to an item, reasoning, and items of its own go back to the same provider
//!   and model only, as they came. Reasoning stands before what it led to; at a message's end it led to
//!   nothing, and the API refuses it. What the server cannot read is left out too.
//! * An item's id tells the server which reasoning belongs to it. Where that is left out, so is the id.
//! * What the assistant said has an id and a status in any case: servers other than OpenAI's refuse it
//!   without, and some of them refuse plain text.

use hango_domain::conversation::{Block, Message, ProviderData, Role, is_blank};
use hango_domain::model::{ModelCall, SystemBlock};
use hango_domain::tool::ToolDef;
use serde_json::{Map, Value, json};

use super::ids::Ids;
use crate::quirk::Quirk;

/// What OpenAI's models are called that do not reason: they refuse to be asked for it.
const WITHOUT_REASONING: [&str; 3] = ["gpt-3.5", "gpt-4", "gpt-5-chat"];

/// What a tool is said to have said that failed without a word.
const FAILED: &str = "The tool failed.";

/// Writes the requests of one provider.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    provider: String,
    /// Whether a call's temperature is sent.
    says_temperature: bool,
    extra: Map<String, Value>,
}

impl Requests {
    /// For the provider of that name. `extra` wins over what a request would say; but its tools, which are
    /// the server's own, stand behind those of the call.
    pub(crate) fn new(provider: &str, extra: Map<String, Value>, quirks: &[Quirk]) -> Self {
        Self {
            provider: provider.to_owned(),
            says_temperature: !quirks.contains(&Quirk::NoTemperature),
            extra,
        }
    }

    /// The body that asks for a call's answer as a stream.
    pub(crate) fn body(&self, call: &ModelCall) -> Map<String, Value> {
        let mut body = Map::new();
        let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
        put("model", call.model.as_str().into());
        put("stream", true.into());
        put("store", false.into());
        if !WITHOUT_REASONING
            .iter()
            .any(|name| call.model.contains(name))
        {
            put("include", json!(["reasoning.encrypted_content"]));
        }
        if let Some(instructions) = instructions(&call.system) {
            put("instructions", instructions.into());
        }
        if !call.tools.is_empty() {
            put("tools", call.tools.iter().map(tool).collect());
        }
        if let Some(limit) = call.max_tokens {
            put("max_output_tokens", limit.into());
        }
        if let Some(temperature) = call.temperature.filter(|_| self.says_temperature) {
            put("temperature", temperature.into());
        }
        put("input", self.input(call).into());
        for (name, extra) in self.extra.clone() {
            let before = body.remove(&name).filter(|_| name == "tools");
            body.insert(name, behind(before, extra));
        }
        body
    }

    fn input(&self, call: &ModelCall) -> Vec<Value> {
        let mut ids = Ids::default();
        let mut items = Vec::new();
        for message in call.messages.iter() {
            match message.role {
                Role::User => user(message, &mut ids, &mut items),
                Role::Assistant => self.assistant(message, &call.model, &mut ids, &mut items),
            }
        }
        items
    }

    fn assistant(&self, message: &Message, model: &str, ids: &mut Ids, items: &mut Vec<Value>) {
        let begin = items.len();
        let keeps_ids = message.content.iter().all(|block| match block {
            Block::Thinking { .. } | Block::RedactedThinking { .. } => {
                self.reasoning(block, model).is_some()
            }
            Block::Text { .. }
            | Block::ToolUse { .. }
            | Block::ToolResult { .. }
            | Block::Provider(_) => true,
        });
        let own = |data: &Option<ProviderData>, kind: &str| {
            let own = self.own(data.as_ref(), model, kind);
            own.filter(|_| keeps_ids).unwrap_or_default()
        };
        for block in &message.content {
            let item = match block {
                Block::Text {
                    text,
                    provider_data,
                } if !is_blank(text) => {
                    let id = format!("msg_{}", items.len());
                    Some(said(text, id, own(provider_data, "message")))
                }
                Block::ToolUse {
                    id,
                    name,
                    input,
                    provider_data,
                } => {
                    let mut item = own(provider_data, "function_call");
                    let arguments = Value::Object(input.clone()).to_string();
                    item.insert("type".to_owned(), "function_call".into());
                    item.insert("call_id".to_owned(), ids.call(id).into());
                    item.insert("name".to_owned(), name.as_str().into());
                    item.insert("arguments".to_owned(), arguments.into());
                    Some(item)
                }
                Block::Provider(data) => self.members(Some(data), model),
                Block::Thinking { .. } => self.reasoning(block, model),
                Block::Text { .. } | Block::ToolResult { .. } | Block::RedactedThinking { .. } => {
                    None
                }
            };
            items.extend(item.map(Value::Object));
        }
        while items.len() > begin && items.pop_if(|last| last["type"] == "reasoning").is_some() {}
    }

    /// A block as reasoning that the server can read: encrypted, or in the clear. Its summary is for
    /// people alone.
    fn reasoning(&self, block: &Block, model: &str) -> Option<Map<String, Value>> {
        let Block::Thinking {
            signature,
            provider_data,
            ..
        } = block
        else {
            return None;
        };
        let mut item = self.own(provider_data.as_ref(), model, "reasoning")?;
        if !signature.is_empty() {
            item.insert("encrypted_content".to_owned(), signature.as_str().into());
        }
        let is_readable = !signature.is_empty() || item.contains_key("content");
        is_readable.then_some(item)
    }

    /// The members of an item of that kind, as far as this provider attached them while it answered as
    /// this model. In another protocol it attaches others.
    fn own(
        &self,
        data: Option<&ProviderData>,
        model: &str,
        kind: &str,
    ) -> Option<Map<String, Value>> {
        let members = self.members(data, model);
        members.filter(|members| members.get("type").is_some_and(|it| it == kind))
    }

    fn members(&self, data: Option<&ProviderData>, model: &str) -> Option<Map<String, Value>> {
        let own = data.filter(|data| data.provider == self.provider && data.model == model)?;
        own.data.as_object().cloned()
    }
}

fn user(message: &Message, ids: &mut Ids, items: &mut Vec<Value>) {
    let mut said = Vec::new();
    for block in &message.content {
        match block {
            Block::Text { text, .. } if !is_blank(text) => {
                said.push(json!({"type": "input_text", "text": text}));
            }
            Block::ToolResult {
                tool_use_id,
                content,
                is_error,
                ..
            } => {
                let silent = *is_error && is_blank(content);
                let output = if silent { FAILED } else { content };
                let id = ids.result(tool_use_id);
                items
                    .push(json!({"type": "function_call_output", "call_id": id, "output": output}));
            }
            Block::Text { .. }
            | Block::ToolUse { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::Provider(_) => {}
        }
    }
    if !said.is_empty() {
        items.push(json!({"type": "message", "role": "user", "content": said}));
    }
}

/// What the assistant said; `own` is the item it came in, `id` is for one that has none.
fn said(text: &str, id: String, mut own: Map<String, Value>) -> Map<String, Value> {
    let annotations = own.remove("annotations").unwrap_or_else(|| json!([]));
    let part = json!({"type": "output_text", "text": text, "annotations": annotations});
    own.insert("type".to_owned(), "message".into());
    own.insert("role".to_owned(), "assistant".into());
    own.insert("content".to_owned(), json!([part]));
    own.entry("id").or_insert_with(|| id.into());
    own.entry("status").or_insert_with(|| "completed".into());
    own
}

/// A strict schema lists all its properties as required, which those of tools in general do not.
fn tool(tool: &ToolDef) -> Value {
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": false,
    })
}

/// The texts that say something, a blank line apart; `None` if none does.
fn instructions(system: &[SystemBlock]) -> Option<String> {
    let texts = system.iter().map(|block| block.text.as_str());
    let texts: Vec<&str> = texts.filter(|text| !is_blank(text)).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
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

#[cfg(test)]
mod tests;
