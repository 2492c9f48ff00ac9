//! Names that somebody else chooses, as many as there may be on metrics: those that come first.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::names::value;

/// The most names of one kind. Every one multiplies the series.
const MOST: usize = 200;

/// Names of one kind that were seen.
#[derive(Debug, Default)]
pub(super) struct Few(Mutex<HashSet<String>>);

impl Few {
    /// The name, if it is one of the first.
    pub(super) fn name(&self, name: &str) -> String {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.contains(name) {
            return name.to_owned();
        }
        if seen.len() >= MOST {
            return value::OTHER.to_owned();
        }
        seen.insert(name.to_owned());
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_come_late_are_others_and_early_ones_stay() {
        let few = Few::default();
        for n in 0..MOST {
            assert_eq!(few.name(&n.to_string()), n.to_string());
        }

        assert_eq!(few.name("late"), "_OTHER");
        assert_eq!(few.name("7"), "7");
    }
}
