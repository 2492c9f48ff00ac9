//! Any bytes as the answer of a server: what must hold of what hango makes of them.
//!
//! * It is the same however the bytes are cut.
//! * An answer can be sent back: a conversation with it is legal, once its calls have their results.
//! * A failure keeps no calls; so a call is there only if the stop came.

use bytes::Bytes;
use hango_domain::conversation::{Block, Role, validate};
use hango_domain::model::{ModelFailure, ModelReply};
use hango_provider_http::{Dialect, testing};

#[path = "cut.rs"]
mod cut;

thread_local! {
    static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
}

/// Panics if it does not hold of these bytes.
pub(crate) fn holds<D: Dialect>(bytes: &[u8], dialect: impl Fn() -> D) {
    let whole = reply(&[bytes], dialect());
    let cut = reply(&cut::pieces(bytes), dialect());

    assert_eq!(cut, whole);
    match whole {
        Ok(reply) => can_be_sent_back(reply),
        Err(failure) => {
            let is_call = |block: &Block| block.tool_use_id().is_some();
            assert!(!failure.partial.iter().any(is_call), "{failure:?}");
            assert!(failure.message.len() <= 2000, "{failure:?}");
        }
    }
}

fn reply<D: Dialect>(pieces: &[&[u8]], dialect: D) -> Result<ModelReply, ModelFailure> {
    let pieces: Vec<_> = pieces.iter().map(|piece| Bytes::copy_from_slice(piece)).collect();
    RUNTIME.with(|runtime| runtime.block_on(testing::reply(pieces, dialect)))
}

fn can_be_sent_back(mut reply: ModelReply) {
    if reply.is_empty_answer() {
        return;
    }
    for id in reply.invalid_inputs.keys() {
        let is_its = |block: &Block| block.tool_use_id() == Some(id);
        assert!(reply.content.iter().any(is_its), "{reply:?}");
    }
    let mut results = Vec::new();
    for block in &mut reply.content {
        if let Block::ToolUse { id, name, .. } = block {
            // A layer mends the names.
            "f".clone_into(name);
            results.push(Block::ToolResult {
                tool_use_id: id.clone(),
                content: "done".to_owned(),
                for_user: None,
                is_error: false,
            });
        }
    }
    results.push(Block::text("go on"));
    let conversation = testing::call(vec![
        (Role::User, vec![Block::text("hi")]),
        (Role::Assistant, reply.content),
        (Role::User, results),
    ]);
    assert_eq!(validate(&conversation.messages), Ok(()));
}
