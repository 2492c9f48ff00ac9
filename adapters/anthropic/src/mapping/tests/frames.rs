//! Frames: known, unknown and corrupt ones, and whole answers in place of a stream.

use super::*;

#[test]
fn t9_the_type_of_the_payload_decides_and_the_name_helps_where_there_is_none() {
    let delta = r#"{"index":0,"delta":{"type":"text_delta","text":"Hi"}}"#;
    let mut mapping = mapping();
    let mut out = Vec::new();
    for (name, data) in [
        (Some("ping"), begin(0, &json!({"type": "text"})).to_string()),
        (Some("content_block_delta"), delta.to_owned()),
        (None, delta.to_owned()),
        (Some("message_stop"), json!({"type": "ping"}).to_string()),
    ] {
        let flow = mapping.event(&event(name, &data), &mut out);
        assert_eq!(flow, Ok(Flow::More), "{name:?}");
    }

    let text = "Hi".to_owned();
    assert_eq!(out, [StreamEvent::Text { index: 0, text }]);
}

#[test]
fn t9_an_error_is_one_wherever_its_frame_says_so() {
    let error = json!({"error": {"type": "overloaded_error", "message": "Sorry"}});
    for name in [Some("error"), None] {
        let failure = mapping().event(&event(name, &error.to_string()), &mut Vec::new());

        let failure = failure.expect_err("an error");
        assert_eq!(failure.message, "provider local reported an error: Sorry");
    }
}

#[test]
fn t10_an_unknown_frame_is_skipped() {
    assert_eq!(
        events(&[json!({"type": "something_new", "x": 1}), json!({"x": 1})]),
        Ok(vec![])
    );
    assert_eq!(events_of_text(&["", "[DONE]", "{bad"]), Ok(vec![]));
}

#[test]
fn t11_a_known_frame_that_is_broken_is_a_failure_that_may_pass() {
    let opened = |frame: Value| [begin(0, &json!({"type": "text", "text": ""})), frame];
    for frame in [
        delta(0, &json!({"text": "hello"})),
        delta(0, &json!({"type": "text_delta"})),
        delta(0, &json!({"type": "text_delta", "text": 1})),
        delta(
            0,
            &json!({"type": "input_json_delta", "partial_json": "{}"}),
        ),
        delta(7, &json!({"type": "text_delta", "text": "hello"})),
        json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x"}}),
        json!({"type": "content_block_delta", "index": -1, "delta": {"type": "text_delta"}}),
        begin(1, &json!({"text": "hello"})),
        begin(1, &json!({"type": "text", "text": 1})),
        begin(1, &json!({"type": "tool_use", "id": "a", "input": {}})),
        begin(1, &json!({"type": "redacted_thinking"})),
        json!({"type": "content_block_start", "index": 1}),
        json!({"type": "content_block_stop"}),
        json!({"type": "message_delta", "usage": {}}),
        json!({"type": "message_delta", "delta": {"stop_reason": 1}}),
        json!({"type": 1}),
        json!([]),
    ] {
        let failure = events(&opened(frame.clone())).expect_err("broken");

        assert_eq!(failure.kind, ModelFailureKind::Protocol, "{frame}");
        assert!(failure.kind.is_retryable());
        assert!(failure.message.contains("sent an event "), "{failure}");
    }
}

#[test]
fn t12_data_that_is_not_json_is_a_failure_that_may_pass() {
    let failure = events_of_text(&["{bad"]).expect_err("not JSON");

    assert_eq!(failure.kind, ModelFailureKind::Protocol);
    assert_eq!(
        failure.message,
        "provider local sent an event that is not JSON: {bad"
    );
}

#[test]
fn half_a_surrogate_pair_is_replaced() {
    let begin = begin(0, &json!({"type": "text"})).to_string();
    let half = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83d"}}"#;

    let events = events_of_text(&[&begin, half]);

    let text = "a\u{fffd}".to_owned();
    assert_eq!(events, Ok(vec![StreamEvent::Text { index: 0, text }]));
}

#[test]
fn t13_a_whole_answer_is_read_like_a_stream_of_it() {
    let body = json!({
        "type": "message",
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "Hi", "citations": null},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 2},
    });
    let mut events = Vec::new();

    let read = mapping().whole(&body.to_string(), &mut events);

    assert_eq!(read, Ok(()));
    let reply = accumulate(events).expect("whole");
    assert_eq!(reply.content.len(), 3);
    assert_eq!(reply.stop_reason, StopReason::ToolUse);
    assert_eq!(reply.usage.output_tokens, 2);
}

#[test]
fn t13_a_document_that_is_no_answer_is_a_failure() {
    let whole = |body: &str| mapping().whole(body, &mut Vec::new());
    let error = json!({"type": "error", "error": {"type": "api_error", "message": "Sorry"}});

    assert_eq!(
        kind(whole(&error.to_string())),
        Some(ModelFailureKind::Unavailable)
    );
    for body in ["{}", "{", r#"{"content": [1]}"#] {
        assert_eq!(kind(whole(body)), Some(ModelFailureKind::Protocol));
    }
}

#[test]
fn halves_of_a_surrogate_pair_meet_in_arguments_and_not_in_text() {
    let start = |block| json!({"type": "content_block_start", "index": 0, "content_block": block});
    let delta = |delta| json!({"type": "content_block_delta", "index": 0, "delta": delta});
    let json = |part: &str| delta(json!({"type": "input_json_delta", "partial_json": part}));
    let stop = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}});
    let called = reply(&[
        start(json!({"type": "tool_use", "id": "a", "name": "f", "input": {}})),
        json("{\"x\":\"\\ud83d"),
        json("\\ude00\"}"),
        stop.clone(),
    ]);
    let half = |half: &str| {
        let event = delta(json!({"type": "text_delta", "text": "?"})).to_string();
        event.replace('?', half)
    };
    let begin = start(json!({"type": "text", "text": ""})).to_string();
    let said = events_of_text(&[&begin, &half("\\ud83d"), &half("\\ude00")]);

    let input = json!({"x": "\u{1f600}"});
    let content = called.expect("an answer").content;
    assert!(matches!(&content[..], [Block::ToolUse { input: it, .. }] if json!(it) == input));
    let text = |text: &str| StreamEvent::Text {
        index: 0,
        text: text.to_owned(),
    };
    assert_eq!(said, Ok(vec![text("\u{fffd}"), text("\u{fffd}")]));
}
