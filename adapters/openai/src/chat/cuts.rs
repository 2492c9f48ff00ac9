//! A stream as a server sends it, cut off and split behind every byte of it.

use hango_domain::conversation::{Block, StopReason};
use hango_provider_http::{Origin, testing};

use super::asked::Asked;
use super::mapping::Mapping;

/// Comments, reasoning, text beyond ASCII, an event over two lines, and two calls side by side.
const RECORDED: &str = include_str!("cuts/recorded.sse");

fn mapping() -> Mapping {
    Mapping::new(Origin::named("local"), Asked::default())
}

#[tokio::test]
async fn the_recorded_stream_is_four_kilobytes_and_asks_for_two_tools() {
    let reply = testing::reply([RECORDED.into()], mapping()).await;

    let reply = reply.expect("an answer");
    assert!(RECORDED.len() >= 4 << 10, "{} bytes", RECORDED.len());
    assert_eq!(reply.stop_reason, StopReason::ToolUse);
    let inputs = reply.content.iter().filter_map(|block| match block {
        Block::ToolUse { name, input, .. } => Some((name.as_str(), input.len())),
        _ => None,
    });
    let inputs: Vec<_> = inputs.collect();
    assert_eq!(inputs, [("get_time", 1), ("http_fetch", 2)]);
    assert_eq!(reply.usage.output_tokens, 65);
}

#[tokio::test]
async fn a_stream_that_is_cut_off_anywhere_is_never_mistaken_for_another() {
    testing::is_never_mistaken(RECORDED, mapping).await;
}

#[tokio::test]
async fn t1_to_t6_a_stream_says_the_same_wherever_it_is_split() {
    testing::says_the_same_wherever_it_is_split(RECORDED, mapping).await;
}
