//! The ids of calls as the API takes them, which other providers did not have in mind.

use std::collections::{HashMap, HashSet, VecDeque};

/// How long an id may be.
const MAX_CHARS: usize = 64;

/// The ids of one request. What becomes of one depends only on those before it, so that a conversation
/// which grows keeps its beginning, and with it the provider's cache.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    taken: HashSet<String>,
    /// By the id in the conversation, what was sent for calls that have no result yet.
    open: HashMap<String, VecDeque<String>>,
}

impl Ids {
    /// The id of the next call, which no call before it has.
    pub(crate) fn call(&mut self, id: &str) -> String {
        let legal = legal(id);
        let mut sent = legal.clone();
        let mut count = 1;
        while !self.taken.insert(sent.clone()) {
            count += 1;
            let end = format!("_{count}");
            sent = legal.chars().take(MAX_CHARS - end.len()).collect();
            sent.push_str(&end);
        }
        let open = self.open.entry(id.to_owned()).or_default();
        open.push_back(sent.clone());
        sent
    }

    /// The id in the next result: of calls with the same one the first is answered first.
    pub(crate) fn result(&mut self, id: &str) -> String {
        let open = self.open.get_mut(id).and_then(VecDeque::pop_front);
        open.unwrap_or_else(|| legal(id))
    }
}

fn legal(id: &str) -> String {
    let is_legal = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    id.chars()
        .map(|char| if is_legal(char) { char } else { '_' })
        .take(MAX_CHARS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_other_providers_are_spelled_as_the_api_wants_and_stay_apart() {
        let mut ids = Ids::default();
        let long = "x".repeat(70);

        let sent = ["functions.f:0", "functions_f_0", &long, &format!("{long}y")];
        let sent = sent.map(|id| ids.call(id));

        let cut = "x".repeat(64);
        let apart = format!("{}_2", "x".repeat(62));
        assert_eq!(sent, ["functions_f_0", "functions_f_0_2", &cut, &apart]);
        assert_eq!(ids.result(&format!("{long}y")), apart);
        assert_eq!(ids.result("functions.f:0"), "functions_f_0");
    }

    #[test]
    fn an_id_that_is_there_twice_is_told_apart_with_its_result() {
        let mut ids = Ids::default();

        let side_by_side = [
            ids.call("a"),
            ids.call("a"),
            ids.result("a"),
            ids.result("a"),
        ];
        let later = [ids.call("a"), ids.result("a")];

        assert_eq!(side_by_side, ["a", "a_2", "a", "a_2"]);
        assert_eq!(later, ["a_3", "a_3"]);
    }
}
