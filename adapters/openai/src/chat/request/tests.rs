use hango_domain::conversation::{Block, Role};
use hango_domain::tool::schema;
use hango_provider_http::testing::call;

use super::*;

fn requests(url: &str, quirks: &[Quirk]) -> Requests {
    let url = Url::parse(url).expect("a URL");
    Requests::new("local", &url, Map::new(), quirks)
}

fn body(quirks: &[Quirk], call: &ModelCall) -> Map<String, Value> {
    requests("http://localhost/v1", quirks).body(call)
}

fn hello() -> ModelCall {
    call(vec![(Role::User, vec![Block::text("hi")])])
}

#[test]
fn a_plain_question_asks_for_a_stream_with_usage() {
    let body = body(&[], &hello());

    let expected = json!({
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(Value::Object(body), expected);
}

#[test]
fn o31_and_l24_usage_is_not_asked_for_where_that_is_refused() {
    let body = body(&[Quirk::NoStreamOptions], &hello());

    assert_eq!(body.get("stream_options"), None);
    assert_eq!(body["stream"], true);
}

#[test]
fn tools_and_limits_are_sent_when_there_are_any() {
    let mut call = hello();
    call.tools = vec![ToolDef {
        name: "get_time".to_owned(),
        description: "Tells the time.".to_owned(),
        parameters: schema::object([]),
    }];
    call.max_tokens = Some(64);
    call.temperature = Some(0.5);

    let sent = body(&[], &call);

    let function = json!({
        "name": "get_time",
        "description": "Tells the time.",
        "parameters": schema::object([]),
    });
    assert_eq!(
        sent["tools"],
        json!([{"type": "function", "function": function}])
    );
    assert_eq!(sent["max_tokens"], 64);
    assert_eq!(sent["temperature"], 0.5);
    let without = body(&[Quirk::NoTemperature], &call);
    assert_eq!(without.get("temperature"), None);
}

#[test]
fn o40_the_limit_has_the_name_that_the_server_knows() {
    let mut call = hello();
    call.max_tokens = Some(64);
    let newer = "max_completion_tokens";
    let table = [
        ("http://localhost/v1", None, "max_tokens"),
        (
            "http://localhost/v1",
            Some(Quirk::MaxCompletionTokens),
            newer,
        ),
        ("https://api.openai.com/v1", None, newer),
        ("https://eu.api.openai.com/v1", None, newer),
        ("https://not-api.openai.com/v1", None, "max_tokens"),
        (
            "https://api.openai.com/v1",
            Some(Quirk::MaxTokens),
            "max_tokens",
        ),
    ];

    for (url, quirk, expected) in table {
        let body = requests(url, quirk.as_slice()).body(&call);

        let names: Vec<_> = body
            .keys()
            .filter(|name| name.starts_with("max_"))
            .collect();
        assert_eq!(names, [expected], "{url} {quirk:?}");
        assert_eq!(body[expected], 64);
    }
}

#[test]
fn quirks_of_the_conversation_are_heard() {
    let id = || "call_of_the_tool".to_owned();
    let asks = Block::ToolUse {
        id: id(),
        name: "get_time".to_owned(),
        input: Map::new(),
        provider_data: None,
    };
    let answers = Block::ToolResult {
        tool_use_id: id(),
        content: "noon".to_owned(),
        for_user: None,
        is_error: false,
    };
    let mut call = call(vec![
        (Role::User, vec![Block::text("hi")]),
        (Role::Assistant, vec![asks]),
        (Role::User, vec![answers]),
    ]);
    call.tools = vec![ToolDef {
        name: "get_time".to_owned(),
        description: String::new(),
        parameters: schema::object([]),
    }];
    let sent = |quirks: &[Quirk]| body(quirks, &call)["messages"].clone();

    let plain = sent(&[]);
    let odd = sent(&[
        Quirk::NineCharacterIds,
        Quirk::NamedResults,
        Quirk::WantsReasoning,
    ]);

    assert_eq!(plain[2]["tool_call_id"], id());
    assert_eq!(odd[2]["tool_call_id"].as_str().map(str::len), Some(9));
    assert_eq!(
        (plain[2].get("name"), &odd[2]["name"]),
        (None, &json!("get_time"))
    );
    assert_eq!(odd[1]["reasoning_content"], "");
    let both = [Quirk::WantsReasoning, Quirk::NoReasoning];
    assert_eq!(sent(&both)[1].get("reasoning_content"), None);
    assert_eq!(sent(&[Quirk::ThoughtSignatures])[1].get("tool_calls"), None);
}

#[test]
fn an_operators_members_win() {
    let url = Url::parse("http://localhost/v1").expect("a URL");
    let extra = json!({"top_k": 5, "stream_options": {}});
    let Value::Object(extra) = extra else {
        panic!("an object");
    };

    let body = Requests::new("local", &url, extra, &[]).body(&hello());

    assert_eq!(body["top_k"], 5);
    assert_eq!(body["stream_options"], json!({}));
}
