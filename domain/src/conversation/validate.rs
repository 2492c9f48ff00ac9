//! Whether a conversation may be sent to a provider.
//!
//! The rules are those of the strictest provider, so a conversation that is legal here is legal
//! everywhere:
//!
//! * users and assistant speak in turn; a user is the first and the last to speak;
//! * every message says something, and no text in it is blank; reasoning alone says nothing;
//! * each tool call is answered exactly once, in the next message, in the order of the calls, before
//!   any other block; nothing else is answered;
//! * no id of a call is used twice in the conversation, and none is empty;
//! * each tool name is one that providers take back;
//! * what was left of a broken answer is not in it.
//!
//! How ids are spelled and how long they may be differs too much between providers; their adapters see
//! to that.

use std::collections::HashSet;

use thiserror::Error;

use super::{Block, Message, Role};
use crate::tool::is_tool_name;

/// Why a conversation may not be sent. `message` counts the messages given, from 0.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Illegal {
    /// There is no message.
    #[error("there is nothing to send")]
    Nothing,
    /// It is what was left of a broken answer.
    #[error("message {message} is partial")]
    Partial {
        /// The message.
        message: usize,
    },
    /// It is the other side's turn to speak; a user begins.
    #[error("message {message} is out of turn")]
    OutOfTurn {
        /// The message.
        message: usize,
    },
    /// It has no block, or only reasoning.
    #[error("message {message} says nothing")]
    EmptyMessage {
        /// The message.
        message: usize,
    },
    /// A text of it is empty or only white space.
    #[error("message {message} has a blank text in block {block}")]
    BlankText {
        /// The message.
        message: usize,
        /// The block, counting from 0.
        block: usize,
    },
    /// A block of it is one that its role never says.
    #[error("message {message} has a block {block} that its role never says")]
    Misplaced {
        /// The message.
        message: usize,
        /// The block, counting from 0.
        block: usize,
    },
    /// A call of it has no id.
    #[error("message {message} has a tool call without an id")]
    EmptyId {
        /// The message.
        message: usize,
    },
    /// A call of it has the id of an earlier call.
    #[error("message {message} uses the tool call id {id:?} again")]
    DuplicateId {
        /// The message.
        message: usize,
        /// The id.
        id: String,
    },
    /// A call of it names a tool in a way that no provider takes back.
    #[error("message {message} has the illegal tool name {name:?}")]
    ToolName {
        /// The message.
        message: usize,
        /// The name.
        name: String,
    },
    /// A call of it has no result where it belongs.
    #[error("message {message} has the tool call {id:?} without a result")]
    Unanswered {
        /// The message with the call.
        message: usize,
        /// The call.
        id: String,
    },
    /// A result in it answers no call, answers one again, or does not stand where it belongs.
    #[error("message {message} has an unexpected result of the tool call {id:?}")]
    UnexpectedResult {
        /// The message with the result.
        message: usize,
        /// The call that it names.
        id: String,
    },
    /// A user has to speak last.
    #[error("the assistant speaks last")]
    AssistantLast,
}

/// Tells the first thing that keeps `messages` from being sent to a provider, if there is one.
pub fn validate(messages: &[Message]) -> Result<(), Illegal> {
    let mut ids = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    let mut speaker = Role::User;
    for (index, message) in messages.iter().enumerate() {
        if message.partial {
            return Err(Illegal::Partial { message: index });
        }
        if message.role != speaker {
            return Err(Illegal::OutOfTurn { message: index });
        }
        check_blocks(index, message)?;
        check_results(index, message, &open)?;
        open = message
            .content
            .iter()
            .filter_map(Block::tool_use_id)
            .collect();
        if let Some(id) = open.iter().find(|id| !ids.insert(**id)) {
            let id = (*id).to_owned();
            return Err(Illegal::DuplicateId { message: index, id });
        }
        speaker = match speaker {
            Role::User => Role::Assistant,
            Role::Assistant => Role::User,
        };
    }
    match (messages.is_empty(), speaker) {
        (true, _) => Err(Illegal::Nothing),
        (false, Role::User) => Err(Illegal::AssistantLast),
        (false, Role::Assistant) => Ok(()),
    }
}

/// Whether `text` is empty or only white space.
#[must_use]
pub fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Whether a message of these blocks would be empty for a provider that knows no reasoning.
pub(super) fn is_silent(content: &[Block]) -> bool {
    content.iter().all(|block| match block {
        Block::Thinking { .. } | Block::RedactedThinking { .. } => true,
        Block::Text { .. }
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Provider(_) => false,
    })
}

/// Whether `role` ever says such a block.
pub(super) fn belongs_to(role: Role, block: &Block) -> bool {
    match (role, block) {
        (_, Block::Text { .. } | Block::Provider(_))
        | (Role::User, Block::ToolResult { .. })
        | (
            Role::Assistant,
            Block::ToolUse { .. } | Block::Thinking { .. } | Block::RedactedThinking { .. },
        ) => true,
        (
            Role::User,
            Block::ToolUse { .. } | Block::Thinking { .. } | Block::RedactedThinking { .. },
        )
        | (Role::Assistant, Block::ToolResult { .. }) => false,
    }
}

fn check_blocks(index: usize, message: &Message) -> Result<(), Illegal> {
    if is_silent(&message.content) {
        return Err(Illegal::EmptyMessage { message: index });
    }
    for (place, block) in message.content.iter().enumerate() {
        if !belongs_to(message.role, block) {
            return Err(Illegal::Misplaced {
                message: index,
                block: place,
            });
        }
        match block {
            Block::Text { text, .. } if is_blank(text) => {
                return Err(Illegal::BlankText {
                    message: index,
                    block: place,
                });
            }
            Block::ToolUse { id, .. } if id.is_empty() => {
                return Err(Illegal::EmptyId { message: index });
            }
            Block::ToolUse { name, .. } if !is_tool_name(name) => {
                let name = name.clone();
                return Err(Illegal::ToolName {
                    message: index,
                    name,
                });
            }
            Block::Text { .. }
            | Block::ToolUse { .. }
            | Block::ToolResult { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::Provider(_) => {}
        }
    }
    Ok(())
}

/// The n-th block has to answer the n-th open call, and no block after those may be a result.
fn check_results(index: usize, message: &Message, open: &[&str]) -> Result<(), Illegal> {
    let mut answered = 0;
    for (place, block) in message.content.iter().enumerate() {
        let Block::ToolResult { tool_use_id, .. } = block else {
            continue;
        };
        if open.get(place) != Some(&tool_use_id.as_str()) {
            let id = tool_use_id.clone();
            return Err(Illegal::UnexpectedResult { message: index, id });
        }
        answered += 1;
    }
    match open.get(answered) {
        None => Ok(()),
        Some(id) => Err(Illegal::Unanswered {
            message: index - 1,
            id: (*id).to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests;
