//! Tests are named by the rows of the providers table. What a row means for the whole answer is read off
//! the domain's accumulator.

#![expect(
    clippy::needless_pass_by_value,
    reason = "payloads are written where they are used"
)]

use std::time::Duration;

use hango_domain::accumulator::Accumulator;
use hango_domain::conversation::{Block, ProviderData};
use hango_domain::model::{ModelFailureKind, ModelReply};
use serde_json::{Map, json};

use super::*;

mod calls;
mod ends;
mod reasoning;

/// The events that a stream of these payloads brings.
fn events(payloads: &[Value]) -> Result<Vec<StreamEvent>, ModelFailure> {
    let mut mapping = Mapping::new(Origin::named("local"), "m");
    let mut out = Vec::new();
    for payload in payloads {
        let data = payload.to_string();
        if mapping.event(&Event { name: None, data }, &mut out)? == Flow::Done {
            break;
        }
    }
    mapping.closed(&mut out);
    Ok(unnamed(out))
}

/// What is said, without what the answer is called: that has a test of its own.
fn unnamed(mut events: Vec<StreamEvent>) -> Vec<StreamEvent> {
    events.retain(|event| !matches!(event, StreamEvent::Named(_)));
    events
}

/// What the answer is called.
fn names(payloads: &[Value]) -> AnswerNames {
    let mut mapping = Mapping::new(Origin::named("local"), "m");
    let (mut out, mut names) = (Vec::new(), AnswerNames::default());
    for payload in payloads {
        let data = payload.to_string();
        let event = Event { name: None, data };
        mapping.event(&event, &mut out).expect("an answer");
    }
    for event in out {
        if let StreamEvent::Named(more) = event {
            names.add(more);
        }
    }
    names
}

/// The whole answer.
fn reply(payloads: &[Value]) -> Result<ModelReply, ModelFailure> {
    accumulate(events(payloads)?)
}

fn accumulate(events: Vec<StreamEvent>) -> Result<ModelReply, ModelFailure> {
    let mut answer = Accumulator::new("call_1");
    for event in events {
        answer.push(event)?;
    }
    answer.finish()
}

fn added(index: u32, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u32, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn delta(index: u32, id: &str, text: &str) -> Value {
    json!({
        "type": "response.output_text.delta", "output_index": index, "item_id": id,
        "content_index": 0, "delta": text, "logprobs": [],
    })
}

fn message(id: &str, text: &str) -> Value {
    let part = json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
    json!({
        "type": "message", "id": id, "status": "completed", "role": "assistant",
        "content": [part],
    })
}

fn call(id: &str, call_id: &str, arguments: &str) -> Value {
    json!({
        "type": "function_call", "id": id, "status": "completed", "call_id": call_id,
        "name": "get_time", "arguments": arguments,
    })
}

/// The last event of an answer that repeats these items.
fn completed(output: Value) -> Value {
    over("completed", json!({"output": output}))
}

fn over(status: &str, members: Value) -> Value {
    let mut response = json!({
        "id": "resp_1", "object": "response", "status": status, "error": null,
        "incomplete_details": null, "usage": null, "output": [],
        "tools": [{"type": "function", "name": "get_time"}],
    });
    let members = members.as_object().expect("members").clone();
    response.as_object_mut().expect("members").extend(members);
    json!({"type": format!("response.{status}"), "response": response})
}

fn own(data: Value) -> ProviderData {
    ProviderData {
        provider: "local".to_owned(),
        model: "m".to_owned(),
        data,
    }
}

/// What the answer says, without what is attached.
fn texts(reply: &ModelReply) -> Vec<&str> {
    reply.content.iter().filter_map(Block::as_text).collect()
}

/// The calls, with their arguments as text.
fn calls(reply: &ModelReply) -> Vec<(String, String)> {
    let calls = reply.content.iter().filter_map(|block| match block {
        Block::ToolUse { id, input, .. } => {
            let invalid = reply.invalid_inputs.get(id).cloned();
            let input = invalid.unwrap_or_else(|| Value::Object(input.clone()).to_string());
            Some((id.clone(), input))
        }
        _ => None,
    });
    calls.collect()
}

#[test]
fn r1_text_is_told_as_it_comes_and_the_last_event_ends_it_with_its_bill() {
    let item = message("msg_1", "Hello.");
    let usage = json!({
        "input_tokens": 20, "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 4},
        "output_tokens": 10, "output_tokens_details": {"reasoning_tokens": 6}, "total_tokens": 30,
    });

    let events = events(&[
        json!({"type": "response.created", "response": {"status": "in_progress"}}),
        added(0, json!({"type": "message", "id": "msg_1", "content": []})),
        delta(0, "msg_1", "Hel"),
        delta(0, "msg_1", "lo."),
        json!({"type": "response.output_text.done", "item_id": "msg_1", "text": "Hello."}),
        done(0, item.clone()),
        over("completed", json!({"output": [item], "usage": usage})),
        delta(0, "msg_1", "behind the end"),
    ]);

    let text = |text: &str| StreamEvent::Text {
        index: 0,
        text: text.to_owned(),
    };
    let data = own(json!({"type": "message", "id": "msg_1", "status": "completed"}));
    let expected = [
        text("Hel"),
        text("lo."),
        StreamEvent::Attach { index: 0, data },
        StreamEvent::Usage(Usage {
            input_tokens: 20,
            output_tokens: 10,
            cache_read_tokens: 8,
            cache_write_tokens: 4,
            estimated: false,
        }),
        StreamEvent::Stop(Stop::Answer(StopReason::EndTurn)),
    ];
    assert_eq!(events.expect("events"), expected);
}

#[test]
fn r1_a_bill_that_makes_no_sense_counts_nothing() {
    for odd in [json!({"input_tokens": "many"}), json!([]), json!(7)] {
        let item = message("msg_1", "Hi");
        let last = over("completed", json!({"output": [item], "usage": odd}));

        let reply = reply(&[last]).expect("an answer");

        assert_eq!(reply.usage, Usage::default());
    }
}

#[test]
fn r6_items_that_arrive_side_by_side_keep_the_order_of_their_numbers() {
    let reply = reply(&[
        added(1, json!({"type": "message", "id": "msg_2"})),
        added(0, json!({"type": "message", "id": "msg_1"})),
        delta(1, "msg_2", "wor"),
        delta(0, "msg_1", "hello "),
        delta(1, "msg_2", "ld"),
        completed(json!([])),
    ]);

    assert_eq!(texts(&reply.expect("an answer")), ["hello ", "world"]);
}

/// The events of two messages, as a server numbers and names them.
fn two_messages(numbers: [Value; 2], ids: [&str; 2]) -> Vec<Value> {
    let mut payloads = Vec::new();
    let mut output = Vec::new();
    for ((index, id), text) in numbers.into_iter().zip(ids).zip(["one", "two"]) {
        let whole = message(id, text);
        let begun = json!({"type": "message", "id": id});
        for (kind, more, value) in [
            ("output_item.added", "item", begun),
            ("output_text.delta", "delta", text.into()),
            ("output_item.done", "item", whole.clone()),
        ] {
            let kind = format!("response.{kind}");
            payloads.push(json!({"type": kind, "output_index": index, "item_id": id, more: value}));
        }
        output.push(whole);
    }
    payloads.push(completed(output.into()));
    payloads
}

#[test]
fn r6_items_are_told_apart_by_number_or_by_id() {
    for payloads in [
        two_messages([json!(0), json!(1)], ["msg_1", "msg_2"]),
        two_messages([json!(1), json!(2)], ["msg_1", "msg_2"]),
        two_messages([Value::Null, Value::Null], ["msg_1", "msg_2"]),
        two_messages([json!(0), json!(0)], ["msg_1", "msg_2"]),
        two_messages([json!(0), json!(1)], ["msg", "msg"]),
        two_messages([json!(0), json!(1)], ["", ""]),
    ] {
        let reply = reply(&payloads).expect("an answer");

        assert_eq!(texts(&reply), ["one", "two"], "{}", payloads[0]);
    }
}

#[test]
fn r6_a_call_that_has_the_number_of_a_message_is_told_apart_by_its_kind() {
    let reply = reply(&[
        added(0, json!({"type": "message", "id": "x"})),
        delta(0, "x", "Hel"),
        added(
            0,
            json!({"type": "function_call", "id": "x", "call_id": "call_1"}),
        ),
        delta(0, "x", "lo."),
        done(0, call("x", "call_1", "{}")),
        done(0, message("x", "Hello.")),
        completed(json!([message("x", "Hello."), call("x", "call_1", "{}")])),
    ]);

    let reply = reply.expect("an answer");
    assert_eq!(texts(&reply), ["Hello."]);
    assert_eq!(calls(&reply).len(), 1);
}

#[test]
fn r6_an_item_whose_id_is_another_in_each_event_is_one_item() {
    let reply = reply(&[
        added(0, json!({"type": "message", "id": "a"})),
        delta(0, "b", "Hel"),
        delta(0, "c", "lo."),
        done(0, message("d", "Hello.")),
        completed(json!([message("e", "Hello.")])),
    ]);

    assert_eq!(texts(&reply.expect("an answer")), ["Hello."]);
}

#[test]
fn t11_an_event_that_lacks_what_it_must_have_is_corrupt() {
    for nonsense in [
        json!(7),
        done(0, json!("x")),
        json!({"type": "response.output_item.done", "output_index": 0, "item": {"id": "x"}}),
        json!({"type": "response.output_item.added", "output_index": 0}),
        json!({"type": "response.output_text.delta", "output_index": 0}),
        json!({"type": "response.function_call_arguments.done", "item_id": "fc_1"}),
        json!({"type": "response.completed"}),
        done(1, json!({"type": "message", "content": 7})),
    ] {
        let begun = added(0, json!({"type": "function_call", "id": "fc_1"}));

        let failure = events(&[begun, nonsense.clone()]).expect_err("corrupt");

        assert_eq!(failure.kind, ModelFailureKind::Protocol, "{nonsense}");
    }
}

#[test]
fn r7_text_whose_events_got_lost_is_taken_from_the_last_one() {
    let output = json!([message("msg_1", "one"), message("msg_2", "two")]);

    let reply = reply(&[
        added(0, json!({"type": "message", "id": "msg_1"})),
        delta(0, "msg_1", "one"),
        completed(output),
    ]);

    let reply = reply.expect("an answer");
    let text = |id: &str, text: &str| Block::Text {
        text: text.to_owned(),
        provider_data: Some(own(
            json!({"type": "message", "id": id, "status": "completed"}),
        )),
    };
    assert_eq!(reply.content, [text("msg_1", "one"), text("msg_2", "two")]);
}

#[test]
fn an_item_of_an_unknown_kind_is_kept_whole() {
    let search = json!({
        "type": "web_search_call", "id": "ws_1", "status": "completed",
        "action": {"type": "search", "query": "noon"},
    });

    let reply = reply(&[
        added(0, json!({"type": "web_search_call", "id": "ws_1"})),
        json!({"type": "response.web_search_call.searching", "output_index": 0}),
        done(0, search.clone()),
        done(1, message("msg_1", "Noon.")),
        completed(json!([search.clone(), message("msg_1", "Noon.")])),
    ]);

    let reply = reply.expect("an answer");
    assert_eq!(reply.content.len(), 2);
    assert_eq!(reply.content[0], Block::Provider(own(search)));
}

#[test]
fn what_a_message_has_beside_its_text_is_attached() {
    let mut item = message("msg_1", "Noon.");
    let citation = json!([{"type": "url_citation", "url": "http://h"}]);
    item["phase"] = json!("final_answer");
    item["content"][0]["annotations"] = citation.clone();

    let reply = reply(&[done(0, item), completed(json!([]))]).expect("an answer");

    let Block::Text { provider_data, .. } = &reply.content[0] else {
        panic!("not a text");
    };
    let expected = json!({
        "type": "message", "id": "msg_1", "status": "completed", "phase": "final_answer",
        "annotations": citation,
    });
    assert_eq!(provider_data.as_ref(), Some(&own(expected)));
}

#[test]
fn an_answer_is_called_as_its_server_calls_it() {
    let response = json!({"id": "resp_1", "model": "gpt-x", "status": "completed", "output": []});
    let last = json!({"type": "response.completed", "response": response});

    let named = names(&[last]);

    let text = |text: &str| Some(text.to_owned());
    assert_eq!(named.id, text("resp_1"));
    assert_eq!(named.model, text("gpt-x"));
    assert_eq!(named.finish_reason, text("completed"));
}
