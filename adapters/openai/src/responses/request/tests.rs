use std::sync::Arc;

use hango_domain::conversation::{repair, validate};
use hango_domain::tool::schema;
use hango_provider_http::testing::call;

use super::*;

mod history;

fn requests() -> Requests {
    Requests::new("local", Map::new(), &[])
}

/// The items that a conversation is sent as, after the strictest reading of them.
fn input(content: Vec<(Role, Vec<Block>)>) -> Value {
    let input = requests().body(&call(content))["input"].clone();
    check(&input);
    input
}

/// What the API refuses, refused.
fn check(input: &Value) {
    let items = input.as_array().expect("a list");
    let mut open = Vec::new();
    let mut ids = Vec::new();
    for (at, item) in items.iter().enumerate() {
        match item["type"].as_str().expect("a type") {
            "message" => assert!(!item["content"].as_array().expect("parts").is_empty()),
            "function_call" => {
                let id = item["call_id"].as_str().expect("an id");
                assert!(!ids.contains(&id), "{id} is there twice: {input:#}");
                assert!(item["arguments"].is_string(), "{input:#}");
                ids.push(id);
                open.push(id);
            }
            "function_call_output" => {
                let id = item["call_id"].as_str().expect("an id");
                let call = open.iter().position(|open| *open == id);
                open.remove(call.expect("an output of a call"));
                assert!(item["output"].is_string(), "{input:#}");
            }
            "reasoning" => {
                let next = items.get(at + 1).map(|next| &next["type"]);
                let next = next.and_then(Value::as_str);
                let led_to = ["message", "function_call", "reasoning", "web_search_call"];
                assert!(next.is_some_and(|next| led_to.contains(&next)), "{input:#}");
                assert!(item["summary"].is_array(), "{input:#}");
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?} have no output");
}

fn hi() -> (Role, Vec<Block>) {
    (Role::User, vec![Block::text("hi")])
}

fn data(provider: &str, model: &str, data: Value) -> ProviderData {
    ProviderData {
        provider: provider.to_owned(),
        model: model.to_owned(),
        data,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "blocks have it so")]
fn own(members: Value) -> Option<ProviderData> {
    Some(data("local", "m", members))
}

fn tool_use(id: &str, provider_data: Option<ProviderData>) -> Block {
    Block::ToolUse {
        id: id.to_owned(),
        name: "get_time".to_owned(),
        input: Map::from_iter([("timezone".to_owned(), "UTC".into())]),
        provider_data,
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

fn thinking(signature: &str, provider_data: Option<ProviderData>) -> Block {
    Block::Thinking {
        thinking: "Hm.".to_owned(),
        signature: signature.to_owned(),
        provider_data,
    }
}

#[test]
fn a_plain_question_asks_for_a_stream_and_leaves_nothing_on_the_server() {
    let body = requests().body(&call(vec![hi()]));

    let text = json!([{"type": "input_text", "text": "hi"}]);
    let expected = json!({
        "model": "m",
        "input": [{"type": "message", "role": "user", "content": text}],
        "include": ["reasoning.encrypted_content"],
        "store": false,
        "stream": true,
    });
    assert_eq!(Value::Object(body), expected);
}

#[test]
fn models_that_do_not_reason_are_not_asked_for_their_reasoning() {
    let asks = |model: &str| {
        let mut call = call(vec![hi()]);
        call.model = model.to_owned();
        requests().body(&call).contains_key("include")
    };

    for model in [
        "gpt-4o",
        "gpt-4.1-mini",
        "ft:gpt-4o:acme",
        "gpt-5-chat-latest",
    ] {
        assert!(!asks(model), "{model}");
    }
    for model in [
        "gpt-5",
        "gpt-5.1",
        "o4-mini",
        "openai/gpt-oss-120b",
        "grok-4",
    ] {
        assert!(asks(model), "{model}");
    }
}

#[test]
fn the_system_prompt_is_the_instructions() {
    let mut call = call(vec![hi()]);
    call.system = vec![
        SystemBlock::new("Be brief."),
        SystemBlock::new(" "),
        SystemBlock::new("Plan first."),
    ];

    let body = requests().body(&call);

    assert_eq!(body["instructions"], "Be brief.\n\nPlan first.");
}

#[test]
fn tools_and_limits_are_sent_when_there_are_any() {
    let mut call = call(vec![hi()]);
    call.tools = vec![ToolDef {
        name: "get_time".to_owned(),
        description: "Tells the time.".to_owned(),
        parameters: schema::object([]),
    }];
    call.max_tokens = Some(64);
    call.temperature = Some(0.5);

    let body = requests().body(&call);
    let quirky = Requests::new("local", Map::new(), &[Quirk::NoTemperature]).body(&call);

    let function = json!({
        "type": "function",
        "name": "get_time",
        "description": "Tells the time.",
        "parameters": schema::object([]),
        "strict": false,
    });
    assert_eq!(body["tools"], json!([function]));
    assert_eq!(body["max_output_tokens"], 64);
    assert_eq!(body["temperature"], 0.5);
    assert!(!quirky.contains_key("temperature"));
}

#[test]
fn extra_members_win_and_tools_of_the_server_stand_behind_ours() {
    let mut call = call(vec![hi()]);
    call.tools = vec![ToolDef {
        name: "get_time".to_owned(),
        description: "Tells the time.".to_owned(),
        parameters: schema::object([]),
    }];
    let Value::Object(extra) = json!({
        "include": [], "store": true, "reasoning": {"effort": "low", "summary": "auto"},
        "tools": [{"type": "web_search"}],
    }) else {
        unreachable!()
    };

    let body = Requests::new("local", extra, &[]).body(&call);

    assert_eq!(
        (&body["include"], &body["store"]),
        (&json!([]), &json!(true))
    );
    assert_eq!(body["reasoning"]["effort"], "low");
    assert_eq!(body["tools"][0]["name"], "get_time");
    assert_eq!(body["tools"][1], json!({"type": "web_search"}));
}
