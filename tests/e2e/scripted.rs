//! A model that plays a script, as `docs/scripted-provider.md` has it.

use serde_json::{Value, json};

use super::support::api::{Api, text};
use super::support::hango::Hango;
use super::support::home::{Home, KEY};

const DOCUMENT: &str = include_str!("../../docs/scripted-provider.md");

/// The document's example that begins with this line.
fn example(begin: &str) -> &'static str {
    let behind = DOCUMENT.split("```toml\n");
    let mut examples = behind.filter_map(|block| Some(block.split_once("```")?.0));
    let found = examples.find(|example| example.starts_with(begin));
    found.expect("it is in the document")
}

fn last_text(messages: &[Value]) -> String {
    let last = messages.last().expect("there are messages");
    text(&last["content"][0]["text"])
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_script_is_played_as_the_document_says() {
    let home = Home::of_server();
    home.write_config(example("# hango.toml"));
    std::fs::write(home.path().join("weather.toml"), example("# weather.toml")).expect("written");
    let mut hango = Hango::start(&home, &["serve"]);
    let api = Api::of(&hango.address().await).with_key(Some(KEY));
    let agent = json!({"slug": "played", "provider": "played", "model": "any"});
    api.post("/v1/agents", &agent).await.expect(201);
    let session = async || {
        let made = api.post("/v1/sessions", &json!({"agent": "played"})).await;
        text(&made.expect(201)["id"])
    };

    let asked = session().await;
    let run = api.start_run(&asked, "How is the WEATHER?").await;
    let ended = api.ended(&run).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    let messages = api.messages(&asked).await;
    assert_eq!(messages.len(), 4, "{messages:#?}");
    let kinds: Vec<_> = messages[1]["content"]
        .as_array()
        .expect("there are blocks")
        .iter()
        .map(|block| text(&block["type"]))
        .collect();
    assert_eq!(kinds, ["thinking", "text", "tool_use"]);
    assert_eq!(messages[3]["usage"]["input_tokens"], 90);
    let said = last_text(&messages);
    assert!(
        said.starts_with("At 20") && said.ends_with(" it rains."),
        "{said}"
    );

    // Two failures, and the third try.
    let asked = session().await;
    let run = api.start_run(&asked, "Hello!").await;
    let ended = api.ended(&run).await;
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(last_text(&api.messages(&asked).await), "You said: Hello!");
}
