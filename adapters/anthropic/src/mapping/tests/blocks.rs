//! Blocks: what is whose, and what becomes of what hango has no word for.

use hango_domain::conversation::ProviderData;
use serde_json::Map;

use super::*;

fn own(data: Value) -> ProviderData {
    ProviderData {
        provider: "local".to_owned(),
        model: "m".to_owned(),
        data,
    }
}

/// The answer's blocks.
fn content(payloads: &[Value], reason: &str) -> Vec<Block> {
    let payloads = [payloads, &[stop(reason), done()]].concat();
    reply(&payloads).expect("a whole answer").content
}

fn thinking(thinking: &str, signature: &str) -> Block {
    Block::Thinking {
        thinking: thinking.to_owned(),
        signature: signature.to_owned(),
        provider_data: Some(own(json!({}))),
    }
}

fn tool_use(id: &str, input: Value) -> Block {
    let Value::Object(input) = input else {
        panic!("not an object");
    };
    Block::ToolUse {
        id: id.to_owned(),
        name: "f".to_owned(),
        input,
        provider_data: None,
    }
}

fn thinking_delta(index: u32, text: &str) -> Value {
    delta(index, &json!({"type": "thinking_delta", "thinking": text}))
}

fn signature_delta(index: u32, signature: &str) -> Value {
    delta(
        index,
        &json!({"type": "signature_delta", "signature": signature}),
    )
}

#[test]
fn a3_a_call_is_told_once_and_only_what_there_is_of_its_arguments() {
    let events = events(&call(0, "a", &["", "{\"x\"", ":1}"]));

    let more = |json: &str| StreamEvent::ToolInput {
        index: 0,
        json: json.to_owned(),
    };
    let begins = StreamEvent::ToolUse {
        index: 0,
        id: "a".to_owned(),
        name: "f".to_owned(),
    };
    assert_eq!(events, Ok(vec![begins, more("{\"x\""), more(":1}")]));
}

#[test]
fn a3_to_a5_and_a40_arguments_are_an_object_wherever_they_stand() {
    let whole = |input: Value| {
        let block = json!({"type": "tool_use", "id": "a", "name": "f", "input": input});
        vec![begin(0, &block), end(0)]
    };
    let table = [
        (call(0, "a", &["", "{\"x\"", ":1}"]), json!({"x": 1})),
        (call(0, "a", &[""]), json!({})),
        (call(0, "a", &[]), json!({})),
        (whole(json!({"x": 1})), json!({"x": 1})),
        (whole(json!("{\"x\": 1}")), json!({"x": 1})),
        (whole(Value::Null), json!({})),
        (
            vec![
                begin(
                    0,
                    &json!({"type": "tool_use", "id": "a", "name": "f", "input": {"y": 2}}),
                ),
                input(0, "{\"x\": 1}"),
            ],
            json!({"x": 1}),
        ),
    ];

    for (payloads, input) in table {
        assert_eq!(content(&payloads, "tool_use"), [tool_use("a", input)]);
    }
}

#[test]
fn a40_arguments_that_are_no_object_are_kept_as_invalid() {
    let block = json!({"type": "tool_use", "id": "a", "name": "f", "input": [1]});

    let reply = reply(&[begin(0, &block), end(0), stop("tool_use")]).expect("an answer");

    assert_eq!(reply.content, [tool_use("a", json!({}))]);
    assert_eq!(reply.invalid_inputs["a"], "[1]");
}

#[test]
fn a6_several_calls_are_kept_in_their_order() {
    let payloads = [
        text(0, "Let me look.").to_vec(),
        call(1, "a", &["{}"]),
        call(2, "b", &["{\"x\":1}"]),
        call(3, "c", &["{}"]),
    ]
    .concat();

    let expected = [
        Block::text("Let me look."),
        tool_use("a", json!({})),
        tool_use("b", json!({"x": 1})),
        tool_use("c", json!({})),
    ];
    assert_eq!(content(&payloads, "tool_use"), expected);
}

#[test]
fn a6_an_index_that_is_used_again_is_another_block() {
    let unended = json!({"type": "tool_use", "id": "b", "name": "f", "input": {"x": 2}});
    let payloads = [
        call(0, "a", &["{\"x\":1}"]),
        vec![begin(0, &unended)],
        call(0, "c", &["{\"x\":3}"]),
    ]
    .concat();

    let expected = [
        tool_use("a", json!({"x": 1})),
        tool_use("b", json!({"x": 2})),
        tool_use("c", json!({"x": 3})),
    ];
    assert_eq!(content(&payloads, "tool_use"), expected);
}

#[test]
fn a7_to_a9_reasoning_keeps_its_signature_and_says_whose_it_is() {
    let open = |signature: &str| {
        let block = json!({"type": "thinking", "thinking": "", "signature": signature});
        begin(0, &block)
    };
    let table = [
        (
            vec![
                open(""),
                thinking_delta(0, "h"),
                thinking_delta(0, "m"),
                signature_delta(0, "s"),
                end(0),
            ],
            thinking("hm", "s"),
        ),
        (
            vec![open(""), signature_delta(0, "s"), end(0)],
            thinking("", "s"),
        ),
        (vec![open("abc"), end(0)], thinking("", "abc")),
        (
            vec![open("abc"), signature_delta(0, "s"), end(0)],
            thinking("", "s"),
        ),
        (vec![open(""), thinking_delta(0, "hm")], thinking("hm", "")),
    ];

    for (payloads, block) in table {
        let payloads = [payloads, text(1, "Hi").to_vec()].concat();
        assert_eq!(content(&payloads, "end_turn"), [block, Block::text("Hi")]);
    }
}

#[test]
fn a10_redacted_reasoning_is_kept_as_it_came() {
    let block = json!({"type": "redacted_thinking", "data": "EmwK\u{2026}"});
    let payloads = [vec![begin(0, &block), end(0)], text(1, "Hi").to_vec()].concat();

    let redacted = Block::RedactedThinking {
        data: "EmwK\u{2026}".to_owned(),
        provider_data: Some(own(json!({}))),
    };
    assert_eq!(
        content(&payloads, "end_turn"),
        [redacted, Block::text("Hi")]
    );
}

#[test]
fn a11_reasoning_between_calls_stays_where_it_was() {
    let thought = |index: u32, signature: &str| {
        let block = json!({"type": "thinking", "thinking": "hm", "signature": signature});
        vec![begin(index, &block), end(index)]
    };
    let payloads = [
        thought(0, "s0"),
        call(1, "a", &["{}"]),
        thought(2, "s2"),
        thought(3, "s3"),
        text(4, "so").to_vec(),
    ]
    .concat();

    let expected = [
        thinking("hm", "s0"),
        tool_use("a", json!({})),
        thinking("hm", "s2"),
        thinking("hm", "s3"),
        Block::text("so"),
    ];
    assert_eq!(content(&payloads, "tool_use"), expected);
}

#[test]
fn a13_a_servers_own_tool_is_kept_whole_and_never_called_here() {
    let asked = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s",
        "content": [{"type": "web_search_result", "encrypted_content": "E"}]});
    let payloads = [
        vec![
            begin(0, &asked),
            input(0, ""),
            input(0, "{\"query\":"),
            input(0, "\"rust\"}"),
            end(0),
            begin(1, &found),
            end(1),
        ],
        text(2, "Rust.").to_vec(),
    ]
    .concat();

    let reply = reply(&[&payloads[..], &[stop("end_turn")]].concat()).expect("whole");

    let mut asked = asked;
    asked["input"] = json!({"query": "rust"});
    let expected = [
        Block::Provider(own(asked)),
        Block::Provider(own(found)),
        Block::text("Rust."),
    ];
    assert_eq!(reply.content, expected);
    assert_eq!(reply.stop_reason, StopReason::EndTurn);
}

#[test]
fn a14_a_servers_own_call_without_its_result_stands_beside_ours() {
    let asked = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let payloads = [vec![begin(0, &asked), end(0)], call(1, "a", &["{}"])].concat();

    assert_eq!(
        content(&payloads, "tool_use"),
        [Block::Provider(own(asked)), tool_use("a", json!({}))]
    );
}

#[test]
fn a18_a_servers_own_call_that_was_cut_off_is_none() {
    let asked = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let payloads = [
        text(0, "Let me look.").to_vec(),
        vec![begin(1, &asked), input(1, "{\"que")],
    ]
    .concat();

    assert_eq!(
        content(&payloads, "max_tokens"),
        [Block::text("Let me look.")]
    );
}

#[test]
fn a32_a_delta_of_an_unknown_kind_belongs_to_a_block_of_one() {
    let compaction = json!({"type": "compaction", "content": null, "parts": [1]});
    let more = |content: &str| {
        let more = json!({"type": "compaction_delta", "content": content, "parts": [2]});
        delta(0, &more)
    };
    let payloads = [
        vec![begin(0, &compaction), more("So "), more("far."), end(0)],
        text(1, "Hi").to_vec(),
    ]
    .concat();

    let kept = json!({"type": "compaction", "content": "So far.", "parts": [1, 2, 2]});
    assert_eq!(
        content(&payloads, "end_turn"),
        [Block::Provider(own(kept)), Block::text("Hi")]
    );
}

#[test]
fn a33_citations_are_attached_where_there_are_any() {
    let cited = |citations: Value, deltas: &[Value]| {
        let block = json!({"type": "text", "text": "", "citations": citations});
        let deltas = deltas
            .iter()
            .map(|citation| delta(0, &json!({"type": "citations_delta", "citation": citation})));
        let spoken = delta(0, &json!({"type": "text_delta", "text": "Hi"}));
        let payloads = [vec![begin(0, &block), spoken], deltas.collect()].concat();
        content(&payloads, "end_turn")
    };
    let with = |citations: Value| Block::Text {
        text: "Hi".to_owned(),
        provider_data: Some(own(json!({"citations": citations}))),
    };

    assert_eq!(cited(Value::Null, &[]), [Block::text("Hi")]);
    assert_eq!(cited(json!([]), &[]), [Block::text("Hi")]);
    let (one, two) = (json!({"n": 1}), json!({"n": 2}));
    assert_eq!(
        cited(Value::Null, &[one.clone(), two.clone()]),
        [with(json!([one, two]))]
    );
    assert_eq!(
        cited(json!([one]), std::slice::from_ref(&two)),
        [with(json!([one, two]))]
    );
}

#[test]
fn members_that_hango_has_no_word_for_are_attached_to_their_call() {
    let block = json!({"type": "tool_use", "id": "a", "name": "f", "input": {},
        "caller": {"type": "direct"}, "future": null});

    let call = Block::ToolUse {
        id: "a".to_owned(),
        name: "f".to_owned(),
        input: Map::new(),
        provider_data: Some(own(json!({"caller": {"type": "direct"}}))),
    };
    assert_eq!(content(&[begin(0, &block)], "tool_use"), [call]);
}

#[test]
fn text_in_a_blocks_beginning_counts() {
    let begin = begin(0, &json!({"type": "text", "text": "H"}));
    let more = delta(0, &json!({"type": "text_delta", "text": "i"}));

    assert_eq!(content(&[begin, more], "end_turn"), [Block::text("Hi")]);
}

#[test]
fn calls_without_an_id_get_one() {
    let block = json!({"type": "tool_use", "name": "f", "input": {}});

    assert_eq!(
        content(&[begin(0, &block)], "tool_use"),
        [tool_use("call_1_0", json!({}))]
    );
}

#[test]
fn more_blocks_at_once_than_any_server_has_are_refused() {
    let begins = (0..=64).map(|index| begin(index, &json!({"type": "text"})));

    let failure = events(&begins.collect::<Vec<_>>());

    assert_eq!(kind(failure), Some(ModelFailureKind::Protocol));
}
