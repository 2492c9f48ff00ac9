//! Where live events go: what watchers see of a run while it happens.

use hango_domain::RunId;
use hango_domain::event::Event;

/// Something that happened just now.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveEvent {
    /// More of the answer being streamed. Never stored.
    Delta(Delta),
    /// Events that were stored with a change.
    Durable(Vec<Event>),
}

/// A piece of an answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Delta {
    /// The run.
    pub run: RunId,
    /// The turn, counting from 1.
    pub turn: u32,
    /// The attempt, counting from 1.
    pub attempt: u32,
    /// The block of the answer.
    pub index: u32,
    /// What kind of block.
    pub kind: DeltaKind,
    /// What is appended to it.
    pub text: String,
}

/// What a delta belongs to.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum DeltaKind {
    /// The answer's text.
    Text,
    /// The model's reasoning.
    Thinking,
}

/// Takes live events. Telling is all: it never waits, and a watcher who is too slow misses some.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait EventSink: Send + Sync {
    /// Tells whoever watches.
    fn emit(&self, event: LiveEvent);
}
