//! Calls: their arguments, their two ids, and what got lost of them.

use super::*;

fn begun(index: u32, id: &str, call_id: &str) -> Value {
    let item = json!({
        "type": "function_call", "id": id, "call_id": call_id, "name": "get_time", "arguments": "",
    });
    added(index, item)
}

fn more(index: u32, id: &str, json: &str) -> Value {
    json!({
        "type": "response.function_call_arguments.delta", "output_index": index, "item_id": id,
        "delta": json,
    })
}

fn all(index: u32, id: &str, json: &str) -> Value {
    json!({
        "type": "response.function_call_arguments.done", "output_index": index, "item_id": id,
        "arguments": json,
    })
}

fn called(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = pairs.iter();
    pairs
        .map(|(id, input)| ((*id).to_owned(), (*input).to_owned()))
        .collect()
}

#[test]
fn r6_fragments_of_calls_side_by_side_are_joined_by_their_numbers() {
    let reply = reply(&[
        begun(0, "fc_1", "call_1"),
        begun(1, "fc_2", "call_2"),
        more(0, "fc_1", "{\"a\""),
        more(1, "fc_2", "{\"b\""),
        more(0, "fc_1", ":1}"),
        more(1, "fc_2", ":2}"),
        completed(json!([])),
    ]);

    let reply = reply.expect("an answer");
    let expected = [("call_1", "{\"a\":1}"), ("call_2", "{\"b\":2}")];
    assert_eq!(calls(&reply), called(&expected));
    assert_eq!(reply.stop_reason, StopReason::ToolUse);
}

#[test]
fn r6_what_an_event_says_of_all_arguments_wins_over_fragments() {
    let late = |kind: &str, member: &str| {
        json!({
            "type": format!("response.function_call_arguments.{kind}"), "item_id": "fc_1",
            member: "{}",
        })
    };
    for ends in [
        vec![all(0, "fc_1", "{\"a\":1}")],
        vec![done(0, call("fc_1", "call_1", "{\"a\":1}"))],
        vec![
            all(0, "fc_1", "{\"a\":0}"),
            done(0, call("fc_1", "call_1", "{\"a\":1}")),
        ],
        vec![
            all(0, "fc_1", "{\"a\":1}"),
            done(0, call("fc_1", "call_1", "")),
        ],
        // What comes behind its end says nothing.
        vec![
            done(0, call("fc_1", "call_1", "{\"a\":1}")),
            late("done", "arguments"),
            late("delta", "delta"),
        ],
    ] {
        let mut payloads = vec![begun(0, "fc_1", "call_1"), more(0, "fc_1", "{\"a\":")];
        payloads.extend(ends);
        payloads.push(completed(json!([])));

        let reply = reply(&payloads).expect("an answer");

        assert_eq!(calls(&reply), called(&[("call_1", "{\"a\":1}")]));
    }
}

#[test]
fn r6_a_call_without_arguments_has_an_empty_object() {
    let payloads = [
        begun(0, "fc_1", "call_1"),
        more(0, "fc_1", ""),
        done(0, call("fc_1", "call_1", "")),
        completed(json!([])),
    ];

    let reply = reply(&payloads).expect("an answer");

    assert_eq!(calls(&reply), called(&[("call_1", "{}")]));
}

#[test]
fn r6_arguments_that_are_no_json_are_kept_apart_and_never_executed() {
    let payloads = [
        done(0, call("fc_1", "call_1", "{\"a\":")),
        completed(json!([])),
    ];

    let reply = reply(&payloads).expect("an answer");

    assert_eq!(reply.invalid_inputs["call_1"], "{\"a\":");
}

#[test]
fn r6_arguments_that_are_an_object_are_taken() {
    let mut item = call("fc_1", "call_1", "");
    item["arguments"] = json!({"a": 1});

    let reply = reply(&[done(0, item), completed(json!([]))]).expect("an answer");

    assert_eq!(calls(&reply), called(&[("call_1", "{\"a\":1}")]));
}

#[test]
fn r7_a_call_whose_end_got_lost_is_taken_from_the_last_event() {
    let output = json!([
        call("fc_1", "call_1", "{\"a\":1}"),
        call("fc_2", "call_2", "{\"b\":2}"),
        call("fc_3", "call_3", "{\"c\":3}"),
    ]);

    let reply = reply(&[
        begun(0, "fc_1", "call_1"),
        more(0, "fc_1", "{\"a\":"),
        begun(1, "fc_2", "call_2"),
        done(1, call("fc_2", "call_2", "{\"b\":2}")),
        completed(output),
    ]);

    let expected = [
        ("call_1", "{\"a\":1}"),
        ("call_2", "{\"b\":2}"),
        ("call_3", "{\"c\":3}"),
    ];
    assert_eq!(calls(&reply.expect("an answer")), called(&expected));
}

#[test]
fn r7_a_call_whose_beginning_got_lost_is_told_of_if_its_name_came() {
    let reply = reply(&[
        more(0, "fc_1", "{\"a\":1}"),
        more(1, "fc_2", "{\"b\":2}"),
        done(0, call("fc_1", "call_1", "{\"a\":1}")),
        completed(json!([])),
    ]);

    let reply = reply.expect("an answer");
    assert_eq!(calls(&reply), called(&[("call_1", "{\"a\":1}")]));
}

#[test]
fn r8_results_use_the_calls_id_and_the_items_id_is_attached() {
    let reply = reply(&[
        done(0, call("fc_1", "call_1", "{}")),
        completed(json!([call("fc_1", "call_1", "{}")])),
    ]);

    let data = json!({"type": "function_call", "id": "fc_1", "status": "completed"});
    let expected = Block::ToolUse {
        id: "call_1".to_owned(),
        name: "get_time".to_owned(),
        input: Map::new(),
        provider_data: Some(own(data)),
    };
    assert_eq!(reply.expect("an answer").content, [expected]);
}

#[test]
fn r8_servers_that_send_one_of_the_two_ids_are_understood() {
    let only_call_id = json!({"type": "function_call", "call_id": "fc_1", "name": "get_time"});
    let only_id = json!({"type": "function_call", "id": "fc_1", "name": "get_time"});
    for item in [only_call_id, only_id] {
        let reply = reply(&[
            json!({"type": "response.output_item.added", "item": item}),
            json!({
                "type": "response.function_call_arguments.delta", "item_id": "fc_1",
                "delta": "{\"a\":1}",
            }),
            json!({"type": "response.output_item.done", "item": item}),
            completed(json!([item])),
        ]);

        let reply = reply.expect("an answer");
        assert_eq!(calls(&reply), called(&[("fc_1", "{\"a\":1}")]));
    }
}

#[test]
fn r8_a_call_without_any_id_is_given_one() {
    let item = json!({"type": "function_call", "name": "get_time", "arguments": "{}"});

    let reply = reply(&[done(0, item), completed(json!([]))]).expect("an answer");

    assert_eq!(calls(&reply), called(&[("call_1_0", "{}")]));
}

#[test]
fn what_waits_for_the_end_is_counted() {
    let mut mapping = Mapping::new(Origin::named("local"), "m");
    let mut take = |payload: Value| {
        let data = payload.to_string();
        let taken = mapping.event(&Event { name: None, data }, &mut Vec::new());
        assert_eq!(taken, Ok(Flow::More));
        mapping.held()
    };

    assert_eq!(take(delta(1, "", "hi")), 0);
    assert_eq!(take(more(0, "fc_1", "abc")), "fc_1abc".len());
    assert_eq!(take(more(0, "fc_1", "def")), "fc_1abcdef".len());
}

#[test]
fn items_have_a_limit() {
    let many: Vec<Value> = (0..300).map(|_| message("", "x")).collect();
    let begun: Vec<Value> = (0..300)
        .map(|index| added(index, json!({"type": "message"})))
        .collect();

    let begun = events(&begun).expect_err("too many");
    let repeated = events(&[completed(many.into())]).expect_err("too many");

    assert_eq!(begun.kind, ModelFailureKind::Protocol);
    assert_eq!(repeated.kind, ModelFailureKind::Protocol);
}
