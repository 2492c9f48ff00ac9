//! Responses.

use std::sync::Arc;

use hango_conformance::provider::{Play, RemoteProvider, Spoken};
use hango_domain::conversation::StopReason;
use hango_openai::Api;
use hango_ports::Provider;
use serde_json::{Value, json};

use super::Speech;

const SPEECH: Speech = Speech {
    api: Api::Responses,
    answer,
    texts,
    unsupported: || incomplete("pause_turn", &Value::Null, &[]),
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
    let text = said.words.concat();
    let part = json!({"type": "output_text", "text": text, "annotations": []});
    let mut output = vec![json!({
        "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [part],
    })];
    if said.words.is_empty() {
        output.clear();
    }
    for call in &said.calls {
        let index = output.len();
        let arguments = Value::Object(call.input.clone()).to_string();
        let item = |arguments: &str| {
            json!({
                "type": "function_call", "id": format!("fc_{index}"), "call_id": call.id,
                "name": call.name, "arguments": arguments,
            })
        };
        let (head, tail) = arguments.split_at(arguments.len() / 2);
        events.push(event(
            "output_item.added",
            json!({"output_index": index, "item": item("")}),
        ));
        for piece in [head, tail] {
            let more = json!({"output_index": index, "delta": piece});
            events.push(event("function_call_arguments.delta", more));
        }
        let whole = item(&arguments);
        events.push(event(
            "output_item.done",
            json!({"output_index": index, "item": whole}),
        ));
        output.push(whole);
    }
    let usage = json!({
        "input_tokens": said.usage.input_tokens,
        "output_tokens": said.usage.output_tokens,
    });
    events.push(match said.stop {
        StopReason::MaxTokens => incomplete("max_output_tokens", &usage, &output),
        _ => event(
            "completed",
            json!({"response": {"status": "completed", "usage": usage, "output": output}}),
        ),
    });
    events.push("[DONE]".to_owned());
    events
}

fn texts(words: &[String]) -> Vec<String> {
    let deltas = words.iter().map(|word| {
        let more = json!({"output_index": 0, "item_id": "msg_1", "delta": word});
        event("output_text.delta", more)
    });
    deltas.collect()
}

fn incomplete(reason: &str, usage: &Value, output: &[Value]) -> String {
    let response = json!({
        "status": "incomplete", "incomplete_details": {"reason": reason}, "usage": usage,
        "output": output,
    });
    event("incomplete", json!({"response": response}))
}

fn event(kind: &str, mut members: Value) -> String {
    members["type"] = format!("response.{kind}").into();
    members.to_string()
}

hango_conformance::provider_tests!(stage);
hango_conformance::remote_provider_tests!(remote);
