//! Tests are named by the rows of the providers table. What a row means for the whole answer is read off
//! the domain's accumulator.

use hango_domain::accumulator::Accumulator;
use hango_domain::conversation::Block;
use hango_domain::model::{ModelFailureKind, ModelReply};
use serde_json::json;

use super::*;

mod blocks;
mod frames;

fn event(name: Option<&str>, data: &str) -> Event {
    Event {
        name: name.map(str::to_owned),
        data: data.to_owned(),
    }
}

fn mapping() -> Mapping {
    Mapping::new(Origin::named("local"), "m")
}

/// The events that a stream of these payloads brings.
fn events(payloads: &[Value]) -> Result<Vec<StreamEvent>, ModelFailure> {
    let texts: Vec<String> = payloads.iter().map(Value::to_string).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    events_of_text(&texts)
}

fn events_of_text(payloads: &[&str]) -> Result<Vec<StreamEvent>, ModelFailure> {
    let mut mapping = mapping();
    let mut out = Vec::new();
    for payload in payloads {
        if mapping.event(&event(None, payload), &mut out)? == Flow::Done {
            return Ok(unnamed(out));
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
    let mut mapping = mapping();
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

/// The whole answer at the end of the stream.
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

fn begin(index: u32, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u32, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn end(index: u32) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn stop(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}})
}

/// A block of text that comes in one piece.
fn text(index: u32, text: &str) -> [Value; 3] {
    [
        begin(index, &json!({"type": "text", "text": ""})),
        delta(index, &json!({"type": "text_delta", "text": text})),
        end(index),
    ]
}

/// A call whose arguments come in these pieces.
fn call(index: u32, id: &str, pieces: &[&str]) -> Vec<Value> {
    let block = json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let pieces = pieces.iter().map(|json| input(index, json));
    let pieces = pieces.collect::<Vec<_>>();
    [vec![begin(index, &block)], pieces, vec![end(index)]].concat()
}

fn input(index: u32, json: &str) -> Value {
    delta(
        index,
        &json!({"type": "input_json_delta", "partial_json": json}),
    )
}

fn done() -> Value {
    json!({"type": "message_stop"})
}

fn kind<T>(outcome: Result<T, ModelFailure>) -> Option<ModelFailureKind> {
    outcome.err().map(|failure| failure.kind)
}

#[test]
fn a1_and_a2_a_stream_in_the_normal_order_with_pings_anywhere_is_an_answer() {
    let ping = || json!({"type": "ping"});
    let usage = json!({"input_tokens": 9, "output_tokens": 1});
    let [begin, delta, end] = text(0, "Hi");

    let reply = reply(&[
        ping(),
        json!({"type": "message_start", "message": {"content": [], "usage": usage}}),
        ping(),
        begin,
        ping(),
        delta,
        end,
        stop("end_turn"),
        done(),
    ]);

    let reply = reply.expect("whole");
    assert_eq!(reply.content, [Block::text("Hi")]);
    assert_eq!(reply.stop_reason, StopReason::EndTurn);
    assert_eq!(reply.usage.input_tokens, 9);
}

#[test]
fn a15_to_a17_and_a20_reasons_to_stop_are_told_apart() {
    let table = [
        ("end_turn", Stop::Answer(StopReason::EndTurn)),
        ("tool_use", Stop::Answer(StopReason::ToolUse)),
        ("max_tokens", Stop::Answer(StopReason::MaxTokens)),
        ("stop_sequence", Stop::Answer(StopReason::StopSequence)),
        ("refusal", Stop::Answer(StopReason::Refusal)),
        ("pause_turn", Stop::Answer(StopReason::PauseTurn)),
        ("model_context_window_exceeded", Stop::ContextExceeded),
        ("compaction", Stop::Unsupported("compaction".to_owned())),
    ];

    for (word, reason) in table {
        assert_eq!(events(&[stop(word)]), Ok(vec![StreamEvent::Stop(reason)]));
    }
}

#[test]
fn a15_a_pause_is_not_resumed_and_is_named() {
    let failure = reply(&[&text(0, "Let me")[..], &[stop("pause_turn"), done()]].concat());

    let failure = failure.expect_err("no answer");
    assert_eq!(failure.kind, ModelFailureKind::UnsupportedStop);
    assert_eq!(failure.stop_reason, Some(StopReason::PauseTurn));
    assert!(failure.message.contains("pause_turn"), "{failure}");
}

#[test]
fn a16_a_refusal_keeps_its_text_and_one_without_is_explained() {
    let details = |explanation: Value| {
        let details = json!({"type": "refusal", "category": "cyber", "explanation": explanation});
        let delta = json!({"stop_reason": "refusal", "stop_details": details});
        json!({"type": "message_delta", "delta": delta})
    };
    let said = |payloads: &[Value]| {
        let reply = reply(payloads).expect("a refusal is an answer");
        assert_eq!(reply.stop_reason, StopReason::Refusal);
        reply.content
    };

    let spoke = [&text(0, "I won't")[..], &[details(json!("Too dangerous."))]].concat();
    assert_eq!(said(&spoke), [Block::text("I won't")]);
    assert_eq!(
        said(&[details(json!("Too dangerous."))]),
        [Block::text("Too dangerous.")]
    );
    assert_eq!(said(&[details(Value::Null)]), []);
    assert_eq!(said(&[stop("refusal")]), []);
}

#[test]
fn a17_a_full_context_is_no_answer() {
    let failure = reply(
        &[
            &text(0, "and so")[..],
            &[stop("model_context_window_exceeded")],
        ]
        .concat(),
    );

    assert_eq!(kind(failure), Some(ModelFailureKind::ContextExceeded));
}

#[test]
fn a18_a_call_that_was_cut_off_stays_cut_off() {
    let cut = [
        &call(0, "toolu_1", &["{\"cmd\": \"rm"])[..],
        &[stop("max_tokens"), done()],
    ]
    .concat();

    let reply = reply(&cut).expect("an answer");

    // The loop executes nothing of an answer that ends so.
    assert_eq!(reply.stop_reason, StopReason::MaxTokens);
    assert_eq!(reply.invalid_inputs["toolu_1"], "{\"cmd\": \"rm");
}

#[test]
fn a19_to_a21_an_answer_of_nothing_is_empty_whatever_its_reason() {
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": ""});
    for (payloads, reason) in [
        (
            vec![begin(0, &thought), stop("max_tokens")],
            StopReason::MaxTokens,
        ),
        (vec![stop("stop_sequence")], StopReason::StopSequence),
        (vec![stop("end_turn")], StopReason::EndTurn),
    ] {
        let reply = reply(&payloads).expect("an answer");

        assert!(reply.is_empty_answer(), "{reply:?}");
        assert_eq!(reply.stop_reason, reason);
    }
}

#[test]
fn a22_calls_decide_whatever_the_reason_says() {
    let reply = reply(&[&call(0, "a", &["{}"])[..], &[stop("end_turn")]].concat());

    assert_eq!(
        reply.map(|reply| reply.stop_reason),
        Ok(StopReason::ToolUse)
    );
}

#[test]
fn a23_to_a26_what_was_told_last_is_what_it_cost() {
    let start = json!({
        "input_tokens": 9, "cache_read_input_tokens": 1, "output_tokens": 1,
        "cache_creation": {"ephemeral_5m_input_tokens": 5},
    });
    let mut end = stop("end_turn");
    end["usage"] = json!({"input_tokens": 9, "cache_read_input_tokens": 1, "output_tokens": 16});
    let payloads = [
        &[json!({"type": "message_start", "message": {"usage": start}})][..],
        &text(0, "Hi"),
        &[end],
    ]
    .concat();

    let usage = reply(&payloads).expect("whole").usage;

    let expected = hango_domain::conversation::Usage {
        input_tokens: 15,
        output_tokens: 16,
        cache_read_tokens: 1,
        cache_write_tokens: 5,
        estimated: false,
    };
    assert_eq!(usage, expected);
}

#[test]
fn a27_and_a28_an_error_in_the_stream_is_a_failure_of_its_type() {
    let table = [
        ("invalid_request_error", ModelFailureKind::Rejected),
        ("authentication_error", ModelFailureKind::Auth),
        ("permission_error", ModelFailureKind::Auth),
        ("not_found_error", ModelFailureKind::Rejected),
        ("request_too_large", ModelFailureKind::ContextExceeded),
        ("billing_error", ModelFailureKind::Rejected),
        ("rate_limit_error", ModelFailureKind::Unavailable),
        ("api_error", ModelFailureKind::Unavailable),
        ("overloaded_error", ModelFailureKind::Unavailable),
        ("timeout_error", ModelFailureKind::Unavailable),
        ("one_of_tomorrow", ModelFailureKind::Unavailable),
    ];

    for (class, expected) in table {
        let error = json!({"type": "error", "error": {"type": class, "message": "Sorry"}});
        let failure = reply(&[&text(0, "Hi")[..], &[error]].concat());

        let failure = failure.expect_err(class);
        assert_eq!(failure.kind, expected, "{class}");
        assert_eq!(failure.message, "provider local reported an error: Sorry");
    }
}

#[test]
fn a29_the_end_of_the_file_without_a_reason_is_no_end() {
    let failure = reply(&call(0, "toolu_1", &["{\"x\":1}"]));

    assert_eq!(kind(failure), Some(ModelFailureKind::Unavailable));
}

#[test]
fn a30_the_end_of_the_file_behind_the_reason_is_one() {
    let reply = reply(&[&text(0, "Hi")[..], &[stop("end_turn")]].concat());

    assert_eq!(
        reply.map(|reply| reply.content),
        Ok(vec![Block::text("Hi")])
    );
}

#[test]
fn a31_and_a32_frames_of_no_use_say_nothing() {
    let [begin, delta_of_text, end] = text(0, "Hi");
    let reply = reply(&[
        json!({"type": "message_start", "message": null}),
        begin,
        delta(0, &json!({"type": "banana_delta", "banana": 1})),
        delta_of_text,
        end,
        stop("end_turn"),
    ]);

    assert_eq!(
        reply.map(|reply| reply.content),
        Ok(vec![Block::text("Hi")])
    );
}

#[test]
fn an_answer_is_called_as_its_server_calls_it() {
    let message = json!({"id": "msg_1", "model": "claude-x", "content": []});
    let start = json!({"type": "message_start", "message": message});

    let named = names(&[start, stop("end_turn"), done()]);

    let text = |text: &str| Some(text.to_owned());
    assert_eq!(named.id, text("msg_1"));
    assert_eq!(named.model, text("claude-x"));
    assert_eq!(named.finish_reason, text("end_turn"));
    let odd = json!({"type": "message_start", "message": {"id": 7, "model": null}});
    assert_eq!(names(&[odd]), AnswerNames::default());
}
