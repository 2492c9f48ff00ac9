//! The same provider in the words of Anthropic's Messages API, and as strict. An answer that calls tools
//! begins with a signed thought, which must come back unchanged in front of its calls, and only there.

use std::collections::BTreeSet;

use axum::extract::{Json, State};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{FakeProvider, stream};
use crate::support::reply::Reply;

/// What the ids of its calls begin with.
const PREFIX: &str = "toolu";

pub(super) async fn answer(
    State(provider): State<FakeProvider>,
    headers: HeaderMap,
    Json(request): Json<Value>,
) -> Response {
    let messages = match objections(&headers, &request) {
        Ok(messages) => messages,
        Err(objection) => {
            let error = error("invalid_request_error", &objection);
            let refused = format!("{objection}: {request}");
            provider.log().refused.push(refused);
            return (StatusCode::BAD_REQUEST, Json(error)).into_response();
        }
    };
    let (asked, reply) = provider.note(messages, PREFIX);
    if let Some(seconds) = reply.rest {
        let error = error("rate_limit_error", "too many at once");
        let rest = [(RETRY_AFTER, seconds.to_string())];
        return (StatusCode::TOO_MANY_REQUESTS, rest, Json(error)).into_response();
    }
    let pieces = pieces(&reply, &asked.ids);
    stream(asked, reply, pieces)
}

fn error(class: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": class, "message": message}, "request_id": "req_1"})
}

/// The thought that the call of that id begins with.
fn thought(id: &str) -> Value {
    let (thinking, signature) = (format!("I need {id}."), format!("signed {id}"));
    json!({"type": "thinking", "thinking": thinking, "signature": signature})
}

/// The pieces as they go over the wire; `ids` are those of the calls.
fn pieces(reply: &Reply, ids: &[String]) -> Vec<String> {
    let usage = json!({"input_tokens": 10, "cache_read_input_tokens": 0, "output_tokens": 1});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "test",
                         "content": [], "stop_reason": null, "usage": usage});
    let mut pieces = vec![
        event(&json!({"type": "message_start", "message": message})),
        event(&json!({"type": "ping"})),
    ];
    let mut index = 0;
    let mut block = |begin: Value, deltas: Vec<Value>| {
        let begin = json!({"type": "content_block_start", "index": index, "content_block": begin});
        pieces.push(event(&begin));
        for delta in deltas {
            let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
            pieces.push(event(&delta));
        }
        let end = json!({"type": "content_block_stop", "index": index});
        pieces.push(event(&end));
        index += 1;
    };
    if let Some(id) = ids.first() {
        let thought = thought(id);
        let deltas = vec![
            json!({"type": "thinking_delta", "thinking": thought["thinking"]}),
            json!({"type": "signature_delta", "signature": thought["signature"]}),
        ];
        block(
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            deltas,
        );
    }
    if !reply.words().is_empty() {
        let words = reply.words().iter();
        let deltas = words.map(|word| json!({"type": "text_delta", "text": word}));
        block(json!({"type": "text", "text": ""}), deltas.collect());
    }
    for ((name, input), id) in reply.calls_with_input().iter().zip(ids) {
        let begin = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        let input = input.to_string();
        let (head, tail) = input.split_at(input.len() / 2);
        let deltas = ["", head, tail];
        let deltas = deltas.map(|json| json!({"type": "input_json_delta", "partial_json": json}));
        block(begin, deltas.to_vec());
    }
    let reason = if ids.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    };
    let usage = json!({"output_tokens": 5});
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    pieces.push(event(
        &json!({"type": "message_delta", "delta": delta, "usage": usage}),
    ));
    pieces.push(event(&json!({"type": "message_stop"})));
    pieces
}

fn event(body: &Value) -> String {
    let name = body["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {body}\n\n")
}

/// What is wrong with a request; if nothing is, its conversation in the words of the other protocol.
fn objections(headers: &HeaderMap, request: &Value) -> Result<Vec<Value>, String> {
    if !headers.contains_key("anthropic-version") {
        return Err("anthropic-version: header is required".to_owned());
    }
    if request["stream"] != true || request["max_tokens"].as_u64().is_none_or(|most| most == 0) {
        return Err("a stream and its limit must be asked for".to_owned());
    }
    let tools = request["tools"].as_array().into_iter().flatten();
    for tool in tools {
        if !tool["name"].is_string() || tool["input_schema"]["type"] != "object" {
            return Err(format!("{tool} is no tool"));
        }
    }
    let mut told = Vec::new();
    let system = request["system"].as_array().into_iter().flatten();
    let system: Vec<&str> = system.filter_map(|block| block["text"].as_str()).collect();
    if !system.is_empty() {
        told.push(json!({"role": "system", "content": system.join("\n\n")}));
    }
    let messages = request["messages"].as_array();
    let messages = messages.ok_or_else(|| "there are no messages".to_owned())?;
    let mut talk = Talk::default();
    for (at, message) in messages.iter().enumerate() {
        let said = talk.hear(message);
        told.extend(said.map_err(|why| format!("messages.{at}: {why}"))?);
    }
    if talk.before != "user" || !talk.open.is_empty() {
        return Err("the last message must be the user's, and answer every call".to_owned());
    }
    Ok(told)
}

/// A conversation as far as it was heard.
#[derive(Default)]
struct Talk {
    /// Who spoke last; empty if nobody did.
    before: &'static str,
    /// The calls that wait for a result.
    open: Vec<String>,
    ids: BTreeSet<String>,
}

impl Talk {
    fn hear(&mut self, message: &Value) -> Result<Vec<Value>, String> {
        let content = message["content"].as_array().cloned().unwrap_or_default();
        if content.is_empty() || content.iter().any(is_blank) {
            return Err("text content blocks must be non-empty".to_owned());
        }
        match (message["role"].as_str(), self.before) {
            (Some("user"), "" | "assistant") => self.user(&content),
            (Some("assistant"), "user") => self.assistant(&content),
            _ => Err("roles must alternate".to_owned()),
        }
    }

    fn user(&mut self, content: &[Value]) -> Result<Vec<Value>, String> {
        self.before = "user";
        let is_result = |block: &&Value| block["type"] == "tool_result";
        let results: Vec<&Value> = content.iter().take_while(is_result).collect();
        let rest = &content[results.len()..];
        let answered = results.iter().map(|block| text(&block["tool_use_id"]));
        if answered.collect::<Vec<_>>() != std::mem::take(&mut self.open) {
            return Err("tool_use ids were found without tool_result blocks".to_owned());
        }
        if rest.iter().any(|block| block["type"] != "text") {
            return Err("a user says text, behind all results".to_owned());
        }
        let mut told = Vec::new();
        for result in results {
            let empty = result["content"].as_str().is_none_or(str::is_empty);
            if empty && result["is_error"] == true {
                return Err("content cannot be empty if is_error is true".to_owned());
            }
            let id = &result["tool_use_id"];
            told.push(json!({"role": "tool", "tool_call_id": id, "content": result["content"]}));
        }
        let texts: Vec<String> = rest.iter().map(|block| text(&block["text"])).collect();
        if !texts.is_empty() {
            told.push(json!({"role": "user", "content": texts.join("\n\n")}));
        }
        Ok(told)
    }

    fn assistant(&mut self, content: &[Value]) -> Result<Vec<Value>, String> {
        self.before = "assistant";
        let mut texts = Vec::new();
        for block in content {
            match block["type"].as_str() {
                Some("text") => texts.push(text(&block["text"])),
                Some("tool_use") => {
                    let id = text(&block["id"]);
                    if !block["input"].is_object() || !self.ids.insert(id.clone()) {
                        return Err(format!("tool_use {id} has no input, or is not unique"));
                    }
                    self.open.push(id);
                }
                Some("thinking") => {}
                _ => return Err(format!("{block} is no block")),
            }
        }
        // Calls of another provider have no thought, and no answer without calls has one.
        let own = self.open.first().filter(|id| id.starts_with(PREFIX));
        let expected: Vec<Value> = own.map(|id| thought(id)).into_iter().collect();
        let is_thought = |block: &&Value| block["type"] == "thinking";
        let thoughts: Vec<&Value> = content.iter().filter(is_thought).collect();
        let is_ahead = content
            .iter()
            .take(thoughts.len())
            .all(|it| is_thought(&it));
        if thoughts != expected.iter().collect::<Vec<_>>() || !is_ahead {
            return Err("thinking blocks cannot be modified".to_owned());
        }
        Ok(vec![
            json!({"role": "assistant", "content": texts.concat()}),
        ])
    }
}

fn is_blank(block: &Value) -> bool {
    block["type"] == "text" && text(&block["text"]).trim().is_empty()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
