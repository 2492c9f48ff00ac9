//! One message of a session.

use serde::{Deserialize, Serialize};

use super::{Block, StopReason, Usage};
use crate::{MessageId, RunId, SessionId, Timestamp};

/// Who speaks. Tool results travel in a user's message.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person, or tools answering.
    User,
    /// The model, or hango explaining why a run ended.
    Assistant,
}

/// A message that is about to be stored; its writer chose the id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewMessage {
    /// Chosen by the writer, so that a repeat of the write is recognised.
    pub id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// What is said; never empty.
    pub content: Vec<Block>,
    /// Why the model stopped; `None` for a user's message.
    pub stop_reason: Option<StopReason>,
    /// What the message cost; `None` for a user's message.
    pub usage: Option<Usage>,
    /// Whether it is what was left of a broken answer: people see it, no provider ever does.
    pub partial: bool,
}

/// A message as it is stored; never changed again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Its identity.
    pub id: MessageId,
    /// The conversation.
    pub session_id: SessionId,
    /// The run that brought it; `None` when a client appended it without a run.
    pub run_id: Option<RunId>,
    /// Its place in the session: 1, 2, 3 … without gaps.
    pub seq: u64,
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Vec<Block>,
    /// Why the model stopped; `None` for a user's message.
    pub stop_reason: Option<StopReason>,
    /// What the message cost; `None` for a user's message.
    pub usage: Option<Usage>,
    /// Whether it is what was left of a broken answer: people see it, no provider ever does.
    pub partial: bool,
    /// When it was stored, by the store's clock.
    pub created_at: Timestamp,
}

impl NewMessage {
    /// A user's message.
    #[must_use]
    pub fn user(id: MessageId, content: Vec<Block>) -> Self {
        Self {
            id,
            role: Role::User,
            content,
            stop_reason: None,
            usage: None,
            partial: false,
        }
    }

    /// The stored form of this message.
    #[must_use]
    pub fn stored(
        self,
        session_id: SessionId,
        run_id: Option<RunId>,
        seq: u64,
        created_at: Timestamp,
    ) -> Message {
        Message {
            id: self.id,
            session_id,
            run_id,
            seq,
            role: self.role,
            content: self.content,
            stop_reason: self.stop_reason,
            usage: self.usage,
            partial: self.partial,
            created_at,
        }
    }
}
