//! Tests are named by the rows of the providers table. What a row means for the whole answer is read off
//! the domain's accumulator.

#![expect(
    clippy::needless_pass_by_value,
    reason = "payloads are written where they are used"
)]

use hango_domain::accumulator::Accumulator;
use hango_domain::conversation::{Block, Usage};
use hango_domain::model::ModelReply;
use hango_provider_http::testing;
use serde_json::{Map, Value};

use super::*;

mod calls;
mod odd;
mod reasoning;

fn asked() -> Asked {
    Asked {
        model: "m".to_owned(),
        ..Asked::default()
    }
}

fn origin() -> Origin {
    Origin::named("local")
}

fn event(data: &str) -> Event {
    Event {
        name: None,
        data: data.to_owned(),
    }
}

/// The events that a stream of these payloads brings, without usage.
fn events(payloads: &[Value]) -> Result<Vec<StreamEvent>, ModelFailure> {
    let texts: Vec<String> = payloads.iter().map(Value::to_string).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    events_of_text(&texts)
}

fn events_of_text(payloads: &[&str]) -> Result<Vec<StreamEvent>, ModelFailure> {
    events_asked(asked(), payloads)
}

fn events_asked(asked: Asked, payloads: &[&str]) -> Result<Vec<StreamEvent>, ModelFailure> {
    let mut mapping = Mapping::new(origin(), asked);
    let mut out = Vec::new();
    for payload in payloads {
        mapping.event(&event(payload), &mut out)?;
    }
    Ok(unnamed(out))
}

/// What is said, without what the answer is called: that has a test of its own.
fn unnamed(mut events: Vec<StreamEvent>) -> Vec<StreamEvent> {
    events.retain(|event| !matches!(event, StreamEvent::Named(_)));
    events
}

/// What the answer is called.
fn names(payloads: &[Value]) -> AnswerNames {
    let mut mapping = Mapping::new(origin(), asked());
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

/// The whole answer, after `[DONE]`.
fn reply(payloads: &[Value]) -> Result<ModelReply, ModelFailure> {
    reply_asked(asked(), payloads)
}

fn reply_asked(asked: Asked, payloads: &[Value]) -> Result<ModelReply, ModelFailure> {
    let texts: Vec<String> = payloads.iter().map(Value::to_string).collect();
    let mut texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    texts.push("[DONE]");
    accumulate(events_asked(asked, &texts)?)
}

fn accumulate(events: Vec<StreamEvent>) -> Result<ModelReply, ModelFailure> {
    let mut answer = Accumulator::new("call_1");
    for event in events {
        answer.push(event)?;
    }
    answer.finish()
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn calls(fragments: Value) -> Value {
    delta(json!({"tool_calls": fragments}))
}

/// A fragment with every member; an empty id is sent as such.
fn fragment(index: u64, id: &str, name: &str, arguments: &str) -> Value {
    let function = json!({"name": name, "arguments": arguments});
    calls(json!([{"index": index, "id": id, "type": "function", "function": function}]))
}

fn text(index: u32, text: &str) -> StreamEvent {
    StreamEvent::Text {
        index,
        text: text.to_owned(),
    }
}

fn stop(reason: StopReason) -> StreamEvent {
    StreamEvent::Stop(Stop::Answer(reason))
}

#[test]
fn o1_a_chunk_with_a_role_alone_says_nothing() {
    let events = events(&[
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"content": "Hi"})),
        finish("stop"),
    ]);

    assert_eq!(events, Ok(vec![text(0, "Hi"), stop(StopReason::EndTurn)]));
}

#[test]
fn o19_calls_decide_whatever_the_finish_reason_says() {
    let reply = reply(&[fragment(0, "a", "f", "{}"), finish("stop")]).expect("whole");

    assert_eq!(reply.stop_reason, StopReason::ToolUse);
}

#[test]
fn o22_and_o24_finish_reasons_have_aliases() {
    let table = [
        ("stop", StopReason::EndTurn),
        ("length", StopReason::MaxTokens),
        ("max_tokens", StopReason::MaxTokens),
        ("max_output_tokens", StopReason::MaxTokens),
        ("MAX_TOKENS", StopReason::MaxTokens),
        ("tool_calls", StopReason::ToolUse),
        ("stop_sequence", StopReason::StopSequence),
        ("content_filter", StopReason::Refusal),
    ];

    for (word, reason) in table {
        assert_eq!(events(&[finish(word)]), Ok(vec![stop(reason)]), "{word}");
    }
}

#[test]
fn o23_text_without_a_known_reason_is_accepted_when_the_stream_is_done() {
    for reason in ["", "because"] {
        let reply = reply(&[delta(json!({"content": "Hi"})), finish(reason)]);

        let reply = reply.expect("accepted");
        assert_eq!(reply.content, [Block::text("Hi")]);
        assert_eq!(reply.stop_reason, StopReason::EndTurn);
    }
}

#[test]
fn o23_an_open_call_without_a_known_reason_is_not_accepted() {
    let kind = |reason: &str| {
        let failure = reply(&[fragment(0, "a", "f", "{}"), finish(reason)]);
        failure.expect_err("not accepted").kind
    };

    assert_eq!(kind(""), ModelFailureKind::Unavailable);
    assert_eq!(kind("because"), ModelFailureKind::UnsupportedStop);
}

#[test]
fn o25_the_older_way_to_ask_for_a_function_is_not_supported() {
    let old = delta(json!({"function_call": {"name": "f", "arguments": "{}"}}));
    let failure = events(&[old]).expect_err("not supported");
    assert_eq!(failure.kind, ModelFailureKind::UnsupportedStop);

    let failure = reply(&[finish("function_call")]).expect_err("not supported");
    assert_eq!(failure.kind, ModelFailureKind::UnsupportedStop);
}

#[test]
fn o25_a_copy_of_the_calls_in_the_older_form_is_passed_over() {
    let both = delta(json!({
        "function_call": {"name": "f", "arguments": "{}"},
        "tool_calls": [{"index": 0, "id": "call_a", "type": "function",
                        "function": {"name": "f", "arguments": "{}"}}],
    }));
    let only = delta(json!({
        "tool_calls": [{"index": 0, "id": "call_a", "type": "function",
                        "function": {"name": "f", "arguments": "{}"}}],
    }));

    let reply_to_both = reply(&[both, finish("tool_calls")]).expect("it is supported");

    assert_eq!(Ok(reply_to_both), reply(&[only, finish("tool_calls")]));
}

#[test]
fn o26_a_refusal_is_text_and_the_reason_of_the_stop() {
    let reply = reply(&[
        delta(json!({"content": null, "refusal": "I won't."})),
        finish("stop"),
    ]);

    let reply = reply.expect("whole");
    assert_eq!(reply.content, [Block::text("I won't.")]);
    assert_eq!(reply.stop_reason, StopReason::Refusal);
}

#[test]
fn o27_to_o29_usage_is_read_wherever_it_stands_and_the_last_one_counts() {
    let usage = |output: u64| json!({"prompt_tokens": 20, "completion_tokens": output});
    let expected = Usage {
        input_tokens: 20,
        output_tokens: 10,
        ..Usage::default()
    };
    let behind = json!({"choices": [], "usage": usage(10)});
    let alone = json!({"id": "x", "usage": usage(10)});
    let mut beside = delta(json!({"content": "!"}));
    beside["usage"] = usage(5);

    for last in [behind, alone] {
        let reply = reply(&[beside.clone(), finish("stop"), last]).expect("whole");

        assert_eq!(reply.usage, expected);
    }
}

#[test]
fn o30_no_usage_is_no_failure() {
    let mut chunk = finish("stop");
    chunk["usage"] = Value::Null;

    assert_eq!(
        reply(&[chunk]).map(|reply| reply.usage),
        Ok(Usage::default())
    );
}

#[test]
fn o32_to_o34_an_error_in_the_stream_is_a_failure_of_its_class() {
    let limited = json!({"message": "Rate limit exceeded", "code": 429});
    let choice = json!({"delta": {"content": ""}, "finish_reason": "error"});
    for payload in [
        json!({"error": limited}),
        json!({"error": limited, "choices": []}),
        json!({"error": limited, "choices": [choice]}),
    ] {
        let failure = events(&[payload]).expect_err("an error");

        assert_eq!(failure.kind, ModelFailureKind::Unavailable);
        assert_eq!(
            failure.message,
            "provider local answered 429: Rate limit exceeded"
        );
    }
    let failure = events(&[json!({"choices": [choice]})]).expect_err("an error");
    assert_eq!(failure.kind, ModelFailureKind::Unavailable);
}

#[test]
fn o35_the_end_of_the_file_without_a_reason_is_no_end() {
    let events = events(&[fragment(0, "a", "f", "{}")]).expect("legal so far");

    let failure = accumulate(events).expect_err("no stop came");

    assert_eq!(failure.kind, ModelFailureKind::Unavailable);
}

#[test]
fn o36_done_without_an_answer_is_no_answer() {
    let failure = reply(&[]).expect_err("nothing came");

    assert_eq!(failure.kind, ModelFailureKind::Unavailable);
}

#[test]
fn o37_content_that_is_null_is_no_text() {
    let reply = reply(&[
        delta(json!({"role": "assistant", "content": null})),
        fragment(0, "a", "f", "{}"),
        finish("tool_calls"),
    ]);

    let call = Block::ToolUse {
        id: "a".to_owned(),
        name: "f".to_owned(),
        input: Map::new(),
        provider_data: None,
    };
    assert_eq!(reply.map(|reply| reply.content), Ok(vec![call]));
}

#[test]
fn o38_content_may_be_a_list_of_parts() {
    let thought = json!([{"type": "text", "text": "hm"}]);
    let events = events(&[delta(json!({"content": [
        {"type": "thinking", "thinking": thought},
        {"type": "text", "text": "Hi"},
        {"type": "reference", "reference_ids": [1]},
    ]}))]);

    let thinking = StreamEvent::Thinking {
        index: 0,
        text: "hm".to_owned(),
    };
    assert_eq!(events, Ok(vec![thinking, text(1, "Hi")]));
}

#[test]
fn o39_only_the_first_candidate_counts() {
    let other = json!({"index": 1, "delta": {"content": "no"}, "finish_reason": "length"});

    assert_eq!(events(&[json!({"choices": [other]})]), Ok(Vec::new()));
}

#[test]
fn l1_and_l4_reasoning_is_thinking_under_either_name() {
    for name in ["reasoning_content", "reasoning"] {
        let mut thought = Map::from_iter([(name.to_owned(), json!("hm"))]);
        thought.insert("content".to_owned(), Value::Null);

        let events = events(&[
            delta(Value::Object(thought)),
            delta(json!({"content": "Hi"})),
        ]);

        let thinking = StreamEvent::Thinking {
            index: 0,
            text: "hm".to_owned(),
        };
        assert_eq!(events, Ok(vec![thinking, text(1, "Hi")]));
    }
}

#[test]
fn l20_and_l21_azures_chunks_without_a_delta_say_nothing() {
    let events = events(&[
        json!({"choices": [], "prompt_filter_results": [{}]}),
        json!({"choices": [{"finish_reason": null, "index": 0, "content_filter_offsets": {}}],
            "id": "", "model": ""}),
    ]);

    assert_eq!(events, Ok(Vec::new()));
}

#[test]
fn g3_what_comes_with_a_call_is_attached_to_it() {
    let extra = json!({"google": {"thought_signature": "s"}});
    let events = events(&[calls(json!([{
        "index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"},
        "extra_content": extra,
    }]))]);

    let data = ProviderData {
        provider: "local".to_owned(),
        model: "m".to_owned(),
        data: json!({"extra_content": extra}),
    };
    let attached = StreamEvent::Attach { index: 3, data };
    assert_eq!(
        events.map(|events| events.last().cloned()),
        Ok(Some(attached))
    );
}

#[test]
fn t10_and_t11_what_is_unknown_is_skipped_and_what_is_broken_is_not() {
    assert_eq!(
        events(&[json!({"type": "something_new", "x": 1})]),
        Ok(Vec::new())
    );

    for broken in [
        delta(json!({"content": 1})),
        json!({"choices": "none"}),
        json!([]),
    ] {
        let failure = events(&[broken]).expect_err("broken");
        assert_eq!(failure.kind, ModelFailureKind::Protocol);
    }
}

#[test]
fn t12_data_that_is_not_json_is_a_failure_that_may_pass() {
    let failure = events_of_text(&["{bad"]).expect_err("not JSON");

    assert_eq!(failure.kind, ModelFailureKind::Protocol);
    assert!(failure.kind.is_retryable());
}

#[tokio::test]
async fn half_a_surrogate_pair_is_replaced() {
    let chunk = r#"data: {"choices":[{"delta":{"content":"a\ud83d"},"finish_reason":"stop"}]}"#;

    let reply = testing::reply([chunk.into()], Mapping::new(origin(), asked())).await;

    assert_eq!(
        reply.map(|reply| reply.content),
        Ok(vec![Block::text("a\u{fffd}")])
    );
}

#[test]
fn t13_a_whole_answer_is_read_like_one_chunk() {
    let function = json!({"name": "f", "arguments": "{}"});
    let body = json!({
        "choices": [{
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Hi",
                "tool_calls": [
                    {"id": "a", "type": "function", "function": function},
                    {"id": "b", "type": "function", "function": function},
                ],
            },
            "finish_reason": "tool_calls",
        }],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    });
    let mut events = Vec::new();

    let read = Mapping::new(origin(), asked()).whole(&body.to_string(), &mut events);

    assert_eq!(read, Ok(()));
    let reply = accumulate(events).expect("whole");
    assert_eq!(reply.content.len(), 3);
    assert_eq!(reply.usage.output_tokens, 2);
}

#[test]
fn o23_a_reason_that_nobody_knows_is_one_when_the_file_ends() {
    let mut events = Vec::new();
    let mut mapping = Mapping::new(origin(), asked());
    let text = delta(json!({"content": "Hi"})).to_string();
    let because = finish("because").to_string();

    let read = [text, because].map(|payload| mapping.event(&event(&payload), &mut events));
    mapping.closed(&mut events);

    assert_eq!(read, [Ok(Flow::More), Ok(Flow::More)]);
    assert_eq!(events.last(), Some(&stop(StopReason::EndTurn)));
}

#[test]
fn an_answer_is_called_as_its_server_calls_it() {
    let mut last = finish("tool_calls");
    last["id"] = json!("chatcmpl-1");
    last["model"] = json!("gpt-x");

    let named = names(&[json!({"id": "", "model": ""}), last]);

    let text = |text: &str| Some(text.to_owned());
    assert_eq!(named.id, text("chatcmpl-1"));
    assert_eq!(named.model, text("gpt-x"));
    assert_eq!(named.finish_reason, text("tool_calls"));
    assert_eq!(
        names(&[json!({"id": 7, "model": null})]),
        AnswerNames::default()
    );
}
