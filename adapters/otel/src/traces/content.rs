//! What people and models said, as consumers read it: JSON that is cut inside, never through. What is cut
//! can still be parsed.
//!
//! * A text has a limit, and so has a whole attribute: of a conversation that is too long the latest
//!   messages stay.

use hango_domain::conversation::{Block, Message, Role, StopReason};
use hango_domain::model::SystemBlock;
use hango_domain::text::truncate;
use hango_domain::tool::{ToolDef, ToolResult};
use serde_json::{Map, Value, json};

/// The most bytes of one text.
const MAX_TEXT: usize = 8 << 10;

/// The most bytes of one attribute, about.
const MAX_ATTRIBUTE: usize = 64 << 10;

/// The beginning of a text, with a note of how much is missing.
pub(super) fn text(text: &str) -> String {
    truncate(text, MAX_TEXT).into_owned()
}

/// A system prompt.
pub(super) fn system(blocks: &[SystemBlock]) -> String {
    let parts = blocks.iter().map(|block| part_of_text(&block.text));
    latest(parts.collect())
}

/// A conversation.
pub(super) fn messages(messages: &[Message]) -> String {
    // What comes before cannot fit, and need not be put together.
    let mut room = MAX_ATTRIBUTE;
    let mut kept = Vec::new();
    for message in messages.iter().rev() {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        let message = message_of(role, &message.content);
        let size = size(&message);
        if size > room && !kept.is_empty() {
            break;
        }
        room = room.saturating_sub(size);
        kept.push(message);
    }
    let left_out = messages.len() - kept.len();
    kept.reverse();
    noting(left_out, kept)
}

/// One message.
pub(super) fn said(role: &'static str, content: &[Block]) -> String {
    latest(vec![message_of(role, content)])
}

/// An answer.
pub(super) fn answer(content: &[Block], stop: Option<StopReason>) -> String {
    let mut message = message_of("assistant", content);
    let reason = match stop {
        Some(StopReason::EndTurn | StopReason::StopSequence | StopReason::PauseTurn) => "stop",
        Some(StopReason::MaxTokens) => "length",
        Some(StopReason::Refusal) => "content_filter",
        Some(StopReason::ToolUse) => "tool_call",
        None => "error",
    };
    message["finish_reason"] = reason.into();
    latest(vec![message])
}

/// The tools that were offered.
pub(super) fn tools(tools: &[ToolDef]) -> String {
    let tools = tools.iter().map(|tool| {
        json!({
            "type": "function",
            "name": tool.name,
            "description": text(&tool.description),
            "parameters": value(&tool.parameters),
        })
    });
    latest(tools.collect())
}

/// A call's arguments.
pub(super) fn arguments(input: &Map<String, Value>) -> String {
    value(&Value::Object(input.clone())).to_string()
}

/// A call's result.
pub(super) fn result(result: &ToolResult) -> String {
    Value::from(text(&result.for_llm)).to_string()
}

fn message_of(role: &'static str, content: &[Block]) -> Value {
    let mut parts: Vec<Value> = content.iter().filter_map(part).collect();
    let left_out = keep_latest(&mut parts);
    if left_out > 0 {
        parts.insert(
            0,
            part_of_text(&format!("[{left_out} earlier parts are left out]")),
        );
    }
    // The results of tools are a user's message only to providers.
    let answers = |block: &Block| matches!(block, Block::ToolResult { .. });
    let role = if !content.is_empty() && content.iter().all(answers) {
        "tool"
    } else {
        role
    };
    json!({"role": role, "parts": parts})
}

fn part(block: &Block) -> Option<Value> {
    Some(match block {
        Block::Text { text, .. } => part_of_text(text),
        Block::Thinking { thinking, .. } => {
            json!({"type": "reasoning", "content": text(thinking)})
        }
        Block::ToolUse {
            id, name, input, ..
        } => json!({
            "type": "tool_call",
            "id": id,
            "name": name,
            "arguments": value(&Value::Object(input.clone())),
        }),
        Block::ToolResult {
            tool_use_id,
            content,
            ..
        } => json!({
            "type": "tool_call_response",
            "id": tool_use_id,
            "response": text(content),
        }),
        // Nobody but its provider reads it.
        Block::RedactedThinking { .. } | Block::Provider(_) => return None,
    })
}

fn part_of_text(said: &str) -> Value {
    json!({"type": "text", "content": text(said)})
}

/// A value, or the beginning of its text where it is too long.
fn value(value: &Value) -> Value {
    let text = value.to_string();
    if text.len() <= MAX_TEXT {
        value.clone()
    } else {
        json!({"truncated": truncate(&text, MAX_TEXT)})
    }
}

/// A list whose latest items are kept.
fn latest(mut items: Vec<Value>) -> String {
    let left_out = keep_latest(&mut items);
    noting(left_out, items)
}

/// Leaves out the first of what is too much; how many. One is always kept.
fn keep_latest(items: &mut Vec<Value>) -> usize {
    let mut room = MAX_ATTRIBUTE;
    let fits = items.iter().rev().take_while(|item| {
        let size = size(item);
        let fits = size <= room;
        room = room.saturating_sub(size);
        fits
    });
    let kept = fits.count().max(1);
    let left_out = items.len().saturating_sub(kept);
    items.drain(..left_out);
    left_out
}

fn noting(left_out: usize, mut items: Vec<Value>) -> String {
    if left_out > 0 {
        let note = format!("[{left_out} earlier items are left out]");
        items.insert(0, json!({"role": "system", "parts": [part_of_text(&note)]}));
    }
    Value::Array(items).to_string()
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

#[cfg(test)]
mod tests {
    use hango_domain::conversation::NewMessage;
    use hango_domain::{MessageId, SessionId, Timestamp};
    use uuid::Uuid;

    use super::*;

    fn parsed(text: &str) -> Value {
        text.parse().expect("it is JSON")
    }

    fn call(input: Value) -> Block {
        Block::ToolUse {
            id: "call_1".to_owned(),
            name: "get_time".to_owned(),
            input: serde_json::from_value(input).expect("an object"),
            provider_data: None,
        }
    }

    #[test]
    fn a_message_is_written_as_the_conventions_say() {
        let content = [Block::text("Hi"), call(json!({"timezone": "UTC"}))];

        let written = parsed(&answer(&content, Some(StopReason::ToolUse)));

        let expected = json!([{
            "role": "assistant",
            "parts": [
                {"type": "text", "content": "Hi"},
                {
                    "type": "tool_call",
                    "id": "call_1",
                    "name": "get_time",
                    "arguments": {"timezone": "UTC"},
                },
            ],
            "finish_reason": "tool_call",
        }]);
        assert_eq!(written, expected);
    }

    #[test]
    fn what_is_too_long_is_cut_inside_and_can_be_read() {
        let long = "\u{1f600}\"\\\n".repeat(100_000);
        let content: Vec<_> = (0..100)
            .flat_map(|_| [Block::text(long.clone()), call(json!({"text": long}))])
            .collect();

        let written = said("user", &content);

        assert!(written.len() < 2 * MAX_ATTRIBUTE, "{}", written.len());
        let parts = parsed(&written)[0]["parts"].take();
        let parts = parts.as_array().expect("a list").clone();
        assert!(
            parts[0]["content"]
                .as_str()
                .is_some_and(|it| it.contains("left out"))
        );
        assert!(
            parts[1..]
                .iter()
                .all(|it| it.to_string().len() < 3 * MAX_TEXT)
        );
    }

    #[test]
    fn of_a_long_conversation_the_latest_messages_stay() {
        let message = |n: u64| {
            let text = format!("{n} {}", "x".repeat(5000));
            let message = NewMessage::user(MessageId(Uuid::nil()), vec![Block::text(text)]);
            let at = Timestamp::from_micros(0);
            message.stored(SessionId(Uuid::nil()), None, n, at)
        };
        let conversation: Vec<_> = (0..100).map(message).collect();

        let written = parsed(&messages(&conversation));

        let written = written.as_array().expect("a list");
        assert!((5..20).contains(&written.len()), "{}", written.len());
        assert!(written[0].to_string().contains("are left out"));
        let last = written
            .last()
            .and_then(|it| it["parts"][0]["content"].as_str());
        assert!(last.is_some_and(|it| it.starts_with("99 ")));
    }

    #[test]
    fn results_and_arguments_are_json_whatever_they_hold() {
        let huge = Map::from_iter([("a".to_owned(), json!("x".repeat(1 << 20)))]);

        assert!(parsed(&arguments(&huge))["truncated"].is_string());
        let told = ToolResult::ok("\"quoted\"\u{0}".repeat(10_000));
        assert!(parsed(&result(&told)).is_string());
    }
}
