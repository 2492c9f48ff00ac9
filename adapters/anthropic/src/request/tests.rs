//! Tests are named by the rows of the providers table.

use hango_domain::tool::schema;
use hango_provider_http::testing::call;

use super::*;

mod history;

fn requests() -> Requests {
    requests_with(json!({}), &[])
}

fn requests_with(extra: Value, quirks: &[Quirk]) -> Requests {
    let Value::Object(extra) = extra else {
        panic!("not an object");
    };
    Requests::new("local", extra, quirks)
}

fn messages(content: Vec<(Role, Vec<Block>)>) -> Value {
    requests().body(&call(content))["messages"].clone()
}

fn tool_use(id: &str) -> Block {
    Block::ToolUse {
        id: id.to_owned(),
        name: "get_time".to_owned(),
        input: Map::from_iter([("timezone".to_owned(), "UTC".into())]),
        provider_data: None,
    }
}

fn result(id: &str, content: &str, is_error: bool) -> Block {
    Block::ToolResult {
        tool_use_id: id.to_owned(),
        content: content.to_owned(),
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

fn own(members: Value) -> ProviderData {
    data("local", "m", members)
}

fn thinking(signature: &str, provider_data: impl Into<Option<ProviderData>>) -> Block {
    Block::Thinking {
        thinking: "hm".to_owned(),
        signature: signature.to_owned(),
        provider_data: provider_data.into(),
    }
}

fn hi() -> (Role, Vec<Block>) {
    (Role::User, vec![Block::text("hi")])
}

#[test]
fn a_plain_question_asks_for_a_stream_with_a_limit() {
    let body = requests().body(&call(vec![hi()]));

    let expected = json!({
        "model": "m",
        "max_tokens": 32000,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "stream": true,
    });
    assert_eq!(Value::Object(body), expected);
}

#[test]
fn all_that_a_call_says_is_said() {
    let mut call = call(vec![hi()]);
    call.system = ["Be brief.", " ", "Plan first."]
        .map(SystemBlock::new)
        .to_vec();
    call.system[2].cache_breakpoint = true;
    call.tools = vec![ToolDef {
        name: "get_time".to_owned(),
        description: "Tells the time.".to_owned(),
        parameters: schema::object([]),
    }];
    call.max_tokens = Some(64);
    call.temperature = Some(0.5);

    let body = requests().body(&call);

    let system = json!([
        {"type": "text", "text": "Be brief."},
        {"type": "text", "text": "Plan first.", "cache_control": {"type": "ephemeral"}},
    ]);
    let tool = json!({
        "name": "get_time",
        "description": "Tells the time.",
        "input_schema": schema::object([]),
    });
    assert_eq!(body["system"], system);
    assert_eq!(body["tools"], json!([tool]));
    assert_eq!(body["max_tokens"], 64);
    assert_eq!(body["temperature"], 0.5);
}

#[test]
fn a6_results_travel_in_one_message_in_the_order_of_their_calls() {
    let sent = messages(vec![
        hi(),
        (
            Role::Assistant,
            vec![Block::text("Let me look."), tool_use("a"), tool_use("b")],
        ),
        (
            Role::User,
            vec![
                result("a", "noon", false),
                result("b", "no such zone", true),
                Block::text("quick!"),
            ],
        ),
    ]);

    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "get_time", "input": {"timezone": "UTC"}});
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": [
            {"type": "text", "text": "Let me look."}, call("a"), call("b"),
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "noon"},
            {"type": "tool_result", "tool_use_id": "b", "content": "no such zone",
             "is_error": true},
            {"type": "text", "text": "quick!"},
        ]},
    ]);
    assert_eq!(sent, expected);
}

#[test]
fn a7_to_a13_what_this_provider_sent_as_this_model_goes_back_as_it_came_and_in_its_order() {
    let server = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let redacted = Block::RedactedThinking {
        data: "EmwK".to_owned(),
        provider_data: Some(own(json!({}))),
    };
    let cited = Block::Text {
        text: "so".to_owned(),
        provider_data: Some(own(json!({"citations": [{"n": 1}]}))),
    };
    let mut called = tool_use("a");
    if let Block::ToolUse { provider_data, .. } = &mut called {
        *provider_data = Some(own(json!({"caller": {"type": "direct"}})));
    }
    let sent = messages(vec![
        hi(),
        (
            Role::Assistant,
            vec![
                thinking("s0", own(json!({"future": 1}))),
                redacted,
                Block::Provider(own(server.clone())),
                called,
                thinking("s1", own(json!({}))),
                cited,
            ],
        ),
        (Role::User, vec![result("a", "noon", false)]),
    ]);

    let expected = json!([
        {"type": "thinking", "thinking": "hm", "signature": "s0", "future": 1},
        {"type": "redacted_thinking", "data": "EmwK"},
        server,
        {"type": "tool_use", "id": "a", "name": "get_time", "input": {"timezone": "UTC"},
         "caller": {"type": "direct"}},
        {"type": "thinking", "thinking": "hm", "signature": "s1"},
        {"type": "text", "text": "so", "citations": [{"n": 1}]},
    ]);
    assert_eq!(sent[1]["content"], expected);
}

#[test]
fn a12_what_another_model_or_provider_thought_stays_at_home() {
    let others = [
        None,
        Some(data("other", "m", json!({}))),
        Some(data("local", "another", json!({}))),
    ];
    for foreign in others {
        let redacted = Block::RedactedThinking {
            data: "EmwK".to_owned(),
            provider_data: foreign.clone(),
        };
        let cited = Block::Text {
            text: "so".to_owned(),
            provider_data: foreign.clone(),
        };
        let kept = foreign.clone().map(Block::Provider);
        let mut said = vec![thinking("s", foreign), redacted, cited];
        said.extend(kept);

        let sent = messages(vec![hi(), (Role::Assistant, said), hi()]);

        assert_eq!(sent[1]["content"], json!([{"type": "text", "text": "so"}]));
    }
}

#[test]
fn l2_reasoning_without_a_signature_goes_back_to_who_gives_none() {
    let said = vec![thinking("", own(json!({}))), tool_use("a")];

    let sent = messages(vec![
        hi(),
        (Role::Assistant, said),
        (Role::User, vec![result("a", "noon", false)]),
    ]);

    let thought = json!({"type": "thinking", "thinking": "hm", "signature": ""});
    assert_eq!(sent[1]["content"][0], thought);
}

#[test]
fn a46_reasoning_that_was_cut_off_is_not_sent() {
    let said = vec![
        thinking("s", own(json!({}))),
        Block::text("so"),
        thinking("", own(json!({}))),
    ];

    let sent = messages(vec![hi(), (Role::Assistant, said), hi()]);

    let expected = json!([
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "so"},
    ]);
    assert_eq!(sent[1]["content"], expected);
}

#[test]
fn a41_of_more_marks_than_a_request_may_have_the_last_ones_stay() {
    let mut call = call(vec![hi()]);
    call.system = (0..6)
        .map(|n| SystemBlock {
            text: format!("block {n}"),
            cache_breakpoint: n != 1,
        })
        .collect();
    let marked = |extra: Value| {
        let body = requests_with(extra, &[]).body(&call);
        let system = body["system"].as_array().expect("a list").clone();
        let marked = (0..).zip(system);
        let marked = marked.filter(|(_, block)| block.get("cache_control").is_some());
        marked.map(|(n, _)| n).collect::<Vec<_>>()
    };
    let mark = json!({"type": "ephemeral"});

    assert_eq!(marked(json!({})), [2, 3, 4, 5]);
    assert_eq!(marked(json!({"cache_control": mark})), [3, 4, 5]);
    let tools = json!([{"name": "a", "cache_control": mark}, {"name": "b"}]);
    assert_eq!(
        marked(json!({"cache_control": mark, "tools": tools})),
        [4, 5]
    );
}

#[test]
fn a43_the_temperature_is_left_out_where_it_would_be_refused() {
    let mut call = call(vec![hi()]);
    call.temperature = Some(0.5);
    let thinking = |kind: &str| json!({"thinking": {"type": kind}});
    let table = [
        (json!({}), &[][..], true),
        (json!({}), &[Quirk::NoTemperature], false),
        (thinking("enabled"), &[], false),
        (thinking("adaptive"), &[], false),
        (thinking("disabled"), &[], true),
    ];

    for (extra, quirks, expected) in table {
        let body = requests_with(extra.clone(), quirks).body(&call);

        assert_eq!(
            body.contains_key("temperature"),
            expected,
            "{extra} {quirks:?}"
        );
    }
}

#[test]
fn an_operators_members_win_and_his_tools_stand_behind_the_agents() {
    let mut call = call(vec![hi()]);
    call.tools = vec![ToolDef {
        name: "get_time".to_owned(),
        description: "Tells the time.".to_owned(),
        parameters: schema::object([]),
    }];
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    let extra = json!({"top_k": 5, "stream": false, "tools": [search]});

    let body = requests_with(extra, &[]).body(&call);

    assert_eq!(body["top_k"], 5);
    assert_eq!(body["stream"], false);
    let names = body["tools"].as_array().expect("a list").iter();
    let names: Vec<_> = names.map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["get_time", "web_search"]);
}

#[test]
fn quirks_are_known_by_name() {
    assert_eq!("no_temperature".parse(), Ok(Quirk::NoTemperature));
    assert!("no_manners".parse::<Quirk>().is_err());
}
