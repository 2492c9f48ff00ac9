//! Chat completions.

use std::sync::Arc;

use hango_conformance::provider::{Play, RemoteProvider, Spoken};
use hango_domain::conversation::StopReason;
use hango_openai::Api;
use hango_ports::Provider;
use serde_json::{Value, json};

use super::Speech;

const SPEECH: Speech = Speech {
    api: Api::ChatCompletions,
    answer,
    texts,
    unsupported: || finish("pause_turn"),
};

async fn remote(play: Play) -> RemoteProvider {
    SPEECH.remote(play).await
}

async fn stage(play: Play) -> (Arc<dyn Provider>, RemoteProvider) {
    let remote = remote(play).await;
    (Arc::clone(&remote.provider), remote)
}

fn answer(said: &Spoken) -> Vec<String> {
    let mut events = texts(&said.words);
    for (index, call) in said.calls.iter().enumerate() {
        let begin = json!({"name": call.name, "arguments": ""});
        let begin = json!({"index": index, "id": call.id, "type": "function", "function": begin});
        events.push(delta(&json!({"tool_calls": [begin]})));
        if !call.input.is_empty() {
            let arguments = Value::Object(call.input.clone()).to_string();
            let (head, tail) = arguments.split_at(arguments.len() / 2);
            for piece in [head, tail] {
                let more = json!({"index": index, "function": {"arguments": piece}});
                events.push(delta(&json!({"tool_calls": [more]})));
            }
        }
    }
    events.push(finish(match said.stop {
        StopReason::MaxTokens => "length",
        StopReason::ToolUse => "tool_calls",
        _ => "stop",
    }));
    let usage = json!({
        "prompt_tokens": said.usage.input_tokens,
        "completion_tokens": said.usage.output_tokens,
    });
    events.push(json!({"choices": [], "usage": usage}).to_string());
    events.push("[DONE]".to_owned());
    events
}

fn texts(words: &[String]) -> Vec<String> {
    let deltas = words.iter().map(|word| delta(&json!({"content": word})));
    deltas.collect()
}

fn delta(delta: &Value) -> String {
    json!({"choices": [{"index": 0, "delta": delta}]}).to_string()
}

fn finish(reason: &str) -> String {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}).to_string()
}

hango_conformance::provider_tests!(stage);
hango_conformance::remote_provider_tests!(remote);
