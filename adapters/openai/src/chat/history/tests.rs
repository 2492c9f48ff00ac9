use hango_domain::conversation::Block::Text;
use hango_domain::model::SystemBlock;
use hango_domain::tool::{ToolDef, schema};
use hango_provider_http::testing::call;

use super::*;

fn history() -> History {
    History {
        provider: "local".to_owned(),
        ids: IdRule::Short,
        names_results: false,
        wants_signatures: false,
        wants_reasoning: false,
        sends_reasoning: true,
    }
}

/// The messages of a request that offers a tool.
fn sent(history: &History, content: Vec<(Role, Vec<Block>)>) -> Value {
    let mut call = call(content);
    call.tools = vec![ToolDef {
        name: "get_time".to_owned(),
        description: "Tells the time.".to_owned(),
        parameters: schema::object([]),
    }];
    history.messages(&call).into()
}

fn messages(content: Vec<(Role, Vec<Block>)>) -> Value {
    sent(&history(), content)
}

fn tool_use(id: &str, provider_data: Option<ProviderData>) -> Block {
    Block::ToolUse {
        id: id.to_owned(),
        name: "get_time".to_owned(),
        input: Map::from_iter([("timezone".to_owned(), "UTC".into())]),
        provider_data,
    }
}

fn result(id: &str, is_error: bool) -> Block {
    Block::ToolResult {
        tool_use_id: id.to_owned(),
        content: format!("result of {id}"),
        for_user: Some("only for people".to_owned()),
        is_error,
    }
}

fn data(provider: &str, model: &str, data: Value) -> ProviderData {
    ProviderData {
        provider: provider.to_owned(),
        model: model.to_owned(),
        data,
    }
}

fn signed(provider: &str, model: &str) -> ProviderData {
    let extra = json!({"google": {"thought_signature": "s"}});
    data(provider, model, json!({"extra_content": extra}))
}

fn thinking(thinking: &str, provider_data: Option<ProviderData>) -> Block {
    Block::Thinking {
        thinking: thinking.to_owned(),
        signature: String::new(),
        provider_data,
    }
}

/// A question, what the assistant made of it, and the results of the calls `a` and `b`.
fn exchange(thoughts: Vec<Block>, calls: Vec<Block>) -> Vec<(Role, Vec<Block>)> {
    let results = calls.iter().filter_map(Block::tool_use_id);
    let results = results.map(|id| result(id, id == "b")).collect();
    let mut answer = thoughts;
    answer.extend(calls);
    vec![
        (Role::User, vec![Block::text("when?")]),
        (Role::Assistant, answer),
        (Role::User, results),
    ]
}

#[test]
fn the_system_prompt_is_one_message_of_its_blocks() {
    let mut call = call(vec![(Role::User, vec![Block::text("hi")])]);
    call.system = vec![
        SystemBlock::new("Be brief."),
        SystemBlock::new("Plan first."),
    ];

    let sent = history().messages(&call);

    let expected = json!({"role": "system", "content": "Be brief.\n\nPlan first."});
    assert_eq!(sent[0], expected);
}

#[test]
fn o42_results_follow_their_calls_before_what_the_user_said() {
    let sent = messages(vec![
        (Role::User, vec![Block::text("when?")]),
        (
            Role::Assistant,
            vec![
                Block::text("Let me look."),
                tool_use("a", None),
                tool_use("b", None),
            ],
        ),
        (
            Role::User,
            vec![result("a", false), result("b", true), Block::text("quick!")],
        ),
    ]);

    let call = |id: &str| {
        let function = json!({"name": "get_time", "arguments": "{\"timezone\":\"UTC\"}"});
        json!({"id": id, "type": "function", "function": function})
    };
    let expected = json!([
        {"role": "user", "content": "when?"},
        {"role": "assistant", "content": "Let me look.", "tool_calls": [call("a"), call("b")]},
        {"role": "tool", "tool_call_id": "a", "content": "result of a"},
        {"role": "tool", "tool_call_id": "b", "content": "result of b"},
        {"role": "user", "content": "quick!"},
    ]);
    assert_eq!(sent, expected);
}

#[test]
fn o43_both_sides_of_a_call_have_the_same_id() {
    let long = "functions.get_time_in_a_place_far_away:0";
    let too_long = format!("{long}0");
    let conversation = exchange(
        Vec::new(),
        vec![tool_use(long, None), tool_use(&too_long, None)],
    );
    let nine = History {
        ids: IdRule::Nine,
        ..history()
    };

    for (history, allowed) in [(history(), 40), (nine, 9)] {
        let sent = sent(&history, conversation.clone());

        for (at, stored) in [long, &too_long].into_iter().enumerate() {
            let id = &sent[1]["tool_calls"][at]["id"];
            assert_eq!(&sent[2 + at]["tool_call_id"], id);
            let id = id.as_str().expect("an id");
            assert_eq!(id == stored, stored.len() <= allowed, "{id}");
            assert!(id.len() <= allowed, "{id}");
        }
    }
}

#[test]
fn o44_the_last_message_is_a_users_or_a_tools() {
    let mut conversation = exchange(Vec::new(), vec![tool_use("a", None)]);
    conversation.push((Role::Assistant, vec![Block::text("Noon.")]));
    conversation.push((Role::User, vec![Block::text(" ")]));

    let sent = messages(conversation);

    let roles: Vec<_> = sent
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| &it["role"])
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool"]);
}

#[test]
fn o45_what_is_not_the_protocols_stays_at_home() {
    let foreign = || Block::Provider(data("other", "m", json!({"reasoning_details": [1]})));
    let own = || Block::Provider(data("local", "m", json!({"type": "odd"})));
    let odd = || thinking("hm", Some(data("local", "m", json!({"member": "odd"}))));

    let sent = messages(vec![
        (Role::User, vec![Block::text("hi")]),
        (
            Role::Assistant,
            vec![odd(), foreign(), own(), Block::text("ho")],
        ),
        (Role::User, vec![Block::text("hi")]),
        (Role::Assistant, vec![foreign(), odd(), Block::text(" \n")]),
        (Role::User, vec![Block::text("hi")]),
        (Role::Assistant, vec![own(), odd(), tool_use("a", None)]),
        (Role::User, vec![result("a", false)]),
    ]);

    let calls = &sent[4]["tool_calls"];
    let expected = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "ho"},
        {"role": "user", "content": "hi"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "result of a"},
    ]);
    assert_eq!(sent, expected);
}

#[test]
fn l1_and_l4_reasoning_goes_back_in_the_member_in_which_it_came() {
    for member in ["reasoning_content", "reasoning"] {
        let own = || data("local", "m", json!({"member": member}));
        let thought = |text: &str| vec![thinking(text, Some(own()))];
        let mut conversation = exchange(thought("hm"), vec![tool_use("a", None)]);
        let mut end = thought("so");
        end.push(Block::text("Noon."));
        conversation.push((Role::Assistant, end));
        conversation.push((Role::User, vec![Block::text("and now?")]));

        let sent = messages(conversation);

        assert_eq!(sent[1][member], "hm");
        assert_eq!(sent[3][member], "so");
        assert_eq!(sent[3]["content"], "Noon.");
    }
}

#[test]
fn l1_reasoning_of_others_stays_at_home() {
    for whose in [
        None,
        Some(data("local", "another", json!({"member": "reasoning"}))),
        Some(data("other", "m", json!({"member": "reasoning"}))),
        Some(data("local", "m", json!({}))),
    ] {
        let sent = messages(exchange(
            vec![thinking("hm", whose)],
            vec![tool_use("a", None)],
        ));

        let members = sent[1].as_object().map(Map::len);
        assert_eq!(members, Some(3), "{sent}");
    }
}

#[test]
fn l1_a_server_that_refuses_reasoning_gets_none() {
    let own = data("local", "m", json!({"member": "reasoning"}));
    let history = History {
        sends_reasoning: false,
        ..history()
    };

    let sent = sent(
        &history,
        exchange(vec![thinking("hm", Some(own))], vec![tool_use("a", None)]),
    );

    assert_eq!(sent[1].get("reasoning"), None);
}

#[test]
fn l1_and_l3_a_server_that_wants_reasoning_gets_some_with_every_message() {
    let history = History {
        wants_reasoning: true,
        ..history()
    };
    let of = |member: &str, whose: &str| data(whose, "m", json!({"member": member}));
    let table = [
        (Some(of("reasoning_content", "local")), "hm"),
        (Some(of("reasoning", "local")), "hm"),
        (Some(data("local", "m", json!({}))), "hm"),
        (Some(of("reasoning_content", "other")), ""),
        (None, ""),
    ];

    for (whose, expected) in table {
        let thought = || thinking("hm", whose.clone());
        let mut conversation = exchange(vec![thought()], vec![tool_use("a", None)]);
        conversation.push((Role::Assistant, vec![thought(), Block::text("Noon.")]));
        conversation.push((Role::User, vec![Block::text("and now?")]));

        let sent = sent(&history, conversation);

        for message in [&sent[1], &sent[3]] {
            assert_eq!(message["reasoning_content"], expected);
            assert_eq!(message.get("reasoning"), None);
        }
    }
}

#[test]
fn l18_details_go_back_as_they_came() {
    let details = json!([{"type": "reasoning.encrypted", "data": "d"}, {"type": "x"}]);
    let members = json!({"reasoning_details": details, "odd": 1});
    let thoughts = vec![
        thinking("hm", Some(data("local", "m", json!({})))),
        Block::Provider(data("local", "m", members)),
    ];

    let sent = messages(exchange(thoughts, vec![tool_use("a", None)]));

    assert_eq!(sent[1]["reasoning_details"], details);
    assert_eq!(sent[1].as_object().map(Map::len), Some(4));
}

#[test]
fn g2_calls_without_their_signature_are_told_as_text_where_it_is_wanted() {
    let history = History {
        wants_signatures: true,
        ..history()
    };
    let text = vec![Block::text("Let me look.")];
    let mut conversation = exchange(text, vec![tool_use("a", None), tool_use("b", None)]);
    conversation[2].1.push(Block::text("quick!"));

    let told = sent(&history, conversation);

    let called = "[Called the tool get_time with {\"timezone\":\"UTC\"}]";
    let expected = json!([
        {"role": "user", "content": "when?"},
        {"role": "assistant", "content": format!("Let me look.\n\n{called}\n\n{called}")},
        {"role": "user", "content": "[The tool get_time answered]\nresult of a\n\n\
                                     [The tool get_time failed]\nresult of b\n\nquick!"},
    ]);
    assert_eq!(told, expected);
}

#[test]
fn g2_and_g3_calls_go_back_to_the_model_that_signed_the_first_of_them() {
    let history = History {
        wants_signatures: true,
        ..history()
    };
    let of = |whose: Option<ProviderData>| {
        let calls = vec![tool_use("a", whose), tool_use("b", None)];
        sent(&history, exchange(Vec::new(), calls))
    };

    let own = of(Some(signed("local", "m")));

    let signature = json!({"google": {"thought_signature": "s"}});
    assert_eq!(own[1]["tool_calls"][0]["extra_content"], signature);
    assert_eq!(own[1]["tool_calls"][1].get("extra_content"), None);
    for foreign in [signed("local", "another"), signed("other", "m")].map(Some) {
        assert_eq!(of(foreign)[1].get("tool_calls"), None);
    }
}

#[test]
fn g3_what_the_same_model_attached_goes_back_to_it() {
    let calls = vec![
        tool_use("a", Some(signed("local", "m"))),
        tool_use("b", Some(signed("local", "another"))),
        tool_use("c", Some(signed("other", "m"))),
    ];

    let sent = messages(exchange(Vec::new(), calls));

    let calls = &sent[1]["tool_calls"];
    let signature = json!({"google": {"thought_signature": "s"}});
    assert_eq!(calls[0]["extra_content"], signature);
    assert_eq!(calls[1].get("extra_content"), None);
    assert_eq!(calls[2].get("extra_content"), None);
    assert_eq!(sent[1]["content"], "");
}

#[test]
fn g9_results_name_their_tool_where_it_is_wanted() {
    let history = History {
        names_results: true,
        ..history()
    };

    let sent = sent(&history, exchange(Vec::new(), vec![tool_use("a", None)]));

    let expected = json!({
        "role": "tool", "tool_call_id": "a", "name": "get_time", "content": "result of a",
    });
    assert_eq!(sent[2], expected);
}

#[test]
fn calls_are_told_as_text_where_no_tools_are_offered() {
    let conversation = exchange(Vec::new(), vec![tool_use("a", None)]);

    let told: Value = history().messages(&call(conversation)).into();

    let expected = json!([
        {"role": "user", "content": "when?"},
        {"role": "assistant", "content": "[Called the tool get_time with {\"timezone\":\"UTC\"}]"},
        {"role": "user", "content": "[The tool get_time answered]\nresult of a"},
    ]);
    assert_eq!(told, expected);
}

#[test]
fn several_texts_are_paragraphs_and_blank_ones_are_none() {
    let texts = ["one", " ", "two"].map(|text| Text {
        text: text.to_owned(),
        provider_data: None,
    });

    let sent = messages(vec![(Role::User, texts.to_vec())]);

    assert_eq!(sent, json!([{"role": "user", "content": "one\n\ntwo"}]));
}
