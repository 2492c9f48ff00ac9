//! Conversations for tests: short constructors, and generators of legal and of arbitrary ones.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Block, Message, NewMessage, ProviderData, Role};
use crate::{MessageId, SessionId, Timestamp};

pub(super) fn user(content: impl Into<Vec<Block>>) -> NewMessage {
    NewMessage::user(MessageId(Uuid::nil()), content.into())
}

pub(super) fn assistant(content: impl Into<Vec<Block>>) -> NewMessage {
    NewMessage {
        role: Role::Assistant,
        ..user(content)
    }
}

pub(super) fn partial(message: NewMessage) -> NewMessage {
    NewMessage {
        partial: true,
        ..message
    }
}

/// The messages as a session stores them: numbered from 1.
pub(super) fn conversation(messages: impl IntoIterator<Item = NewMessage>) -> Vec<Message> {
    let session = SessionId(Uuid::nil());
    (1_u64..)
        .zip(messages)
        .map(|(seq, mut message)| {
            message.id = MessageId(Uuid::from_u128(seq.into()));
            message.stored(session, None, seq, Timestamp::from_micros(0))
        })
        .collect()
}

pub(super) fn call(id: &str, name: &str) -> Block {
    Block::ToolUse {
        id: id.to_owned(),
        name: name.to_owned(),
        input: Map::new(),
        provider_data: None,
    }
}

pub(super) fn result(id: &str) -> Block {
    Block::ToolResult {
        tool_use_id: id.to_owned(),
        content: "42".to_owned(),
        for_user: None,
        is_error: false,
    }
}

pub(super) fn thinking(text: &str) -> Block {
    Block::Thinking {
        thinking: text.to_owned(),
        signature: String::new(),
        provider_data: None,
    }
}

/// Conversations that follow the rules by construction.
pub(super) fn legal_conversations() -> impl Strategy<Value = Vec<Message>> {
    let turn = (0..4_usize, any::<bool>());
    (vec(turn, 0..6), "[a-z]{1,4}").prop_map(|(turns, text)| {
        let mut messages = vec![user([Block::text(&text)])];
        for (turn, (calls, comment)) in turns.into_iter().enumerate() {
            let ids: Vec<String> = (0..calls).map(|call| format!("c{turn}_{call}")).collect();
            let mut asks: Vec<Block> = ids.iter().map(|id| call(id, "f")).collect();
            let mut answers: Vec<Block> = ids.iter().map(|id| result(id)).collect();
            if comment || calls == 0 {
                asks.insert(0, Block::text(&text));
                answers.push(Block::text(&text));
            }
            messages.push(assistant(asks));
            messages.push(user(answers));
        }
        conversation(messages)
    })
}

/// Conversations that follow no rule at all, of few ids so that they collide.
pub(super) fn any_conversation() -> impl Strategy<Value = Vec<Message>> {
    vec(any_message(), 0..10).prop_map(conversation)
}

fn any_message() -> impl Strategy<Value = NewMessage> {
    let role = select(vec![Role::User, Role::Assistant]);
    (role, vec(any_block(), 0..5), prop::bool::weighted(0.1)).prop_map(
        |(role, content, partial)| NewMessage {
            role,
            partial,
            ..user(content)
        },
    )
}

fn any_block() -> impl Strategy<Value = Block> {
    let id = || select(vec!["a", "b", "a_2", "call", ""]);
    let name = select(vec!["f", "read file", "", "größe"]);
    prop_oneof![
        select(vec!["", " \n", "hi", "so"]).prop_map(Block::text),
        (id(), name).prop_map(|(id, name)| call(id, name)),
        id().prop_map(result),
        Just(thinking("hm")),
        Just(Block::RedactedThinking {
            data: "x".to_owned(),
            provider_data: None,
        }),
        Just(Block::Provider(ProviderData {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            data: Value::Null,
        })),
    ]
}
