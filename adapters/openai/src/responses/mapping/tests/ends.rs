//! How an answer ends: well, cut off, failed, or not at all.

use hango_domain::model::FailureCause;

use super::*;

fn spoken() -> Vec<Value> {
    vec![
        added(0, json!({"type": "message", "id": "msg_1"})),
        delta(0, "msg_1", "Hi"),
        done(0, message("msg_1", "Hi")),
        done(1, call("fc_1", "call_1", "{\"a\":1}")),
    ]
}

fn whole(body: &str) -> Result<ModelReply, ModelFailure> {
    let mut mapping = Mapping::new(Origin::named("local"), "m");
    let mut out = Vec::new();
    mapping.whole(body, &mut out)?;
    accumulate(out)
}

#[test]
fn r1_no_other_event_is_a_success() {
    for last in [
        json!({"type": "response.done", "response": {"status": "completed"}}),
        json!({"type": "response.in_progress", "response": {"status": "completed"}}),
        json!({"type": "response.queued", "response": {"status": "queued"}}),
    ] {
        let mut payloads = spoken();
        payloads.push(last);

        let failure = reply(&payloads).expect_err("not complete");

        assert_eq!(failure.kind, ModelFailureKind::Unavailable);
        assert_eq!(failure.partial.len(), 1);
    }
}

#[test]
fn r2_an_answer_cut_off_by_its_limit_executes_nothing() {
    let cut = json!({
        "type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "get_time",
    });
    let fragment = json!({
        "type": "response.function_call_arguments.delta", "output_index": 2, "item_id": "fc_2",
        "delta": "{\"b\":",
    });
    let details = json!({"incomplete_details": {"reason": "max_output_tokens"}});
    let mut payloads = spoken();
    payloads.extend([added(2, cut), fragment, over("incomplete", details)]);

    let reply = reply(&payloads).expect("an answer");

    assert_eq!(reply.stop_reason, StopReason::MaxTokens);
    assert_eq!(texts(&reply), ["Hi"]);
    assert_eq!(reply.invalid_inputs["call_2"], "{\"b\":");
}

#[test]
fn r2_an_answer_cut_off_by_a_filter_is_a_refusal_and_asks_for_nothing() {
    let mut payloads = spoken();
    let details = json!({"incomplete_details": {"reason": "content_filter"}});
    payloads.push(over("incomplete", details));

    let reply = reply(&payloads).expect("an answer");

    assert_eq!(reply.stop_reason, StopReason::Refusal);
    assert_eq!(texts(&reply), ["Hi"]);
    assert_eq!(calls(&reply), []);
}

#[test]
fn r2_an_answer_cut_off_for_another_reason_is_not_supported() {
    for (details, word) in [
        (json!({"reason": "of_tomorrow"}), "of_tomorrow"),
        (Value::Null, "incomplete"),
    ] {
        let mut payloads = spoken();
        payloads.push(over("incomplete", json!({"incomplete_details": details})));

        let failure = reply(&payloads).expect_err("unsupported");

        assert_eq!(failure.kind, ModelFailureKind::UnsupportedStop);
        assert!(failure.message.contains(word), "{failure}");
    }
}

#[test]
fn r2_a_completed_answer_that_is_incomplete_within_is_incomplete() {
    let details = json!({
        "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
    });
    let mut payloads = spoken();
    payloads.push(over("completed", details));

    let reply = reply(&payloads).expect("an answer");

    assert_eq!(reply.stop_reason, StopReason::MaxTokens);
}

#[test]
fn r3_and_r4_an_error_ends_the_answer_by_its_code() {
    use ModelFailureKind::{ContextExceeded, Rejected, Unavailable};
    let words = "Sorry. Please try again in 1.5s.";
    let wait = Some(Duration::from_millis(1500));
    for (code, kind, wait) in [
        ("context_length_exceeded", ContextExceeded, None),
        ("insufficient_quota", Rejected, None),
        ("invalid_prompt", Rejected, None),
        ("rate_limit_exceeded", Unavailable, wait),
        ("server_error", Unavailable, wait),
    ] {
        let error = json!({"code": code, "message": words});
        for last in [
            over("failed", json!({"error": error})),
            over("completed", json!({"status": "failed", "error": error})),
            json!({"type": "error", "code": code, "message": words, "param": null}),
            json!({"type": "error", "error": error, "sequence_number": 2}),
            json!({"error": error}),
        ] {
            let mut payloads = spoken();
            payloads.push(last.clone());

            let failure = reply(&payloads).expect_err("failed");

            let expected = ModelFailure {
                retry_after: wait,
                cause: FailureCause::Other,
                ..ModelFailure::new(kind, format!("provider local reported an error: {words}"))
            };
            assert_eq!(failure, expected, "{last}");
        }
    }
}

#[test]
fn r3_a_failure_without_a_reason_may_pass() {
    let failure = reply(&[over("failed", json!({}))]).expect_err("failed");

    assert_eq!(failure.kind, ModelFailureKind::Unavailable);
}

#[test]
fn r5_a_stream_that_ends_before_its_last_word_is_broken_off() {
    let failure = reply(&spoken()).expect_err("broken off");

    assert_eq!(failure.kind, ModelFailureKind::Unavailable);
    let partial = failure.partial.iter().map(Block::as_text);
    assert_eq!(partial.collect::<Vec<_>>(), [Some("Hi")]);
}

#[test]
fn r12_what_nobody_knows_is_passed_over() {
    let mut mapping = Mapping::new(Origin::named("local"), "m");
    let mut out = Vec::new();
    for data in ["[DONE]", "", " ", "{}", r#"{"type":"of.tomorrow","x":1}"#] {
        let data = data.to_owned();
        let flow = mapping.event(&Event { name: None, data }, &mut out);
        assert_eq!(flow, Ok(Flow::More));
    }
    assert_eq!(out, []);
}

#[test]
fn r13_an_answer_of_nothing_is_a_failure() {
    let bare = json!({"id": "resp_1", "status": "completed", "output": [message("m", "Hi")]});
    for payloads in [vec![], vec![json!({})], vec![bare]] {
        let failure = reply(&payloads).expect_err("nothing");

        assert_eq!(failure.kind, ModelFailureKind::Unavailable);
    }
}

#[test]
fn t9_an_event_without_a_type_is_what_its_name_says() {
    let mut mapping = Mapping::new(Origin::named("local"), "m");
    let mut out = Vec::new();
    let data = json!({"response": {"output": [message("msg_1", "Hi")]}}).to_string();
    let name = Some("response.completed".to_owned());

    let flow = mapping.event(&Event { name, data }, &mut out);

    assert_eq!(flow, Ok(Flow::Done));
    assert_eq!(texts(&accumulate(out).expect("an answer")), ["Hi"]);
}

#[test]
fn t12_what_is_not_json_fails_the_try() {
    let mut mapping = Mapping::new(Origin::named("local"), "m");
    let data = "{bad".to_owned();

    let failure = mapping.event(&Event { name: None, data }, &mut Vec::new());

    let failure = failure.expect_err("corrupt");
    assert_eq!(failure.kind, ModelFailureKind::Protocol);
}

#[test]
fn t13_an_answer_in_one_piece_is_taken() {
    let body = json!({
        "object": "response", "status": "completed", "usage": {"input_tokens": 3},
        "output": [message("msg_1", "Hi"), call("fc_1", "call_1", "{\"a\":1}")],
    });

    let reply = whole(&body.to_string()).expect("an answer");

    assert_eq!(texts(&reply), ["Hi"]);
    assert_eq!(calls(&reply).len(), 1);
    assert_eq!(reply.stop_reason, StopReason::ToolUse);
    assert_eq!(reply.usage.input_tokens, 3);
}

#[test]
fn t13_what_is_no_answer_in_one_piece_is_a_failure() {
    use ModelFailureKind::{Protocol, Rejected, Unavailable};
    let quota = r#"{"error":{"code":"insufficient_quota","message":"no"}}"#;
    for (body, kind) in [
        (r#"{"object":"chat.completion","choices":[]}"#, Protocol),
        (r#"{"status":"in_progress","output":[]}"#, Protocol),
        ("{bad", Protocol),
        ("", Protocol),
        ("null", Protocol),
        (quota, Rejected),
        (r#"{"status":500,"error":"Internal"}"#, Unavailable),
        (r#"{"status":"cancelled","output":[]}"#, Unavailable),
    ] {
        let failure = whole(body).expect_err("no answer");

        assert_eq!(failure.kind, kind, "{body}");
    }
}

#[test]
fn a_refusal_is_text_that_ends_as_one() {
    let refusal = json!({"type": "refusal", "refusal": "No."});
    let item = json!({"type": "message", "id": "msg_1", "content": [refusal]});
    let delta = json!({
        "type": "response.refusal.delta", "output_index": 0, "item_id": "msg_1", "delta": "No.",
    });
    for payloads in [
        vec![delta.clone(), completed(json!([]))],
        vec![delta, completed(json!([item]))],
        vec![completed(json!([item]))],
    ] {
        let reply = reply(&payloads).expect("an answer");

        assert_eq!(reply.stop_reason, StopReason::Refusal);
        assert_eq!(texts(&reply), ["No."]);
    }
}
