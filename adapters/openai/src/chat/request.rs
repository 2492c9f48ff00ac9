//! Writes a call as the protocol's request body.
//!
//! What is said in it beside the conversation is little: the model, the tools if there are any, the limit
//! of the answer under the name that the server knows, and how to sample if its models take that.

use hango_domain::model::ModelCall;
use hango_domain::tool::ToolDef;
use hango_provider_http::Origin;
use serde_json::{Map, Value, json};
use url::Url;

use super::asked::Asked;
use super::history::History;
use super::ids::IdRule;
use super::mapping::Mapping;
use crate::quirk::Quirk;

/// What the limit of an answer is called. OpenAI's reasoning models refuse the first name, and many
/// servers know no other.
const LIMIT: &str = "max_tokens";
const NEWER_LIMIT: &str = "max_completion_tokens";

/// Writes the requests of one provider.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one way in which a server is its own"
)]
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    history: History,
    limit: &'static str,
    /// Whether a call's temperature is sent.
    says_temperature: bool,
    /// Whether usage is asked for.
    asks_usage: bool,
    calls_in_text: bool,
    think_tags: bool,
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
        let has = |quirk| quirks.contains(&quirk);
        let host = url.host_str().unwrap_or_default();
        let is_openai = host == "api.openai.com" || host.ends_with(".api.openai.com");
        let knows_newer = has(Quirk::MaxCompletionTokens) || is_openai;
        Self {
            history: History {
                provider: provider.to_owned(),
                ids: if has(Quirk::NineCharacterIds) {
                    IdRule::Nine
                } else {
                    IdRule::Short
                },
                names_results: has(Quirk::NamedResults),
                wants_signatures: has(Quirk::ThoughtSignatures),
                wants_reasoning: has(Quirk::WantsReasoning),
                sends_reasoning: !has(Quirk::NoReasoning),
            },
            limit: if knows_newer && !has(Quirk::MaxTokens) {
                NEWER_LIMIT
            } else {
                LIMIT
            },
            says_temperature: !has(Quirk::NoTemperature),
            asks_usage: !has(Quirk::NoStreamOptions),
            calls_in_text: has(Quirk::CallsInText),
            think_tags: has(Quirk::ThinkTags),
            extra,
        }
    }

    /// The body that asks for a call's answer as a stream.
    pub(crate) fn body(&self, call: &ModelCall) -> Map<String, Value> {
        let mut body = Map::new();
        let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
        put("model", call.model.as_str().into());
        put("messages", self.history.messages(call).into());
        put("stream", true.into());
        if self.asks_usage {
            put("stream_options", json!({"include_usage": true}));
        }
        if !call.tools.is_empty() {
            put("tools", call.tools.iter().map(tool).collect());
        }
        if let Some(limit) = call.max_tokens {
            put(self.limit, limit.into());
        }
        if let Some(temperature) = call.temperature.filter(|_| self.says_temperature) {
            put("temperature", temperature.into());
        }
        body.extend(self.extra.clone());
        body
    }

    /// What reads the answer to a call.
    pub(crate) fn mapping(&self, origin: Origin, call: ModelCall) -> Mapping {
        let extra = |name| self.extra.get(name).and_then(Value::as_u64);
        let own = call.max_tokens.map(u64::from);
        let asked = Asked {
            limit: extra(NEWER_LIMIT).or(extra(LIMIT)).or(own),
            model: call.model,
            tools: call.tools,
            calls_in_text: self.calls_in_text,
            think_tags: self.think_tags,
        };
        Mapping::new(origin, asked)
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

#[cfg(test)]
mod tests;
