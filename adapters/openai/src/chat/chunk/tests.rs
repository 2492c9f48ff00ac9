use super::*;

fn usage_of(wire: &Value) -> Option<Usage> {
    let json = json!({"usage": wire}).to_string();
    let chunk: Chunk = serde_json::from_str(&json).expect("a chunk");
    chunk.usage()
}

#[test]
fn usage_counts_cached_input_and_all_reasoning() {
    let wire = json!({
        "prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 37,
        "prompt_tokens_details": {"cached_tokens": 8},
    });

    let expected = Usage {
        input_tokens: 20,
        output_tokens: 17,
        cache_read_tokens: 8,
        cache_write_tokens: 0,
        estimated: false,
    };
    assert_eq!(usage_of(&wire), Some(expected));
}

#[test]
fn usage_that_makes_no_sense_counts_nothing() {
    let odd = json!({"prompt_tokens": "many", "completion_tokens": 3});
    let expected = Usage {
        output_tokens: 3,
        ..Usage::default()
    };

    assert_eq!(usage_of(&odd), Some(expected));
    assert_eq!(usage_of(&json!([])), None);
    assert_eq!(usage_of(&json!("x".repeat(SMALL))), None);
}

#[test]
fn a_list_that_nobody_needs_is_no_chunk() {
    let list = |element: &str, count: usize| format!("[{}]", vec![element; count].join(","));
    let choices = |count| format!(r#"{{"choices":{}}}"#, list("{}", count));
    let calls = |count| {
        let calls = list("{}", count);
        format!(r#"{{"choices":[{{"delta":{{"tool_calls":{calls}}}}}]}}"#)
    };

    for json in [choices(MAX_LIST), calls(MAX_LIST)] {
        assert!(serde_json::from_str::<Chunk>(&json).is_ok());
    }
    for json in [choices(MAX_LIST + 1), calls(MAX_LIST + 1)] {
        assert!(serde_json::from_str::<Chunk>(&json).is_err());
    }
}

#[test]
fn what_is_nested_beyond_reason_is_passed_over_where_nobody_reads_it() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let unknown = format!(r#"{{"x":{deep},"usage":{deep}}}"#);
    let parts = format!(r#"{{"choices":[{{"delta":{{"content":{deep}}}}}]}}"#);

    let chunk: Chunk = serde_json::from_str(&unknown).expect("a chunk");
    assert_eq!(chunk.usage(), None);
    assert!(serde_json::from_str::<Chunk>(&parts).is_err());
}

#[test]
fn an_error_of_any_size_is_one() {
    let error = json!({"error": {"message": "x".repeat(SMALL)}, "request_id": "r"}).to_string();

    let chunk: Chunk = serde_json::from_str(&error).expect("a chunk");

    let payload = chunk.error(&error).expect("an error");
    let text = payload["error"].as_str().expect("its beginning");
    assert!(text.starts_with(r#"{"message":"xxx"#));
    assert_eq!(text.len(), BEGINNING);
    assert_eq!(payload["request_id"], "r");
}

#[test]
fn nothing_is_reported_by_what_says_nothing() {
    for json in [
        r#"{"error":null}"#,
        r#"{"error":{},"object":"chat.completion.chunk"}"#,
        r#"{"choices":[{"error":""}]}"#,
    ] {
        let chunk: Chunk = serde_json::from_str(json).expect("a chunk");
        assert_eq!(chunk.error(json), None);
    }
}

#[test]
fn o32_to_o34_an_error_may_be_a_member_or_the_whole() {
    let error = json!({"message": "no", "code": 429});
    let whole = json!({"object": "error", "message": "no", "code": 429});
    for (event, expected) in [
        (json!({"error": error, "choices": []}), &error),
        (
            json!({"error": null, "choices": [{"error": error}]}),
            &error,
        ),
        (json!({"error": {}, "choices": [{"error": error}]}), &error),
        (whole.clone(), &whole),
    ] {
        let json = event.to_string();
        let chunk: Chunk = serde_json::from_str(&json).expect("a chunk");

        let payload = chunk.error(&json).expect("an error");
        assert_eq!(error_of(&payload), Some(expected));
    }
}
