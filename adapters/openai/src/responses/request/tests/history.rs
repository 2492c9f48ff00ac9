//! Conversations as the API takes them. What the domain's repair is for, it does first, as it does before
//! every call.

use super::*;

/// The items that are sent when the conversation was damaged.
fn repaired(content: Vec<(Role, Vec<Block>)>) -> Value {
    let mut call = call(content);
    assert!(
        validate(&call.messages).is_err(),
        "there is nothing to repair"
    );
    call.messages = Arc::new(repair(&call.messages).messages.into_owned());
    let input = requests().body(&call)["input"].clone();
    check(&input);
    input
}

fn types(input: &Value) -> Vec<&str> {
    let items = input.as_array().expect("a list").iter();
    items.filter_map(|item| item["type"].as_str()).collect()
}

fn bare_call() -> Value {
    json!({
        "type": "function_call", "call_id": "call_1", "name": "get_time",
        "arguments": "{\"timezone\":\"UTC\"}",
    })
}

#[test]
fn r8_a_result_uses_the_calls_id_and_the_items_id_goes_back() {
    let of_item = own(json!({"type": "function_call", "id": "fc_1", "status": "completed"}));

    let sent = input(vec![
        hi(),
        (Role::Assistant, vec![tool_use("call_1", of_item)]),
        (Role::User, vec![result("call_1", "noon", false)]),
    ]);

    let call = json!({
        "type": "function_call", "id": "fc_1", "status": "completed", "call_id": "call_1",
        "name": "get_time", "arguments": "{\"timezone\":\"UTC\"}",
    });
    let output = json!({"type": "function_call_output", "call_id": "call_1", "output": "noon"});
    assert_eq!((&sent[1], &sent[2]), (&call, &output));
}

#[test]
fn r8_and_r9_what_another_provider_or_model_attached_stays_at_home() {
    for (provider, model) in [("other", "m"), ("local", "n")] {
        let attached = |kind: &str| {
            let item = json!({"type": kind, "id": "x_1", "summary": []});
            data(provider, model, item)
        };
        let redacted = Block::RedactedThinking {
            data: "x".to_owned(),
            provider_data: Some(attached("reasoning")),
        };

        let sent = input(vec![
            hi(),
            (
                Role::Assistant,
                vec![
                    thinking("gAAA", Some(attached("reasoning"))),
                    redacted,
                    Block::Provider(attached("web_search_call")),
                    tool_use("call_1", Some(attached("function_call"))),
                ],
            ),
            (Role::User, vec![result("call_1", "noon", false)]),
        ]);

        assert_eq!(sent[1], bare_call());
        assert_eq!(sent.as_array().map(Vec::len), Some(3));
    }
}

#[test]
fn r8_what_was_attached_in_another_protocol_stays_at_home() {
    let of_chat = own(json!({"extra_content": {"google": {"thought_signature": "s"}}}));

    let sent = input(vec![
        hi(),
        (Role::Assistant, vec![tool_use("call_1", of_chat)]),
        (Role::User, vec![result("call_1", "noon", false)]),
    ]);

    assert_eq!(sent[1], bare_call());
}

#[test]
fn r9_reasoning_goes_back_whole_directly_before_its_call() {
    let summary = json!([{"type": "summary_text", "text": "Hm."}]);
    let of_item = own(json!({"type": "reasoning", "id": "rs_1", "summary": summary}));
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});

    let sent = input(vec![
        hi(),
        (
            Role::Assistant,
            vec![
                thinking("gAAA", of_item.clone()),
                Block::Provider(data("local", "m", search.clone())),
                thinking("gBBB", of_item),
                tool_use("call_1", None),
            ],
        ),
        (Role::User, vec![result("call_1", "noon", false)]),
    ]);

    let reasoning = |encrypted: &str| {
        json!({
            "type": "reasoning", "id": "rs_1", "summary": summary,
            "encrypted_content": encrypted,
        })
    };
    assert_eq!(sent[1], reasoning("gAAA"));
    assert_eq!(sent[2], search);
    assert_eq!(sent[3], reasoning("gBBB"));
    assert_eq!(sent[4]["type"], "function_call");
}

#[test]
fn r9_reasoning_that_led_to_nothing_is_left_out() {
    let of_item = || own(json!({"type": "reasoning", "id": "rs_1", "summary": []}));

    let sent = input(vec![
        hi(),
        (
            Role::Assistant,
            vec![
                Block::text("Hello."),
                thinking("gAAA", of_item()),
                thinking("gBBB", of_item()),
                Block::text(" "),
            ],
        ),
        (Role::User, vec![Block::text("hello?")]),
        (Role::Assistant, vec![thinking("gCCC", of_item())]),
        hi(),
    ]);

    assert_eq!(types(&sent), ["message"; 4]);
}

#[test]
fn r9_reasoning_that_its_server_cannot_read_is_left_out_with_the_ids_that_name_it() {
    let summary = json!([{"type": "summary_text", "text": "Hm."}]);
    let unreadable = own(json!({"type": "reasoning", "id": "rs_1", "summary": summary}));
    let content = json!([{"type": "reasoning_text", "text": "Hm."}]);
    let in_the_clear =
        own(json!({"type": "reasoning", "id": "rs_1", "summary": [], "content": content}));
    let ask = |reasoning: Block| {
        let said = Block::Text {
            text: "Let me see.".to_owned(),
            provider_data: own(json!({"type": "message", "id": "msg_own"})),
        };
        let of_item = own(json!({"type": "function_call", "id": "fc_1"}));
        let asks = vec![reasoning, said, tool_use("call_1", of_item)];
        let answers = vec![result("call_1", "noon", false)];
        input(vec![hi(), (Role::Assistant, asks), (Role::User, answers)])
    };

    let left_out = ask(thinking("", unreadable));
    let cut_off = ask(thinking("", None));
    let kept = ask(thinking("", in_the_clear));

    assert_eq!(left_out[1]["id"], "msg_1");
    assert_eq!(left_out[2].get("id"), None);
    assert_eq!(cut_off, left_out);
    assert_eq!(kept[1]["content"], content);
    assert_eq!(
        (&kept[2]["id"], &kept[3]["id"]),
        (&json!("msg_own"), &json!("fc_1"))
    );
}

#[test]
fn r10_and_r11_calls_and_outputs_are_brought_together() {
    let sent = repaired(vec![
        hi(),
        (
            Role::Assistant,
            vec![tool_use("a", None), tool_use("b", None)],
        ),
        (
            Role::User,
            vec![Block::text("quick!"), result("b", "noon", false)],
        ),
        (Role::Assistant, vec![Block::text("It is noon.")]),
        (
            Role::User,
            vec![result("z", "of nobody", false), Block::text("thanks")],
        ),
    ]);

    let expected = [
        "message",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "message",
        "message",
        "message",
    ];
    assert_eq!(types(&sent), expected);
}

#[test]
fn r11_an_id_that_is_there_twice_is_told_apart_with_its_output() {
    let turn = || {
        [
            (Role::Assistant, vec![tool_use("functions.f:0", None)]),
            (Role::User, vec![result("functions.f:0", "noon", false)]),
        ]
    };
    let [asked, answered] = turn();
    let [asked_again, answered_again] = turn();

    let sent = input(vec![hi(), asked, answered, asked_again, answered_again]);

    assert_eq!(sent[1]["call_id"], "functions_f_0");
    assert_eq!(sent[3]["call_id"], "functions_f_0_2");
}

#[test]
fn what_the_assistant_said_has_an_id_and_a_status_in_any_case() {
    let of_item = json!({
        "type": "message", "id": "msg_own", "status": "completed", "phase": "final_answer",
        "annotations": [{"type": "url_citation"}],
    });
    let own = Block::Text {
        text: "Hello.".to_owned(),
        provider_data: own(of_item),
    };
    let foreign = Block::text("Well.");

    let sent = input(vec![hi(), (Role::Assistant, vec![own, foreign]), hi()]);

    let part = json!({
        "type": "output_text", "text": "Hello.", "annotations": [{"type": "url_citation"}],
    });
    let of_own = json!({
        "type": "message", "id": "msg_own", "status": "completed", "phase": "final_answer",
        "role": "assistant", "content": [part],
    });
    let part = json!({"type": "output_text", "text": "Well.", "annotations": []});
    let of_foreign = json!({
        "type": "message", "id": "msg_2", "status": "completed", "role": "assistant",
        "content": [part],
    });
    assert_eq!((&sent[1], &sent[2]), (&of_own, &of_foreign));
}

#[test]
fn a_tool_that_failed_without_a_word_is_given_one() {
    let sent = input(vec![
        hi(),
        (
            Role::Assistant,
            vec![tool_use("a", None), tool_use("b", None)],
        ),
        (
            Role::User,
            vec![
                result("a", "", true),
                result("b", "", false),
                Block::text("well?"),
            ],
        ),
    ]);

    assert_eq!(sent[3]["output"], "The tool failed.");
    assert_eq!(sent[4]["output"], "");
    assert_eq!(sent[5]["content"][0]["text"], "well?");
}
