//! Hints as one notification carries them.
//!
//! Processes of two builds may share a database during a deploy: fields that one does not know are left
//! out of account, and what cannot be read at all says that something was missed.

use std::collections::BTreeSet;

use hango_domain::RunId;
use hango_ports::wake_up::Hint;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The most runs that one notification names; PostgreSQL takes 8,000 bytes.
const MOST_RUNS: usize = 64;

/// All that a process has to tell at one time, each thing once.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Message {
    from: Uuid,
    #[serde(default)]
    queued: bool,
    #[serde(default)]
    missed: bool,
    #[serde(default)]
    cancel: BTreeSet<Uuid>,
}

impl Message {
    /// Nothing yet, from that process.
    pub(super) fn new(from: Uuid) -> Self {
        Self {
            from,
            queued: false,
            missed: false,
            cancel: BTreeSet::new(),
        }
    }

    /// Notes a hint. More runs than it has room for are as good as missed.
    pub(super) fn add(&mut self, hint: Hint) {
        match hint {
            Hint::Queued => self.queued = true,
            Hint::Missed => self.missed = true,
            Hint::CancelRequested(run) => {
                self.cancel.insert(run.0);
            }
        }
        if self.cancel.len() > MOST_RUNS {
            self.missed = true;
            self.cancel.clear();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.queued && !self.missed && self.cancel.is_empty()
    }

    /// The text that goes over the wire.
    pub(super) fn to_payload(&self) -> String {
        // Without a map whose keys are no texts this cannot fail; a message that tells nothing is read
        // as one that was missed.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// What a notification tells `me`; nothing if it is my own.
pub(super) fn hints(payload: &str, me: Uuid) -> Vec<Hint> {
    let Ok(message) = serde_json::from_str::<Message>(payload) else {
        return vec![Hint::Missed];
    };
    if message.from == me {
        return Vec::new();
    }
    let cancel = message.cancel.into_iter().map(RunId);
    let mut hints: Vec<_> = cancel.map(Hint::CancelRequested).collect();
    hints.extend(message.queued.then_some(Hint::Queued));
    hints.extend(message.missed.then_some(Hint::Missed));
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Uuid = Uuid::from_u128(1);
    const PEER: Uuid = Uuid::from_u128(2);

    fn run(n: usize) -> Hint {
        Hint::CancelRequested(RunId(Uuid::from_u128(n as u128)))
    }

    fn told(given: impl IntoIterator<Item = Hint>) -> Vec<Hint> {
        let mut message = Message::new(PEER);
        given.into_iter().for_each(|hint| message.add(hint));
        hints(&message.to_payload(), ME)
    }

    #[test]
    fn what_was_noted_is_told_once() {
        let given = [Hint::Queued, run(7), Hint::Queued, run(5), run(7)];

        assert_eq!(told(given), [run(5), run(7), Hint::Queued]);
        assert_eq!(told([Hint::Missed]), [Hint::Missed]);
    }

    #[test]
    fn more_runs_than_there_is_room_for_are_told_as_missed() {
        let most = MOST_RUNS;
        let payload = |count: usize| {
            let mut message = Message::new(PEER);
            (0..count).for_each(|n| message.add(run(n)));
            message.to_payload()
        };

        assert_eq!(told((0..most).map(run)).len(), most);
        assert_eq!(told((0..=most).map(run)), [Hint::Missed]);
        assert!(payload(most).len() < 8000, "{}", payload(most).len());
    }

    #[test]
    fn nobody_hears_himself() {
        let mut message = Message::new(ME);
        message.add(Hint::Queued);

        assert_eq!(hints(&message.to_payload(), ME), []);
    }

    #[test]
    fn a_process_of_another_build_is_understood_or_looked_after() {
        let newer = format!(r#"{{"from":"{PEER}","queued":true,"colour":"blue"}}"#);
        let older = format!(r#"{{"from":"{PEER}"}}"#);

        assert_eq!(hints(&newer, ME), [Hint::Queued]);
        assert_eq!(hints(&older, ME), []);
        for other in ["", "queued", "[1]", "{}"] {
            assert_eq!(hints(other, ME), [Hint::Missed], "{other}");
        }
    }
}
