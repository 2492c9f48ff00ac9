//! A stream as the API sends it, cut off and split behind every byte of it.

use hango_domain::conversation::{Block, StopReason};
use hango_provider_http::{Origin, testing};

use super::mapping::Mapping;

/// Reasoning with a summary, text beyond ASCII, and two calls side by side.
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
    let blocks = reply.content.iter().map(|block| match block {
        Block::Thinking { signature, .. } => format!("thinking {}", signature.len()),
        Block::Text { text, .. } => text.clone(),
        Block::ToolUse { id, input, .. } => format!("{id} {}", input.len()),
        Block::RedactedThinking { .. } | Block::ToolResult { .. } | Block::Provider(_) => {
            "another".to_owned()
        }
    });
    let expected = [
        "thinking 120",
        "Un caf\u{e9} \u{e0} Z\u{fc}rich \u{1f600}, moment.",
        "call_Zt1hQm 1",
        "call_8cVwPk 2",
    ];
    assert_eq!(blocks.collect::<Vec<_>>(), expected);
    assert_eq!(reply.usage.output_tokens, 165);
}

#[tokio::test]
async fn r5_a_stream_that_is_cut_off_anywhere_is_never_mistaken_for_another() {
    testing::is_never_mistaken(RECORDED, mapping).await;
}

#[tokio::test]
async fn t1_to_t6_a_stream_says_the_same_wherever_it_is_split() {
    testing::says_the_same_wherever_it_is_split(RECORDED, mapping).await;
}
