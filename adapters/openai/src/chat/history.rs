//! Writes a conversation as the protocol's messages.
//!
//! * The system prompt is one message, its blocks a blank line apart; without blocks there is none.
//! * Results follow directly on the calls that they answer, one message each, before anything else that
//!   the user said.
//! * Reasoning goes back with what it led to, a mere text too, but to the same provider and model only,
//!   in the member in which it came; so does what they attached to a call. Nothing else that is not the
//!   protocol's own is sent: strict servers refuse what they don't know.
//! * Calls that can't be sent as such, and their results, are told as text.
//! * Blank text is left out, and a message of which nothing is left too, and so is an assistant's message
//!   at the end: there are servers that refuse each of them.

use std::collections::HashMap;

use hango_domain::conversation::{Block, Message, ProviderData, Role, is_blank};
use hango_domain::model::ModelCall;
use serde_json::{Map, Value, json};

use super::ids::{IdRule, Ids};
use super::speech::Member;

/// How one provider wants a conversation.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one way in which a server is its own"
)]
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// Its name.
    pub(crate) provider: String,
    /// What an id of a call may be.
    pub(crate) ids: IdRule,
    /// Whether a result names the tool.
    pub(crate) names_results: bool,
    /// Whether calls without their model's signature are refused.
    pub(crate) wants_signatures: bool,
    /// Whether an assistant's message without `reasoning_content` is refused.
    pub(crate) wants_reasoning: bool,
    /// Whether reasoning goes back at all.
    pub(crate) sends_reasoning: bool,
}

/// One conversation while it is written.
struct Writing<'a> {
    history: &'a History,
    model: &'a str,
    /// Whether the request offers tools. Gateways to models that need it for calls refuse calls without.
    has_tools: bool,
    ids: Ids,
    calls: HashMap<&'a str, Call<'a>>,
    messages: Vec<Value>,
}

/// A call that was written.
#[derive(Clone, Copy)]
struct Call<'a> {
    name: &'a str,
    /// Whether it was told as text.
    is_told: bool,
}

impl History {
    /// The messages of a request.
    pub(crate) fn messages(&self, call: &ModelCall) -> Vec<Value> {
        let mut writing = Writing {
            history: self,
            model: &call.model,
            has_tools: !call.tools.is_empty(),
            ids: Ids::new(self.ids),
            calls: HashMap::new(),
            messages: Vec::new(),
        };
        if let Some(system) = paragraphs(call.system.iter().map(|block| block.text.as_str())) {
            writing.say("system", &system);
        }
        for message in call.messages.iter() {
            match message.role {
                Role::User => writing.user(message),
                Role::Assistant => writing.assistant(message),
            }
        }
        let mut messages = writing.messages;
        let last = messages.iter().rposition(|it| it["role"] != "assistant");
        messages.truncate(last.map_or(0, |last| last + 1));
        messages
    }
}

impl<'a> Writing<'a> {
    fn user(&mut self, message: &'a Message) {
        let mut texts = Vec::new();
        for block in &message.content {
            match block {
                Block::ToolResult {
                    tool_use_id,
                    content,
                    is_error,
                    for_user: _,
                } => match self.calls.get(tool_use_id.as_str()).copied() {
                    Some(Call {
                        name,
                        is_told: true,
                    }) => {
                        let outcome = if *is_error { "failed" } else { "answered" };
                        texts.push(format!("[The tool {name} {outcome}]\n{content}"));
                    }
                    call => self.result(tool_use_id, call, content),
                },
                Block::Text { text, .. } => texts.push(text.clone()),
                Block::ToolUse { .. }
                | Block::Thinking { .. }
                | Block::RedactedThinking { .. }
                | Block::Provider(_) => {}
            }
        }
        if let Some(text) = paragraphs(texts.iter().map(String::as_str)) {
            self.say("user", &text);
        }
    }

    fn result(&mut self, id: &str, call: Option<Call<'_>>, content: &str) {
        let id = self.ids.sent(id);
        let mut result = json!({"role": "tool", "tool_call_id": id, "content": content});
        if let Some(call) = call.filter(|_| self.history.names_results) {
            result["name"] = call.name.into();
        }
        self.messages.push(result);
    }

    fn assistant(&mut self, message: &'a Message) {
        let is_told = !self.has_tools || !self.is_signed(message);
        let mut texts = Vec::new();
        let mut calls = Vec::new();
        for block in &message.content {
            match block {
                Block::Text { text, .. } => texts.push(text.clone()),
                Block::ToolUse {
                    id,
                    name,
                    input,
                    provider_data,
                } => {
                    self.calls.insert(id, Call { name, is_told });
                    let arguments = Value::Object(input.clone()).to_string();
                    if is_told {
                        texts.push(format!("[Called the tool {name} with {arguments}]"));
                        continue;
                    }
                    let id = self.ids.sent(id);
                    let function = json!({"name": name, "arguments": arguments});
                    let mut call = json!({"id": id, "type": "function", "function": function});
                    if let Some(extra) = self.own(provider_data.as_ref(), "extra_content") {
                        call["extra_content"] = extra.clone();
                    }
                    calls.push(call);
                }
                Block::ToolResult { .. }
                | Block::Thinking { .. }
                | Block::RedactedThinking { .. }
                | Block::Provider(_) => {}
            }
        }
        let text = paragraphs(texts.iter().map(String::as_str));
        if text.is_none() && calls.is_empty() {
            return;
        }
        let mut written = self.reasoning(message);
        written.insert("role".to_owned(), "assistant".into());
        // An empty text beside calls is what every server takes: llama.cpp's takes neither null nor
        // nothing.
        written.insert("content".to_owned(), text.unwrap_or_default().into());
        if !calls.is_empty() {
            written.insert("tool_calls".to_owned(), calls.into());
        }
        self.messages.push(Value::Object(written));
    }

    /// The reasoning that led to a message, as members of it.
    fn reasoning(&self, message: &Message) -> Map<String, Value> {
        let mut members = Map::new();
        if !self.history.sends_reasoning {
            return members;
        }
        let wanted = Member::ReasoningContent.name();
        let wanted = wanted.filter(|_| self.history.wants_reasoning);
        if let Some(name) = wanted {
            members.insert(name.to_owned(), "".into());
        }
        for block in &message.content {
            if let Block::Provider(data) = block
                && let Some(details) = self.own(Some(data), "reasoning_details")
            {
                members.insert("reasoning_details".to_owned(), details.clone());
            }
            if let Block::Thinking {
                thinking,
                provider_data,
                ..
            } = block
                && let Some(data) = self.of_us(provider_data.as_ref())
                && let Some(name) = wanted.or(Member::of(&data["member"]).name())
            {
                let before = members.get(name).and_then(Value::as_str);
                let all = paragraphs(before.into_iter().chain([thinking.as_str()]));
                members.insert(name.to_owned(), all.unwrap_or_default().into());
            }
        }
        members
    }

    /// Whether the server takes a message's calls. Of several at once the first one bears the signature.
    fn is_signed(&self, message: &Message) -> bool {
        let signature = message.content.iter().find_map(|block| match block {
            Block::ToolUse { provider_data, .. } => {
                let extra = self.own(provider_data.as_ref(), "extra_content");
                Some(extra.and_then(|extra| extra.pointer("/google/thought_signature")))
            }
            Block::Text { .. }
            | Block::ToolResult { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::Provider(_) => None,
        });
        !self.history.wants_signatures || signature.flatten().is_some()
    }

    /// What this provider attached while it answered as this model.
    fn of_us<'d>(&self, data: Option<&'d ProviderData>) -> Option<&'d Value> {
        let data = data.filter(|data| data.provider == self.history.provider)?;
        (data.model == self.model).then_some(&data.data)
    }

    /// The same, of what stands under that name.
    fn own<'d>(&self, data: Option<&'d ProviderData>, name: &str) -> Option<&'d Value> {
        self.of_us(data)?.get(name)
    }

    fn say(&mut self, role: &str, text: &str) {
        self.messages.push(json!({"role": role, "content": text}));
    }
}

/// The texts that say something, a blank line apart; `None` if none does.
fn paragraphs<'a>(texts: impl Iterator<Item = &'a str>) -> Option<String> {
    let texts: Vec<&str> = texts.filter(|text| !is_blank(text)).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

#[cfg(test)]
mod tests;
