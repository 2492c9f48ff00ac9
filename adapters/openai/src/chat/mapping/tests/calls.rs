//! Tool calls: whose fragment is whose.

use super::*;

fn more(index: u64, arguments: &str) -> Value {
    calls(json!([{"index": index, "function": {"arguments": arguments}}]))
}

/// The calls of the answer: id, name and input; the input's text where it is none.
fn told(payloads: &[Value]) -> Vec<(String, String, String)> {
    let mut payloads = payloads.to_vec();
    payloads.push(finish("tool_calls"));
    let reply = reply(&payloads).expect("a whole answer");
    let invalid = &reply.invalid_inputs;
    let calls = reply.content.iter().filter_map(|block| match block {
        Block::ToolUse {
            id, name, input, ..
        } => {
            let input = Value::Object(input.clone()).to_string();
            let input = invalid.get(id).cloned().unwrap_or(input);
            Some((id.clone(), name.clone(), input))
        }
        _ => None,
    });
    calls.collect()
}

fn one(id: &str, name: &str, input: &str) -> (String, String, String) {
    (id.to_owned(), name.to_owned(), input.to_owned())
}

#[test]
fn o2_a_call_is_told_once_and_its_arguments_follow() {
    let events = events(&[
        fragment(0, "call_a", "f", ""),
        more(0, "{\"x\""),
        more(0, ":1}"),
    ]);

    let input = |json: &str| StreamEvent::ToolInput {
        index: 3,
        json: json.to_owned(),
    };
    let call = StreamEvent::ToolUse {
        index: 3,
        id: "call_a".to_owned(),
        name: "f".to_owned(),
    };
    assert_eq!(events, Ok(vec![call, input("{\"x\""), input(":1}")]));
}

#[test]
fn o3_interleaved_calls_are_told_apart_by_their_index() {
    let told = told(&[
        fragment(0, "a", "f", "{"),
        fragment(1, "b", "g", "{"),
        more(0, "\"x\":1}"),
        more(1, "\"y\":2}"),
    ]);

    assert_eq!(
        told,
        [one("a", "f", r#"{"x":1}"#), one("b", "g", r#"{"y":2}"#)]
    );
}

#[test]
fn o4_the_first_index_may_be_any() {
    assert_eq!(told(&[fragment(1, "a", "f", "{}")]), [one("a", "f", "{}")]);
}

#[test]
fn o5_without_an_index_an_id_opens_a_call_and_anything_else_continues_it() {
    let head = |id: &str| calls(json!([{"id": id, "function": {"name": "f", "arguments": "{"}}]));
    let tail = calls(json!([{"function": {"arguments": "}"}}]));

    let told = told(&[head("a"), tail.clone(), head("b"), tail]);

    assert_eq!(told, [one("a", "f", "{}"), one("b", "f", "{}")]);
}

#[test]
fn o6_a_new_id_with_a_name_at_the_same_index_is_another_call() {
    let told = told(&[fragment(0, "a", "f", "{}"), fragment(0, "b", "f", "{}")]);

    assert_eq!(told, [one("a", "f", "{}"), one("b", "f", "{}")]);
}

#[test]
fn o7_a_new_id_without_a_name_continues_the_call() {
    let told = told(&[
        fragment(0, "a", "f", "{\"x\""),
        fragment(0, "b", "", ":"),
        fragment(0, "c", "", "1}"),
    ]);

    assert_eq!(told, [one("a", "f", r#"{"x":1}"#)]);
}

#[test]
fn o8_a_known_id_wins_over_a_wrong_index() {
    let tail = calls(json!([{"index": 1, "id": "b", "function": {"arguments": "{\"y\":"}}]));

    let told = told(&[
        fragment(0, "a", "f", "{}"),
        fragment(0, "b", "g", ""),
        tail,
        more(1, "2}"),
    ]);

    assert_eq!(told, [one("a", "f", "{}"), one("b", "g", r#"{"y":2}"#)]);
}

#[test]
fn o8_a_tail_at_an_unknown_index_continues_the_latest_call() {
    let told = told(&[
        fragment(0, "a", "f", "{}"),
        fragment(0, "b", "g", ""),
        more(1, "{}"),
    ]);

    assert_eq!(told, [one("a", "f", "{}"), one("b", "g", "{}")]);
}

#[test]
fn o9_a_call_is_told_when_its_name_comes() {
    let told = told(&[
        calls(json!([{"index": 0, "id": "x"}])),
        more(0, "{\"x\":"),
        calls(json!([{"index": 0, "function": {"name": "f", "arguments": "1}"}}])),
    ]);

    assert_eq!(told, [one("x", "f", r#"{"x":1}"#)]);
}

#[test]
fn o10_calls_without_an_id_get_one() {
    let told = told(&[fragment(0, "", "f", "{}"), fragment(1, "", "f", "{}")]);

    assert_eq!(
        told,
        [one("call_1_3", "f", "{}"), one("call_1_4", "f", "{}")]
    );
}

#[test]
fn o11_an_id_that_is_given_twice_names_two_calls() {
    let told = told(&[fragment(0, "a", "f", "{}"), fragment(1, "a", "g", "{}")]);

    assert_eq!(told.len(), 2);
    assert_ne!(told[0].0, told[1].0);
}

#[test]
fn o12_and_o13_no_arguments_are_an_empty_object() {
    for arguments in ["", "null"] {
        assert_eq!(
            told(&[fragment(0, "a", "f", arguments)]),
            [one("a", "f", "{}")]
        );
    }
}

#[test]
fn o13_a_null_before_the_arguments_is_dropped() {
    let told = told(&[fragment(0, "a", "f", "null"), more(0, "{\"x\":null}")]);

    assert_eq!(told, [one("a", "f", r#"{"x":null}"#)]);
}

#[test]
fn o14_arguments_may_come_as_the_object_itself() {
    let function = json!({"name": "f", "arguments": {"x": 1}});

    let told = told(&[calls(
        json!([{"index": 0, "id": "a", "function": function}]),
    )]);

    assert_eq!(told, [one("a", "f", r#"{"x":1}"#)]);
}

#[test]
fn o15_arguments_that_were_encoded_twice_are_read() {
    let told = told(&[fragment(0, "a", "f", r#""{\"x\":1}""#)]);

    assert_eq!(told, [one("a", "f", r#"{"x":1}"#)]);
}

#[test]
fn o16_and_o17_arguments_that_are_no_object_are_kept_as_invalid() {
    for arguments in [r#"{"cmd": "ls"#, r#"{"a":1}{"b":2}"#] {
        assert_eq!(
            told(&[fragment(0, "a", "f", arguments)]),
            [one("a", "f", arguments)]
        );
    }
}

#[test]
fn o18_names_are_trimmed_and_the_first_stands() {
    let told = told(&[
        fragment(0, "a", " get ", "{"),
        fragment(0, "a", "get", ""),
        fragment(0, "", "", "}"),
    ]);

    assert_eq!(told, [one("a", "get", "{}")]);
}

#[test]
fn l15_a_call_without_a_function_is_none() {
    let events = events(&[calls(json!([{"id": "", "type": "function"}]))]);

    assert_eq!(events, Ok(Vec::new()));
}

#[test]
fn more_calls_than_anybody_executes_are_refused() {
    let heads = (0..=256).map(|at| fragment(at, &format!("call_{at}"), "f", "{}"));

    let failure = events(&heads.collect::<Vec<_>>()).expect_err("too many");

    assert_eq!(failure.kind, ModelFailureKind::Protocol);
}
