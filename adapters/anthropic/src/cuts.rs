//! A stream as the API sends it, cut off and split behind every byte of it.

use hango_domain::conversation::{Block, StopReason};
use hango_provider_http::{Origin, testing};

use crate::mapping::Mapping;

/// Reasoning of both kinds, text beyond ASCII, a call of the server's own tool, and two of ours.
const RECORDED: &str = include_str!("cuts/recorded.sse");

fn mapping() -> Mapping {
    Mapping::new(Origin::named("local"), "m")
}

#[tokio::test]
async fn the_recorded_stream_is_four_kilobytes_and_asks_for_two_tools() {
    let reply = testing::reply([RECORDED.into()], mapping()).await;

    let reply = reply.expect("an answer");
    assert!(RECORDED.len() >= 4 << 10, "{} bytes", RECORDED.len());
    assert_eq!(reply.stop_reason, StopReason::ToolUse);
    let kinds = reply.content.iter().map(|block| match block {
        Block::Thinking { .. } => "thinking".to_owned(),
        Block::RedactedThinking { .. } => "redacted".to_owned(),
        Block::Text { text, .. } => text.clone(),
        Block::Provider(data) => data.data["input"].to_string(),
        Block::ToolUse { name, input, .. } => format!("{name} {}", input.len()),
        Block::ToolResult { .. } => "result".to_owned(),
    });
    let expected = [
        "thinking",
        "redacted",
        "Un caf\u{e9} \u{e0} Z\u{fc}rich \u{1f600}, moment.",
        "{\"query\":\"time Z\u{fc}rich\"}",
        "get_time 1",
        "http_fetch 2",
    ];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
    assert_eq!(reply.usage.output_tokens, 165);
}

#[tokio::test]
async fn a_stream_that_is_cut_off_anywhere_is_never_mistaken_for_another() {
    testing::is_never_mistaken(RECORDED, mapping).await;
}

#[tokio::test]
async fn t1_to_t6_a_stream_says_the_same_wherever_it_is_split() {
    testing::says_the_same_wherever_it_is_split(RECORDED, mapping).await;
}
