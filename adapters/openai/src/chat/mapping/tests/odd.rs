//! What is odd about answers of particular servers, and about answers that a limit cut off.

use hango_domain::tool::ToolDef;

use super::*;

/// A request for at most 64 tokens that offers `write`, whose text and number it requires.
fn limited() -> Asked {
    let text = json!({"type": "string"});
    Asked {
        limit: Some(64),
        tools: vec![ToolDef {
            name: "write".to_owned(),
            description: String::new(),
            parameters: json!({
                "type": "object",
                "properties": {"path": text, "content": text},
                "required": ["path", "content"],
            }),
        }],
        ..asked()
    }
}

fn rescuing() -> Asked {
    Asked {
        calls_in_text: true,
        ..limited()
    }
}

fn usage(output: u64) -> Value {
    json!({"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": output}})
}

fn written(arguments: &str) -> Value {
    fragment(0, "a", "write", arguments)
}

fn said(text: &str) -> Value {
    delta(json!({"content": text}))
}

/// The inputs of an answer's calls.
fn inputs(reply: &ModelReply) -> Vec<Value> {
    let inputs = reply.content.iter().filter_map(|block| match block {
        Block::ToolUse { input, .. } => Some(Value::Object(input.clone())),
        _ => None,
    });
    inputs.collect()
}

fn stop_reason(payloads: &[Value]) -> StopReason {
    let reply = reply_asked(limited(), payloads).expect("whole");
    reply.stop_reason
}

#[test]
fn o20_and_g10_a_call_that_is_not_whole_where_the_limit_is_reached_was_cut_off() {
    for arguments in [
        "",
        "{\"path\": \"a",
        r#"{"path":"a"}"#,
        "[1]",
        r#""{\"path\":1}""#,
    ] {
        for reason in ["tool_calls", "stop"] {
            let payloads = [written(arguments), finish(reason), usage(64)];
            assert_eq!(stop_reason(&payloads), StopReason::MaxTokens, "{arguments}");

            let payloads = [written(arguments), usage(65), finish(reason)];
            assert_eq!(stop_reason(&payloads), StopReason::MaxTokens, "{arguments}");
        }
    }
}

#[test]
fn o20_a_call_that_is_whole_or_within_the_limit_was_not_cut_off() {
    let whole = r#"{"path":"a","content":"b"}"#;
    let twice = Value::from(whole).to_string();
    for (arguments, output) in [(whole, 64), (&twice, 64), ("{\"path\": \"a", 63), ("", 63)] {
        let payloads = [written(arguments), finish("tool_calls"), usage(output)];

        assert_eq!(stop_reason(&payloads), StopReason::ToolUse, "{arguments}");
    }
    let unlimited = [written("{"), finish("tool_calls"), usage(64)];
    let reply = reply(&unlimited).expect("whole");
    assert_eq!(reply.stop_reason, StopReason::ToolUse);
}

#[test]
fn o20_of_arguments_beyond_measure_nothing_is_said() {
    let long = format!("{{\"path\": \"{}", "x".repeat(600 << 10));

    let payloads = [written(&long), finish("tool_calls"), usage(64)];

    assert_eq!(stop_reason(&payloads), StopReason::ToolUse);
}

#[test]
fn o21_and_l10_what_the_server_says_was_cut_off_stays_so() {
    for arguments in [r#"{"path":"a"}"#, r#"{"path":"a","content":"b"}"#, ""] {
        let payloads = [written(arguments), finish("length"), usage(3)];

        assert_eq!(stop_reason(&payloads), StopReason::MaxTokens);
    }
}

#[test]
fn l5_what_leaks_into_the_chunk_of_a_call_is_no_answer() {
    let leak = json!({
        "reasoning": "so",
        "content": "\n",
        "tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}],
    });

    let reply = reply(&[delta(leak), finish("tool_calls")]).expect("whole");

    assert_eq!(reply.stop_reason, StopReason::ToolUse);
    assert_eq!(inputs(&reply), [json!({})]);
}

#[test]
fn l6_a_text_that_a_stop_string_cut_is_an_answer() {
    let reply = reply(&[said("Hi <en"), finish("stop")]).expect("whole");

    assert_eq!(reply.content, [Block::text("Hi <en")]);
}

#[test]
fn l7_and_l8_whole_calls_at_one_index_or_none_are_told_apart() {
    let call = |index: Option<u64>, id: &str, path: &str| {
        let function = json!({"name": "write", "arguments": json!({"path": path}).to_string()});
        calls(json!([{"index": index, "id": id, "function": function}]))
    };

    for index in [Some(0), None] {
        let payloads = [call(index, "a", "1"), call(index, "b", "2"), finish("stop")];
        let reply = reply(&payloads).expect("whole");

        assert_eq!(inputs(&reply), [json!({"path": "1"}), json!({"path": "2"})]);
    }
}

#[test]
fn l11_and_l13_a_call_that_the_server_could_not_parse_is_a_failure_in_its_words() {
    let message = "Failed to parse input at pos 12: <tool_call>";
    let error = json!({"error": {"code": 500, "message": message, "type": "server_error"}});
    let begun = written("{\"path\": \"a").to_string();
    let text = said("Hi").to_string();

    let mut mapping = Mapping::new(origin(), asked());
    let mut told = Vec::new();
    for payload in [text, begun] {
        assert_eq!(mapping.event(&event(&payload), &mut told), Ok(Flow::More));
    }
    let failure = mapping.event(&event(&error.to_string()), &mut Vec::new());

    let failure = failure.expect_err("an error");
    assert!(failure.kind.is_retryable());
    assert!(failure.message.ends_with(message), "{failure}");
    let mut answer = Accumulator::new("call_1");
    for event in told {
        answer.push(event).expect("legal so far");
    }
    assert_eq!(answer.partial(), [Block::text("Hi")]);
}

#[test]
fn l14_continuations_with_an_empty_name_and_no_id_are_none_of_their_own() {
    let more = |json: &str| {
        calls(json!([{"index": 0, "id": null, "function": {"name": "", "arguments": json}}]))
    };

    let reply = reply(&[
        written("{\"path\""),
        more(":"),
        more("1}"),
        finish("tool_calls"),
    ]);

    assert_eq!(inputs(&reply.expect("whole")), [json!({"path": 1})]);
}

#[test]
fn l15_an_answer_of_nothing_but_a_call_without_a_function_is_empty() {
    let none = calls(json!([{"id": "", "type": "function"}]));

    let reply = reply(&[none, finish("tool_calls")]).expect("whole");

    assert!(reply.is_empty_answer());
    assert_eq!(reply.stop_reason, StopReason::EndTurn);
}

#[test]
fn l17_arguments_that_run_into_each_other_are_kept_as_invalid() {
    let reply = reply(&[written("{\"path\":1}{\"path\":2}"), finish("tool_calls")]);

    let invalid = reply.expect("whole").invalid_inputs;
    assert_eq!(
        invalid.get("a").map(String::as_str),
        Some("{\"path\":1}{\"path\":2}")
    );
}

#[test]
fn l12_and_l16_calls_in_the_text_are_text_unless_they_are_looked_for() {
    let markup = "<tool_call>{\"name\":\"write\",\"arguments\":{}}</tool_call>";

    let reply = reply_asked(limited(), &[said(markup), finish("stop")]).expect("whole");

    assert_eq!(reply.content, [Block::text(markup)]);
    assert_eq!(reply.stop_reason, StopReason::EndTurn);
}

#[test]
fn l12_l16_and_l23_calls_in_the_text_are_rescued_where_they_are_looked_for() {
    let reply = reply_asked(
        rescuing(),
        &[
            written(r#"{"path":"1","content":""}"#),
            said("Now <tool_call>{\"name\":\"write\",\"argu"),
            said("ments\":{\"path\":\"2\"}}</tool_call>\n<tool_call>write"),
            said("<arg_key>path</arg_key><arg_value>3</arg_value></tool_call> and "),
            said("<tool_call>none</tool_call>"),
            finish("stop"),
        ],
    );

    let reply = reply.expect("whole");
    assert_eq!(reply.stop_reason, StopReason::ToolUse);
    assert_eq!(
        reply.content[0],
        Block::text("Now \n and <tool_call>none</tool_call>")
    );
    let expected = [
        json!({"path": "1", "content": ""}),
        json!({"path": "2"}),
        json!({"path": "3"}),
    ];
    assert_eq!(inputs(&reply), expected);
}

#[test]
fn l12_a_call_in_the_text_of_an_answer_that_is_not_whole_is_not_executed() {
    let call = said("<tool_call>{\"name\":\"write\",\"arguments\":{\"path\":\"2\"}}</tool_call>");
    let open = said("<tool_call>{\"name\":\"write\",\"arguments\":{\"path\":\"2\"}}");

    let cut = reply_asked(rescuing(), &[call.clone(), finish("length")]).expect("whole");
    assert_eq!(cut.stop_reason, StopReason::MaxTokens);

    let failure = reply_asked(rescuing(), &[call]).expect_err("no stop came");
    assert_eq!(failure.kind, ModelFailureKind::Unavailable);

    let open = reply_asked(rescuing(), &[open, finish("stop")]).expect("whole");
    assert_eq!(open.stop_reason, StopReason::EndTurn);
    assert!(inputs(&open).is_empty());
}

#[test]
fn l18_a_native_finish_reason_says_nothing_to_us() {
    let mut chunk = finish("stop");
    chunk["choices"][0]["native_finish_reason"] = "max_tokens".into();

    let reply = reply(&[said("Hi"), chunk]).expect("whole");

    assert_eq!(reply.stop_reason, StopReason::EndTurn);
}

#[test]
fn l19_an_error_of_the_server_behind_is_one_in_the_choice_too() {
    let error = json!({"message": "Provider returned error", "code": 502});
    let chunk = json!({"choices": [{"error": error, "delta": {}, "finish_reason": "error"}]});

    let failure = events(&[said("Hi"), chunk]).expect_err("an error");

    assert_eq!(failure.kind, ModelFailureKind::Unavailable);
    assert!(
        failure.message.contains("502: Provider returned error"),
        "{failure}"
    );
}

#[test]
fn l22_what_an_empty_model_is_attached_by_is_the_one_that_was_asked() {
    let extra = json!({"google": {"thought_signature": "s"}});
    let mut chunk = calls(json!([{"id": "a", "function": {"name": "f"}, "extra_content": extra}]));
    chunk["id"] = "".into();
    chunk["model"] = "".into();

    let events = events(&[chunk]).expect("legal");

    let Some(StreamEvent::Attach { data, .. }) = events.last() else {
        panic!("nothing is attached in {events:?}");
    };
    assert_eq!(data.model, "m");
}

#[test]
fn g4_a_malformed_call_is_a_failed_answer_that_may_be_tried_again() {
    for reason in [
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "function_call_filter: MALFORMED_FUNCTION_CALL",
    ] {
        let failure = reply(&[written("{}"), finish(reason)]).expect_err("it failed");

        assert!(failure.kind.is_retryable());
        assert!(failure.message.contains(reason), "{failure}");
    }
}

#[test]
fn g5_calls_decide_whatever_gemini_says() {
    let call = calls(json!([{"id": "a", "function": {"name": "f", "arguments": "{}"}}]));

    let reply = reply(&[call, finish("STOP")]).expect("whole");

    assert_eq!(reply.stop_reason, StopReason::ToolUse);
}
