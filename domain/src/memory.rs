//! What a run's layers remember between turns, attempts and processes.
//!
//! The memory is stored at every turn boundary and read back by the next attempt. A layer keeps a typed
//! value of its own under its name; typed fields exist only for what more than one layer, or a person,
//! reads.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::run::{StoredMemory, Todo};

/// The format in which this build stores a run's memory; it reads this one and every older one.
pub const MEMORY_VERSION: u32 = 1;

/// A run's memory while it executes. A copy is independent: what a discarded try did to it is gone
/// with the copy.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
// A field that this build does not know would be lost at the next boundary: such a format has a
// version of its own, or it is damage.
#[serde(default, deny_unknown_fields)]
pub struct RunMemory {
    /// The run's plan.
    pub todos: Vec<Todo>,
    private: BTreeMap<String, Value>,
}

/// Why a memory cannot be read or written.
#[derive(Debug, Error)]
pub enum MemoryError {
    /// A newer build stored it; that build can go on with the run.
    #[error("the run's memory has format {found}, and this build reads up to {MEMORY_VERSION}")]
    Newer {
        /// The stored format.
        found: u32,
    },
    /// It is not a memory of the format it claims to have.
    #[error("the run's memory cannot be read: {0}")]
    Unreadable(#[source] serde_json::Error),
    /// A layer's value is not of the type that the layer reads.
    #[error("what {layer} remembers cannot be read: {source}")]
    Load {
        /// The layer.
        layer: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A layer's value has no JSON form.
    #[error("what {layer} is to remember cannot be written: {source}")]
    Store {
        /// The layer.
        layer: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl RunMemory {
    /// What `layer` stored; `None` if it stored nothing, which a layer handles as its beginning and, in
    /// a resumed run, reports as [`Note::StateMissing`](crate::note::Note::StateMissing).
    ///
    /// # Errors
    ///
    /// [`MemoryError::Load`] if it is not a `T`.
    pub fn load<T: DeserializeOwned>(&self, layer: &str) -> Result<Option<T>, MemoryError> {
        let Some(value) = self.private.get(layer) else {
            return Ok(None);
        };
        T::deserialize(value)
            .map(Some)
            .map_err(|source| MemoryError::Load {
                layer: layer.to_owned(),
                source,
            })
    }

    /// Stores `value` for `layer`, in the place of what it stored before.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Store`] if it has no JSON form; the memory is as it was.
    pub fn store<T: Serialize>(&mut self, layer: &str, value: &T) -> Result<(), MemoryError> {
        let value = serde_json::to_value(value).map_err(|source| MemoryError::Store {
            layer: layer.to_owned(),
            source,
        })?;
        self.private.insert(layer.to_owned(), value);
        Ok(())
    }

    /// The memory in the format of this build. An empty one is an empty object.
    #[must_use]
    pub fn to_stored(&self) -> StoredMemory {
        let mut fields = Map::new();
        if !self.todos.is_empty() {
            fields.insert("todos".to_owned(), json!(self.todos));
        }
        if !self.private.is_empty() {
            fields.insert("private".to_owned(), json!(self.private));
        }
        StoredMemory {
            version: MEMORY_VERSION,
            json: Value::Object(fields),
        }
    }

    /// The memory that was stored.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Newer`] and [`MemoryError::Unreadable`].
    pub fn from_stored(stored: &StoredMemory) -> Result<Self, MemoryError> {
        if stored.version > MEMORY_VERSION {
            return Err(MemoryError::Newer {
                found: stored.version,
            });
        }
        Self::deserialize(&stored.json).map_err(MemoryError::Unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::TodoStatus;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Counters {
        seen: BTreeMap<String, u32>,
    }

    #[test]
    fn every_layer_reads_back_what_it_stored_after_a_trip_through_the_store() {
        let counters = Counters {
            seen: BTreeMap::from([("get_time".to_owned(), 2)]),
        };
        let mut memory = RunMemory {
            todos: vec![Todo {
                content: "look".to_owned(),
                status: TodoStatus::InProgress,
            }],
            ..RunMemory::default()
        };
        memory.store("repeat_call", &counters).expect("a JSON form");
        memory.store("todo", &(3_u32, "plan")).expect("a JSON form");
        memory
            .store("skills", &vec!["a", "b"])
            .expect("a JSON form");

        let read = RunMemory::from_stored(&memory.to_stored()).ok();

        assert_eq!(read.as_ref(), Some(&memory));
        let read = read.unwrap_or_default();
        assert_eq!(read.load("repeat_call").ok(), Some(Some(counters)));
        assert_eq!(
            read.load("todo").ok(),
            Some(Some((3_u32, "plan".to_owned())))
        );
        assert_eq!(
            read.load::<Vec<String>>("skills").ok().flatten(),
            Some(vec!["a".to_owned(), "b".to_owned()])
        );
    }

    #[test]
    fn what_a_layer_never_stored_is_missing_and_not_a_default() {
        let memory = RunMemory::default();

        assert!(matches!(memory.load::<Counters>("repeat_call"), Ok(None)));
    }

    #[test]
    fn an_empty_memory_is_stored_as_an_empty_object() {
        assert_eq!(RunMemory::default().to_stored(), StoredMemory::default());
        assert_eq!(
            RunMemory::from_stored(&StoredMemory::default()).ok(),
            Some(RunMemory::default())
        );
    }

    #[test]
    fn a_newer_format_and_a_damaged_one_are_told_apart() {
        let stored = |version, json| RunMemory::from_stored(&StoredMemory { version, json });

        let newer = stored(MEMORY_VERSION + 1, json!({}));
        assert!(matches!(newer, Err(MemoryError::Newer { found: 2 })));
        for json in [json!(null), json!({"todos": 3}), json!({"plan": []})] {
            let damaged = stored(MEMORY_VERSION, json);
            assert!(matches!(damaged, Err(MemoryError::Unreadable(_))));
        }
    }

    #[test]
    fn a_layers_value_of_another_type_is_an_error_that_names_the_layer() {
        let mut memory = RunMemory::default();
        memory.store("repeat_call", &"text").expect("a JSON form");

        let error = memory.load::<Counters>("repeat_call").err();

        let said = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(said.starts_with("what repeat_call remembers"), "{said}");
    }
}
