//! Answers: what was said arrives, as it is said, and has an end.

use std::sync::Arc;

use futures::StreamExt;
use futures::future::join_all;
use hango_domain::conversation::{Block, ProviderData, StopReason};
use hango_domain::model::StreamEvent;
use hango_ports::Provider;
use serde_json::{Map, json};

use super::asking::{ask, assistant, call, hello, spoken, user};
use super::{Act, Called, Play, Spoken};
use crate::other_side::in_time;

fn calls() -> Vec<Called> {
    let call = |id: &str, number: &str| Called {
        id: id.to_owned(),
        name: "look_up_order".to_owned(),
        input: Map::from_iter([("order_number".to_owned(), json!(number))]),
    };
    vec![call("call_a", "1234567"), call("call_b", "7654321")]
}

/// The text is all there, in order, with one reason of its end and what it cost.
pub async fn an_answer_is_whole_with_its_one_stop<G>(
    stage: impl AsyncFn(Play) -> (Arc<dyn Provider>, G),
) {
    let said = Spoken::text(&["Good ", "morning, ", "caf\u{e9} ", "\u{1f600}."]);
    let (provider, _guard) = stage(Play::of([said.act()])).await;

    let came = ask(&*provider, hello()).await;

    assert_eq!(came.stops(), 1);
    assert_eq!(came.text(), said.words.concat());
    let reply = came.outcome.expect("a whole answer");
    assert_eq!(spoken(&reply), said.whole());
}

/// Whoever watches sees the words before the answer has ended.
pub async fn words_are_passed_on_as_they_come<G>(
    stage: impl AsyncFn(Play) -> (Arc<dyn Provider>, G),
) {
    let words = ["One ", "moment ", "please "].map(str::to_owned).to_vec();
    let (provider, _guard) = stage(Play::of([Act::Hangs(words.clone())])).await;

    let mut stream = in_time("the answer's beginning", provider.stream(hello()))
        .await
        .expect("it begins");
    let mut text = String::new();
    while text != words.concat() {
        let event = in_time("the words", stream.next()).await;
        match event.expect("it goes on").expect("it does well") {
            StreamEvent::Text { text: more, .. } => text.push_str(&more),
            StreamEvent::Stop(_) => panic!("it has not ended"),
            _ => {}
        }
        assert!(words.concat().starts_with(&text), "nobody said {text:?}");
    }
}

/// Calls come behind the text, each begun before its arguments, in the order of the answer.
pub async fn tool_calls_arrive_whole_and_in_their_order<G>(
    stage: impl AsyncFn(Play) -> (Arc<dyn Provider>, G),
) {
    let said = Spoken {
        calls: calls(),
        stop: StopReason::ToolUse,
        ..Spoken::text(&["Let me ", "look."])
    };
    let (provider, _guard) = stage(Play::of([said.act()])).await;

    let came = ask(&*provider, hello()).await;

    assert_eq!(came.stops(), 1);
    let reply = came.outcome.expect("a whole answer");
    assert_eq!(spoken(&reply), said.whole());
    assert!(reply.invalid_inputs.is_empty(), "{reply:?}");
}

/// A call without arguments has none: an empty object.
pub async fn a_call_without_arguments_is_one<G>(
    stage: impl AsyncFn(Play) -> (Arc<dyn Provider>, G),
) {
    let mut said = Spoken::text(&[]);
    said.calls = calls();
    said.calls.truncate(1);
    said.calls[0].input.clear();
    said.stop = StopReason::ToolUse;
    let (provider, _guard) = stage(Play::of([said.act()])).await;

    let reply = ask(&*provider, hello()).await.outcome;

    assert_eq!(spoken(&reply.expect("a whole answer")), said.whole());
}

/// An answer at its length limit says so: its calls must not be executed.
pub async fn an_answer_that_was_cut_off_says_so<G>(
    stage: impl AsyncFn(Play) -> (Arc<dyn Provider>, G),
) {
    let said = Spoken {
        stop: StopReason::MaxTokens,
        ..Spoken::text(&["It was ", "a dark "])
    };
    let (provider, _guard) = stage(Play::of([said.act()])).await;

    let reply = ask(&*provider, hello()).await.outcome;

    assert_eq!(spoken(&reply.expect("an answer")), said.whole());
}

/// Whatever a conversation holds, of another provider too, is taken or left out, but never in the way.
pub async fn a_conversation_with_every_kind_of_block_is_answered<G>(
    stage: impl AsyncFn(Play) -> (Arc<dyn Provider>, G),
) {
    let elsewhere = |data| ProviderData {
        provider: "another-one".to_owned(),
        model: "another-model".to_owned(),
        data,
    };
    let Called { id, name, input } = calls().remove(0);
    let thought = vec![
        Block::Thinking {
            thinking: "An order.".to_owned(),
            signature: "c2lnbmVk".to_owned(),
            provider_data: Some(elsewhere(json!({}))),
        },
        Block::RedactedThinking {
            data: "aGlkZGVu".to_owned(),
            provider_data: None,
        },
        Block::Provider(elsewhere(json!({"type": "server_tool_use"}))),
        Block::Text {
            text: "Let me look.".to_owned(),
            provider_data: Some(elsewhere(json!({"citations": []}))),
        },
        Block::ToolUse {
            id: id.clone(),
            name,
            input,
            provider_data: Some(elsewhere(json!(1))),
        },
    ];
    let found = vec![
        Block::ToolResult {
            tool_use_id: id,
            content: "no such order".to_owned(),
            for_user: Some("There is none.".to_owned()),
            is_error: true,
        },
        Block::text("Try again."),
    ];
    let asked = call([
        user(vec![Block::text("Where is it?")]),
        assistant(thought),
        user(found),
    ]);
    let said = Spoken::text(&["Nowhere."]);
    let (provider, _guard) = stage(Play::of([said.act()])).await;

    let reply = ask(&*provider, asked).await.outcome;

    assert_eq!(spoken(&reply.expect("a whole answer")), said.whole());
}

/// One provider serves every run of the process.
pub async fn calls_at_the_same_time_get_an_answer_each<G>(
    stage: impl AsyncFn(Play) -> (Arc<dyn Provider>, G),
) {
    let answers: Vec<Spoken> = (10..26)
        .map(|n| {
            let (first, last) = (format!("{n} "), format!("times {n}"));
            Spoken::text(&[&first, "is ", &last])
        })
        .collect();
    let (provider, _guard) = stage(Play::of(answers.iter().map(Spoken::act))).await;

    let came = join_all(answers.iter().map(|_| ask(&*provider, hello()))).await;

    let mut told: Vec<String> = came.iter().map(super::asking::Came::text).collect();
    told.sort();
    let said: Vec<String> = answers.iter().map(|said| said.words.concat()).collect();
    assert_eq!(told, said);
    assert!(came.iter().all(|came| came.outcome.is_ok()));
}

/// People are told which protocol it is.
pub async fn it_names_its_protocol<G>(stage: impl AsyncFn(Play) -> (Arc<dyn Provider>, G)) {
    let (provider, _guard) = stage(Play::of([])).await;

    let kind = provider.kind();

    assert!(!kind.trim().is_empty());
    assert_eq!(provider.kind(), kind);
}
