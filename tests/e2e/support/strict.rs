//! What a strict provider takes: every rule that some real one holds, all at once.

use std::collections::BTreeSet;

use serde_json::Value;

/// What is wrong with a request, if anything.
pub(crate) fn objection(request: &Value) -> Option<String> {
    if request["stream"] != true {
        return Some("a stream must be asked for".to_owned());
    }
    let Some(messages) = request["messages"].as_array() else {
        return Some("there are no messages".to_owned());
    };
    conversation(messages).err()
}

fn conversation(messages: &[Value]) -> Result<(), String> {
    let mut ids = BTreeSet::new();
    let mut open: Vec<String> = Vec::new();
    let mut before = "";
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            answer(message, &mut open).map_err(|why| format!("message {at}: {why}"))?;
            before = role;
            continue;
        }
        if !open.is_empty() {
            return Err(format!("message {at}: calls {open:?} are not answered"));
        }
        match (role, before) {
            ("system", "") | ("user", "" | "system" | "assistant" | "tool") => blank(message),
            ("assistant", "user" | "tool") => assistant(message, &mut ids, &mut open),
            _ => Err(format!("{role:?} does not follow {before:?}")),
        }
        .map_err(|why| format!("message {at}: {why}"))?;
        before = role;
    }
    match before {
        "user" | "tool" if open.is_empty() => Ok(()),
        _ => Err(format!("the last message is {before:?}, {open:?} open")),
    }
}

/// A result answers the next of the calls that are open.
fn answer(message: &Value, open: &mut Vec<String>) -> Result<(), String> {
    let id = message["tool_call_id"].as_str().unwrap_or_default();
    if open.first().is_none_or(|first| first != id) {
        return Err(format!("{id:?} is not the next of {open:?}"));
    }
    open.remove(0);
    if message["content"].is_string() {
        Ok(())
    } else {
        Err("a result has no content".to_owned())
    }
}

fn assistant(
    message: &Value,
    ids: &mut BTreeSet<String>,
    open: &mut Vec<String>,
) -> Result<(), String> {
    let calls = message["tool_calls"].as_array();
    let says_nothing = message["content"].is_null() || message["content"] == "";
    if calls.is_none() || !says_nothing {
        blank(message)?;
    }
    let Some(calls) = calls else { return Ok(()) };
    if calls.is_empty() {
        return Err("an empty list of calls".to_owned());
    }
    for call in calls {
        let id = call["id"].as_str().unwrap_or_default();
        if id.is_empty() || !ids.insert(id.to_owned()) {
            return Err(format!("call id {id:?} is empty or not unique"));
        }
        let name = call["function"]["name"].as_str().unwrap_or_default();
        if call["type"] != "function" || name.is_empty() {
            return Err(format!("call {id} is not one of a function"));
        }
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        if !matches!(serde_json::from_str(arguments), Ok(Value::Object(_))) {
            return Err(format!("arguments {arguments:?} are not an object"));
        }
        open.push(id.to_owned());
    }
    Ok(())
}

fn blank(message: &Value) -> Result<(), String> {
    match message["content"].as_str() {
        Some(text) if !text.trim().is_empty() => Ok(()),
        _ => Err("no text, or a blank one".to_owned()),
    }
}
