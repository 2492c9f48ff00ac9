//! What layers report of themselves, as values; the application turns them into span events, metrics
//! and log lines.
//!
//! A note says that a layer changed what would have happened without it. It holds no content: what
//! people or models said is in none of its fields.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One thing that a layer did.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Note {
    /// A layer changed a call before it went further in.
    RequestRewritten {
        /// The layer.
        layer: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// A layer answered a call itself. The calls that [`Note::RepeatCallBlocked`] and
    /// [`Note::ToolRefused`] tell of are not told of here too.
    ShortCircuited {
        /// The layer.
        layer: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// A layer ran a call again.
    Retried {
        /// The layer.
        layer: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// A call was not executed because the run had made it too often.
    RepeatCallBlocked {
        /// The tool.
        tool: String,
    },
    /// The plan was replaced; how many of its items stand where.
    TodosUpdated {
        /// Not begun.
        pending: usize,
        /// Being done.
        in_progress: usize,
        /// Done.
        completed: usize,
    },
    /// What a layer stored ought to be in a resumed run's memory, and is not. The layer began anew.
    StateMissing {
        /// The layer.
        layer: &'static str,
    },
    /// The conversation was not legal and was repaired, for this call only.
    HistoryRepaired {
        /// How many repairs it took.
        repairs: usize,
    },
    /// A call was not executed because the agent may not call the tool.
    ToolRefused {
        /// The layer.
        layer: &'static str,
        /// The tool, as the model spelled it.
        tool: String,
    },
}

/// Collects notes. A clone collects into the same list, so that calls which run side by side can all
/// report; a try that is discarded does not take its notes with it.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<Vec<Note>>>);

impl Notes {
    /// Adds one.
    pub fn add(&self, note: Note) {
        self.lock().push(note);
    }

    /// Those added since the last `take`, in their order.
    #[must_use]
    pub fn take(&self) -> Vec<Note> {
        std::mem::take(&mut self.lock())
    }

    /// A list cannot be left half changed by its own `push`, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, Vec<Note>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_collect_into_one_list_which_is_taken_once() {
        let notes = Notes::default();
        let missing = Note::StateMissing { layer: "todo" };
        let repaired = Note::HistoryRepaired { repairs: 2 };

        notes.add(missing.clone());
        notes.clone().add(repaired.clone());

        assert_eq!(notes.take(), [missing, repaired]);
        assert_eq!(notes.take(), []);
    }
}
