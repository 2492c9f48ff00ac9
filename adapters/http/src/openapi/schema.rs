//! Shapes of the domain's types, which know nothing of this description. Their words come from there.

use hango_application::use_cases::FaultCode;
use hango_domain::access::Role;
use hango_domain::conversation::{Role as Speaker, StopReason};
use hango_domain::explain::{Blocked, Cause};
use hango_domain::journal::CallState;
use hango_domain::people::{TenantStatus, UserStatus};
use hango_domain::run::{RunErrorCode, RunStatus, TodoStatus};
use hango_domain::tool::Idempotency;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, OneOfBuilder, Schema};

/// One of some words.
pub(crate) fn words<T: Serialize>(all: impl IntoIterator<Item = T>) -> Schema {
    let words: Vec<T> = all.into_iter().collect();
    of(json!({"type": "string", "enum": words}))
}

/// A shape that is written down as it is.
fn of(shape: Value) -> Schema {
    serde_json::from_value(shape).expect("it is a schema")
}

/// A list: read out of JSON it would lose what is in it.
fn list(items: Schema) -> Schema {
    ArrayBuilder::new().items(RefOr::T(items)).build().into()
}

/// A shape, or nothing.
fn nullable(shape: &Schema) -> Schema {
    of(json!({"oneOf": [{"type": "null"}, shape]}))
}

pub(crate) fn role() -> Schema {
    words(Role::ALL)
}

pub(crate) fn user_status() -> Schema {
    words(UserStatus::ALL)
}

pub(crate) fn tenant_status() -> Schema {
    words(TenantStatus::ALL)
}

pub(crate) fn idempotency() -> Schema {
    words(Idempotency::ALL)
}

pub(crate) fn call_state() -> Schema {
    words(CallState::ALL)
}

pub(crate) fn run_state() -> Schema {
    words(RunStatus::ALL)
}

pub(crate) fn run_states() -> Schema {
    list(run_state())
}

/// Who speaks.
pub(crate) fn speaker() -> Schema {
    words([Speaker::User, Speaker::Assistant])
}

pub(crate) fn stop_reason() -> Schema {
    nullable(&words(StopReason::ALL))
}

/// What is wrong with a part of what was sent.
pub(crate) fn fault_code() -> Schema {
    words(FaultCode::ALL.map(FaultCode::as_str))
}

/// Why a run failed.
pub(crate) fn run_error() -> Schema {
    nullable(&of(json!({
        "type": "object",
        "required": ["code", "message"],
        "properties": {
            "code": words(RunErrorCode::ALL),
            "message": {"type": "string", "description": "For people."},
        },
    })))
}

/// What a queued run waits for: another run by its id, or something else by its word.
pub(crate) fn blocked_by() -> Schema {
    let words = Blocked::WORDS.join("`, `");
    of(json!({
        "type": ["string", "null"],
        "description": format!(
            "The run that comes first, by its id, or what else it waits for: `{words}`. Null where it waits \
             for nothing but a worker that is free."
        ),
    }))
}

/// What ended an attempt; none where it goes on.
pub(crate) fn attempt_cause() -> Schema {
    nullable(&words(Cause::words()))
}

/// Tokens.
pub(crate) fn usage() -> Schema {
    let count = |what: &str| json!({"type": "integer", "minimum": 0, "description": what});
    of(json!({
        "type": "object",
        "description": "Tokens, as the provider counted them.",
        "required": ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"],
        "properties": {
            "input_tokens": count("All input, cached included."),
            "output_tokens": count("All output, reasoning included."),
            "cache_read_tokens": count("The part of the input that was read from a cache."),
            "cache_write_tokens": count("The part of the input that was written to a cache."),
            "estimated": {
                "type": "boolean",
                "description": "True where a provider did not say, and this is a guess; absent else.",
            },
        },
    }))
}

/// The cost of a message; none for a user's.
pub(crate) fn usage_of_message() -> Schema {
    nullable(&usage())
}

/// A run's plan.
pub(crate) fn todos() -> Schema {
    list(of(json!({
        "type": "object",
        "required": ["content", "status"],
        "properties": {
            "content": {"type": "string"},
            "status": words(TodoStatus::ALL),
        },
    })))
}

/// The optional layers' settings as they hold.
pub(crate) fn middleware() -> Schema {
    let switch = json!({"type": "boolean"});
    of(json!({
        "type": "object",
        "required": ["todo", "repeat_call"],
        "properties": {
            "todo": {
                "type": "object",
                "required": ["enabled"],
                "properties": {"enabled": switch},
            },
            "repeat_call": {
                "type": "object",
                "required": ["enabled", "threshold"],
                "properties": {
                    "enabled": switch,
                    "threshold": {"type": "integer", "minimum": 1},
                },
            },
        },
    }))
}

/// Any JSON object.
pub(crate) fn object() -> Schema {
    of(json!({"type": "object", "additionalProperties": true}))
}

/// The parts of a message.
pub(crate) fn content() -> Schema {
    let kind = |kind: &str, required: &[&str], properties: Value| {
        let mut properties = properties;
        properties["type"] = json!({"type": "string", "enum": [kind]});
        let required: Vec<&str> = [&["type"], required].concat();
        json!({"type": "object", "title": kind, "required": required, "properties": properties})
    };
    let text = || json!({"type": "string"});
    // Nothing but a type is what a schema cannot do without here.
    let any = || json!({"type": ["object", "array", "string", "number", "boolean", "null"]});
    let own = json!({
        "type": "object",
        "description": "What the provider attached; it goes back only to where it came from.",
        "required": ["provider", "model", "data"],
        "properties": {"provider": text(), "model": text(), "data": any()},
    });
    let blocks = [
        kind(
            "text",
            &["text"],
            json!({"text": text(), "provider_data": own}),
        ),
        kind(
            "tool_use",
            &["id", "name", "input"],
            json!({"id": text(), "name": text(), "input": {"type": "object"}, "provider_data": own}),
        ),
        kind(
            "tool_result",
            &["tool_use_id", "content", "is_error"],
            json!({
                "tool_use_id": text(),
                "content": {"type": "string", "description": "What the model sees."},
                "for_user": {"type": "string", "description": "What a person sees; absent when it is the same."},
                "is_error": {"type": "boolean"},
            }),
        ),
        kind(
            "thinking",
            &["thinking", "signature"],
            json!({"thinking": text(), "signature": text(), "provider_data": own}),
        ),
        kind(
            "redacted_thinking",
            &["data"],
            json!({"data": text(), "provider_data": own}),
        ),
        kind(
            "provider",
            &["provider", "model", "data"],
            json!({"provider": text(), "model": text(), "data": any()}),
        ),
    ];
    list(of(json!({"oneOf": blocks})))
}

/// What a client may say: text, or text blocks.
pub(crate) fn said() -> Schema {
    let block = of(json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["type", "text"],
        "properties": {
            "type": {"type": "string", "enum": ["text"]},
            "text": {"type": "string", "minLength": 1},
        },
    }));
    let blocks = ArrayBuilder::new()
        .items(RefOr::T(block))
        .min_items(Some(1));
    OneOfBuilder::new()
        .item(of(json!({"type": "string", "minLength": 1})))
        .item(Schema::from(blocks.build()))
        .build()
        .into()
}

/// What usage is summed by.
pub(crate) fn usage_group() -> Schema {
    words(["agent", "user", "day"])
}

/// What happens to a run behind others.
pub(crate) fn on_busy() -> Schema {
    words(["enqueue", "reject", "interrupt"])
}

#[cfg(test)]
mod tests {
    use hango_domain::conversation::{Block, ProviderData};
    use serde_json::Map;

    use super::*;

    fn is_described(schema: &Schema, value: &Value) -> bool {
        let schema = serde_json::to_value(schema).expect("a schema is JSON");
        jsonschema::is_valid(&schema, value)
    }

    #[test]
    fn every_block_of_a_message_is_described() {
        let data = || ProviderData {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            data: json!({"any": ["thing"]}),
        };
        let blocks = [
            Block::Text {
                text: "hi".to_owned(),
                provider_data: Some(data()),
            },
            Block::ToolUse {
                id: "c".to_owned(),
                name: "get_time".to_owned(),
                input: Map::new(),
                provider_data: None,
            },
            Block::ToolResult {
                tool_use_id: "c".to_owned(),
                content: "noon".to_owned(),
                for_user: Some("12:00".to_owned()),
                is_error: false,
            },
            Block::Thinking {
                thinking: "hm".to_owned(),
                signature: String::new(),
                provider_data: Some(data()),
            },
            Block::RedactedThinking {
                data: "x".to_owned(),
                provider_data: None,
            },
            Block::Provider(data()),
        ];

        assert!(is_described(&content(), &json!(blocks)));
        assert!(is_described(
            &said(),
            &json!([{"type": "text", "text": "hi"}])
        ));
        assert!(!is_described(&said(), &json!([{"type": "image"}])));
        assert!(!is_described(&content(), &json!([{"type": "text"}])));
        assert!(!is_described(
            &content(),
            &json!([{"type": "image", "text": "x"}])
        ));
    }

    #[test]
    fn what_may_be_nothing_is_described_as_that() {
        assert!(is_described(&stop_reason(), &Value::Null));
        assert!(is_described(&stop_reason(), &json!("end_turn")));
        assert!(!is_described(&stop_reason(), &json!("done")));
        assert!(is_described(&usage_of_message(), &Value::Null));
        assert!(!is_described(&usage(), &Value::Null));
    }
}
