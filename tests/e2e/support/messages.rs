//! What holds of every stored conversation, in the API's words.

use serde_json::Value;

/// What is wrong with a session's messages, if anything. `seq` counts from 1 without gaps; every call
/// is answered exactly once, in order, first thing in the next message; nothing is empty.
pub(crate) fn objection(messages: &[Value]) -> Option<String> {
    check(messages).err()
}

fn check(messages: &[Value]) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let wrong = |what: String| format!("message {}: {what}", at + 1);
        if message["seq"] != at + 1 {
            return Err(wrong(format!("seq is {}", message["seq"])));
        }
        let blocks = message["content"].as_array().cloned().unwrap_or_default();
        if blocks.is_empty() || blocks.iter().any(is_blank) {
            return Err(wrong("it says nothing, or a block of it does".to_owned()));
        }
        if message["partial"] == true {
            let whole = blocks.iter().any(|block| block["type"] == "tool_use");
            if whole || !open.is_empty() {
                return Err(wrong("a partial message is amid calls".to_owned()));
            }
            continue;
        }
        let answered: Vec<_> = ids(message, "tool_result", "tool_use_id").collect();
        if answered != open {
            return Err(wrong(format!("it answers {answered:?}, not {open:?}")));
        }
        let first = blocks.iter().take(open.len());
        if first
            .into_iter()
            .any(|block| block["type"] != "tool_result")
        {
            return Err(wrong("something stands before a result".to_owned()));
        }
        open = ids(message, "tool_use", "id").collect();
        if !open.is_empty() && message["role"] != "assistant" {
            return Err(wrong("a user calls tools".to_owned()));
        }
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err(format!("{open:?} are not answered"))
    }
}

fn is_blank(block: &Value) -> bool {
    let text = block["text"].as_str().unwrap_or_default();
    block["type"] == "text" && text.trim().is_empty()
}

fn ids<'a>(
    message: &'a Value,
    kind: &'static str,
    field: &'static str,
) -> impl Iterator<Item = &'a str> {
    let blocks = message["content"].as_array().into_iter().flatten();
    blocks
        .filter(move |block| block["type"] == kind)
        .filter_map(move |block| block[field].as_str())
}

/// The ids of the calls that a conversation's assistant made.
pub(crate) fn calls(messages: &[Value]) -> Vec<String> {
    let calls = messages
        .iter()
        .flat_map(|message| ids(message, "tool_use", "id"));
    calls.map(str::to_owned).collect()
}

/// The text of a message.
pub(crate) fn text(message: &Value) -> String {
    let blocks = message["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}
