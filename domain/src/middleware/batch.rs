//! What the tool calls of one batch share.
//!
//! Calls run side by side, driven by one task in the order of the calls. They change the run's memory
//! in short closures that never wait, so that no change sees half of another.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ToolRequest;
use crate::memory::RunMemory;
use crate::note::Notes;

/// One batch of tool calls: the run's memory, scratch that ends with the batch, and notes.
pub struct Batch {
    calls: Vec<ToolRequest>,
    memory: Mutex<RunMemory>,
    scratch: Scratch,
    notes: Notes,
}

/// What layers keep for one batch, by their names. Whoever also reaches for the memory does that first.
#[derive(Default)]
pub struct Scratch(Mutex<BTreeMap<&'static str, Box<dyn Any + Send>>>);

impl Batch {
    /// A batch that begins with `memory` and empty scratch.
    #[must_use]
    pub fn new(memory: RunMemory, notes: Notes) -> Self {
        Self {
            calls: Vec::new(),
            memory: Mutex::new(memory),
            scratch: Scratch::default(),
            notes,
        }
    }

    /// The batch, of these calls.
    #[must_use]
    pub fn of(self, calls: Vec<ToolRequest>) -> Self {
        Self { calls, ..self }
    }

    /// Every call of the answer that was or is to be executed, as the model made it, by position. The
    /// same in each attempt, whatever of it an earlier one got done.
    #[must_use]
    pub fn calls(&self) -> &[ToolRequest] {
        &self.calls
    }

    /// Reads or changes the memory. No other call of the batch does so meanwhile, and `change` must not
    /// reach for the batch itself.
    pub fn change<R>(&self, change: impl FnOnce(&mut RunMemory) -> R) -> R {
        change(&mut lock(&self.memory))
    }

    /// See [`Scratch::change`].
    pub fn scratch<T, R>(&self, layer: &'static str, change: impl FnOnce(&mut T) -> R) -> R
    where
        T: Default + Send + 'static,
    {
        self.scratch.change(layer, change)
    }

    pub(super) const fn kept(&self) -> &Scratch {
        &self.scratch
    }

    /// Where to report.
    #[must_use]
    pub const fn notes(&self) -> &Notes {
        &self.notes
    }

    /// The memory after the batch; scratch is gone.
    #[must_use]
    pub fn into_memory(self) -> RunMemory {
        let memory = self.memory.into_inner();
        memory.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scratch {
    /// Reads or changes what `layer` keeps for this batch only; a new `T` at first use, and again if
    /// the layer asks for another type. `change` must not reach for scratch again.
    pub fn change<T, R>(&self, layer: &'static str, change: impl FnOnce(&mut T) -> R) -> R
    where
        T: Default + Send + 'static,
    {
        let mut scratch = lock(&self.0);
        let kept = scratch
            .remove(layer)
            .and_then(|kept| kept.downcast::<T>().ok());
        let mut kept = kept.unwrap_or_default();
        let result = change(&mut kept);
        scratch.insert(layer, kept);
        result
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(lock(&self.0).keys()).finish()
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("calls", &self.calls)
            .field("memory", &self.memory)
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}

/// A change that panics is a defect, and unwinds through whoever made it; it must not also take the
/// calls beside it.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Todo, TodoStatus};

    #[test]
    fn what_the_calls_of_a_batch_changed_is_the_memory_after_it() {
        let todo = Todo {
            content: "look".to_owned(),
            status: TodoStatus::Pending,
        };
        let batch = Batch::new(RunMemory::default(), Notes::default());

        batch.change(|memory| memory.todos.push(todo.clone()));

        assert_eq!(batch.change(|memory| memory.todos.len()), 1);
        assert_eq!(batch.into_memory().todos, [todo]);
    }

    #[test]
    fn scratch_is_a_layers_own_and_empty_at_the_start_of_each_batch() {
        let batch = Batch::new(RunMemory::default(), Notes::default());
        let add = |batch: &Batch, layer, n: u32| {
            batch.scratch(layer, |seen: &mut Vec<u32>| {
                seen.push(n);
                seen.clone()
            })
        };

        assert_eq!(add(&batch, "filesystem", 1), [1]);
        assert_eq!(add(&batch, "filesystem", 2), [1, 2]);
        assert_eq!(add(&batch, "repeat_call", 3), [3]);

        let next = Batch::new(batch.into_memory(), Notes::default());
        assert_eq!(add(&next, "filesystem", 4), [4]);
    }
}
