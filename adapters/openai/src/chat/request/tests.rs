use hango_domain::conversation::Block::Text;
use hango_domain::model::SystemBlock;
use hango_domain::tool::schema;
use hango_provider_http::testing::call;

use super::*;

fn requests() -> Requests {
    let url = Url::parse("http://localhost/v1").expect("a URL");
    Requests::new("local", &url, Map::new(), &[])
}

fn messages(content: Vec<(Role, Vec<Block>)>) -> Value {
    requests().body(&call(content))["messages"].clone()
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

fn data(provider: &str, model: &str) -> ProviderData {
    ProviderData {
        provider: provider.to_owned(),
        model: model.to_owned(),
        data: json!({"extra_content": {"google": {"thought_signature": "s"}}}),
    }
}

#[test]
fn a_plain_question_asks_for_a_stream_with_usage() {
    let body = requests().body(&call(vec![(Role::User, vec![Block::text("hi")])]));

    let expected = json!({
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(Value::Object(body), expected);
}

#[test]
fn the_system_prompt_is_one_message_of_its_blocks() {
    let mut call = call(vec![(Role::User, vec![Block::text("hi")])]);
    call.system = vec![
        SystemBlock::new("Be brief."),
        SystemBlock::new("Plan first."),
    ];

    let body = requests().body(&call);

    let expected = json!({"role": "system", "content": "Be brief.\n\nPlan first."});
    assert_eq!(body["messages"][0], expected);
}

#[test]
fn tools_and_limits_are_sent_when_there_are_any() {
    let mut call = call(vec![(Role::User, vec![Block::text("hi")])]);
    call.tools = vec![ToolDef {
        name: "get_time".to_owned(),
        description: "Tells the time.".to_owned(),
        parameters: schema::object([]),
    }];
    call.max_tokens = Some(64);
    call.temperature = Some(0.5);

    let body = requests().body(&call);

    let function = json!({
        "name": "get_time",
        "description": "Tells the time.",
        "parameters": schema::object([]),
    });
    assert_eq!(
        body["tools"],
        json!([{"type": "function", "function": function}])
    );
    assert_eq!(body["max_tokens"], 64);
    assert_eq!(body["temperature"], 0.5);
}

#[test]
fn o40_openai_itself_knows_the_limit_by_its_newer_name() {
    let url = Url::parse("https://api.openai.com/v1").expect("a URL");
    let mut call = call(Vec::new());
    call.max_tokens = Some(64);

    let body = Requests::new("openai", &url, Map::new(), &[]).body(&call, &[]);

    assert_eq!(body["max_completion_tokens"], 64);
    assert_eq!(body.get("max_tokens"), None);
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
fn o45_thinking_and_foreign_blocks_stay_at_home() {
    let thinking = Block::Thinking {
        thinking: "hm".to_owned(),
        signature: String::new(),
        provider_data: None,
    };
    let foreign = || Block::Provider(data("other", "m"));

    let sent = messages(vec![
        (Role::User, vec![Block::text("hi")]),
        (
            Role::Assistant,
            vec![thinking.clone(), foreign(), Block::text("ho")],
        ),
        (
            Role::Assistant,
            vec![thinking, foreign(), Block::text(" \n")],
        ),
    ]);

    let expected = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "ho"},
    ]);
    assert_eq!(sent, expected);
}

#[test]
fn g3_what_the_same_model_attached_goes_back_to_it() {
    let calls = vec![
        tool_use("a", Some(data("local", "m"))),
        tool_use("b", Some(data("local", "another"))),
        tool_use("c", Some(data("other", "m"))),
    ];

    let sent = messages(vec![(Role::Assistant, calls)]);

    let calls = &sent[0]["tool_calls"];
    let signature = json!({"google": {"thought_signature": "s"}});
    assert_eq!(calls[0]["extra_content"], signature);
    assert_eq!(calls[1].get("extra_content"), None);
    assert_eq!(calls[2].get("extra_content"), None);
    assert_eq!(sent[0]["content"], "");
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

#[test]
fn an_operators_members_win() {
    let url = Url::parse("http://localhost/v1").expect("a URL");
    let extra = json!({"top_k": 5, "stream_options": {}});
    let Value::Object(extra) = extra else {
        panic!("an object");
    };

    let body = Requests::new("local", &url, extra, &[]).body(&call(Vec::new()), &[]);

    assert_eq!(body["top_k"], 5);
    assert_eq!(body["stream_options"], json!({}));
}
