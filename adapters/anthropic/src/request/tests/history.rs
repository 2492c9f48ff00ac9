//! Conversations as the API takes them. What the domain's repair is for, it does first, as it does before
//! every call.

use std::collections::BTreeSet;
use std::sync::Arc;

use hango_domain::conversation::{repair, validate};

use super::*;

/// The messages as they are sent when the conversation was damaged, after the strictest reading of them.
fn repaired(content: Vec<(Role, Vec<Block>)>) -> Value {
    let mut call = call(content);
    assert!(
        validate(&call.messages).is_err(),
        "there is nothing to repair"
    );
    call.messages = Arc::new(repair(&call.messages).messages.into_owned());
    let messages = requests().body(&call)["messages"].clone();
    check(&messages);
    messages
}

/// What the API refuses, refused.
fn check(messages: &Value) {
    let mut ids = BTreeSet::new();
    let mut open: Vec<&str> = Vec::new();
    let mut before = "assistant";
    for message in messages.as_array().expect("a list") {
        assert_ne!(message["role"], before, "roles take turns: {messages:#}");
        before = message["role"].as_str().expect("a role");
        let content = message["content"].as_array().expect("a list");
        assert!(!content.is_empty(), "an empty message: {messages:#}");
        let results = content.iter().filter_map(|it| it["tool_use_id"].as_str());
        let results: Vec<&str> = results.collect();
        assert_eq!(results, open, "each call has its result: {messages:#}");
        let first = content.iter().take(open.len());
        assert!(
            first.into_iter().all(|it| it["type"] == "tool_result"),
            "results come first: {messages:#}"
        );
        open.clear();
        for block in content {
            match block["type"].as_str().expect("a type") {
                "text" => assert!(!is_blank(block["text"].as_str().expect("text"))),
                "tool_use" => {
                    let id = block["id"].as_str().expect("an id");
                    assert!(ids.insert(id), "{id} is there twice: {messages:#}");
                    assert!(block["input"].is_object(), "{messages:#}");
                    open.push(id);
                }
                _ => {}
            }
        }
    }
    assert_eq!(before, "user", "the user speaks last: {messages:#}");
    assert!(open.is_empty(), "{open:?} are open");
}

#[test]
fn a36_an_id_that_is_there_twice_is_told_apart_with_its_result() {
    let turn = || {
        [
            (Role::Assistant, vec![tool_use("a")]),
            (Role::User, vec![result("a", "noon", false)]),
        ]
    };
    let [asked, answered] = turn();
    let [asked_again, answered_again] = turn();

    let sent = repaired(vec![hi(), asked, answered, asked_again, answered_again]);

    assert_eq!(sent[1]["content"][0]["id"], "a");
    assert_eq!(sent[3]["content"][0]["id"], "a_2");
    assert_eq!(sent[4]["content"][0]["tool_use_id"], "a_2");
}

#[test]
fn a36_ids_of_other_providers_are_spelled_as_the_api_wants_and_stay_apart() {
    let asks = vec![tool_use("functions.f:0"), tool_use("functions_f_0")];
    let answers = vec![
        result("functions.f:0", "noon", false),
        result("functions_f_0", "one", false),
    ];

    let sent = messages(vec![hi(), (Role::Assistant, asks), (Role::User, answers)]);

    check(&sent);
    assert_eq!(sent[1]["content"][0]["id"], "functions_f_0");
    assert_eq!(sent[1]["content"][1]["id"], "functions_f_0_2");
}

#[test]
fn a37_and_a38_calls_and_results_are_brought_together() {
    let sent = repaired(vec![
        hi(),
        (Role::Assistant, vec![tool_use("a"), tool_use("b")]),
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

    let results = &sent[2]["content"];
    assert_eq!(results[0]["tool_use_id"], "a");
    assert_eq!(results[0]["is_error"], true);
    assert_eq!(results[1]["tool_use_id"], "b");
    assert_eq!(results[2]["text"], "quick!");
    assert_eq!(
        sent[4]["content"],
        json!([{"type": "text", "text": "thanks"}])
    );
}

#[test]
fn a39_nothing_blank_is_sent_and_no_message_of_nothing() {
    let foreign = Block::Provider(data("other", "m", json!({"type": "compaction"})));
    let sent = messages(vec![
        hi(),
        (Role::Assistant, vec![foreign, Block::text(" \n")]),
        (Role::User, vec![Block::text("hello?")]),
        (Role::Assistant, vec![thinking("s", own(json!({})))]),
        hi(),
    ]);

    check(&sent);
    let expected = json!([{"role": "user", "content": [
        {"type": "text", "text": "hi"},
        {"type": "text", "text": "hello?"},
        {"type": "text", "text": "hi"},
    ]}]);
    assert_eq!(sent, expected);
}

#[test]
fn a45_a_tool_that_failed_without_a_word_is_given_one() {
    let sent = messages(vec![
        hi(),
        (Role::Assistant, vec![tool_use("a"), tool_use("b")]),
        (
            Role::User,
            vec![result("a", "", true), result("b", "", false)],
        ),
    ]);

    assert_eq!(sent[2]["content"][0]["content"], "The tool failed.");
    assert_eq!(sent[2]["content"][1]["content"], "");
}

#[test]
fn a42_the_assistant_never_speaks_last() {
    let sent = repaired(vec![
        hi(),
        (Role::Assistant, vec![Block::text("ends in a space ")]),
    ]);

    assert_eq!(sent.as_array().map(Vec::len), Some(1));
}
