//! Ids that are told apart.

use std::collections::HashMap;

/// Ids that are handed out once each. What an id becomes depends only on those before it, so that a
/// conversation which grows keeps its beginning, and with it the provider's cache.
#[derive(Debug, Default)]
pub(crate) struct UniqueIds(HashMap<String, u32>);

impl UniqueIds {
    /// `id` if it is new, else `id_2`, `id_3` … whichever is new.
    pub(crate) fn claim(&mut self, id: &str) -> String {
        let Some(mut count) = self.0.get(id).copied() else {
            self.0.insert(id.to_owned(), 1);
            return id.to_owned();
        };
        loop {
            count += 1;
            let unique = format!("{id}_{count}");
            if !self.0.contains_key(&unique) {
                self.0.insert(id.to_owned(), count);
                self.0.insert(unique.clone(), 1);
                return unique;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_kept_once_and_then_counted_past_what_is_taken() {
        let mut ids = UniqueIds::default();

        let claimed = ["a", "a_2", "a", "a", "a_2"].map(|id| ids.claim(id));

        assert_eq!(claimed, ["a", "a_2", "a_3", "a_4", "a_2_2"]);
    }
}
