//! The invariants of a durable server, checked when everything is over: what clients were promised, what
//! the provider and the tools saw, and what hango says, must be one story. Each rule says what objects to
//! it, beginning with the invariant's number in `docs/faults.md`; [`doctored`] shows that it does.

mod asks;
mod calls;
pub(crate) mod doctored;
mod leases;
mod runs;
mod sessions;
pub(crate) mod story;

use std::time::Duration;

use serde_json::Value;

use story::{Story, Told};

use crate::truth::client::has_ended;

pub(crate) use leases::taken;

/// How far a store's clock and that of the logs may be apart on one machine. Whatever begins too late does
/// so by more: it takes a restart or a lease for somebody else to begin it.
const SKEW: Duration = Duration::from_millis(100);

/// What a scenario may do that others may not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expect {
    /// How runs end.
    pub(crate) ends: fn(&Value) -> bool,
    /// Whether the store's clock is the machine's, so that its moments can be compared with those of the
    /// logs, and with each other.
    pub(crate) one_clock: bool,
    /// Whether nothing happens that costs an answer before it is on record.
    pub(crate) loses_no_turn: bool,
}

impl Expect {
    /// Every run ends well, although processes die.
    pub(crate) const SUCCESS: Self = Self {
        ends: |run| run["state"] == "succeeded",
        one_clock: true,
        loses_no_turn: false,
    };
}

/// Everything that speaks against the story, whatever the machine has time for.
pub(crate) fn objections(story: &Story, expect: &Expect) -> Vec<String> {
    let mut objections = Vec::new();
    let refused = story.refused.iter();
    objections.extend(refused.map(|why| format!("I7: the provider refused: {why}")));
    let wrong = story.clients.wrong.iter();
    objections.extend(wrong.map(|answer| format!("API: {answer}")));
    let foreign = story.foreign.iter();
    objections.extend(foreign.map(|path| format!("I12: two tenants see {path}")));
    let leaks = story.leaks.iter();
    objections.extend(leaks.map(|place| format!("I13: {place} holds a secret")));
    objections.extend(runs::promises(story));
    objections.extend(sessions::objections(story, expect));
    for told in &story.runs {
        if !has_ended(&told.run) {
            // What else there is to say of it is not known yet.
            objections.push(format!("I1: it does not end: {}", told.run));
            continue;
        }
        let mut found = Vec::new();
        found.extend(runs::objections(story, told, expect));
        found.extend(calls::objections(story, told, expect));
        found.extend(asks::objections(story, told, expect));
        objections.extend(found.into_iter().map(|what| named(told, &what)));
    }
    objections
}

/// What speaks against the story only if the machine had time for its processes.
pub(crate) fn late(story: &Story, expect: &Expect) -> Vec<String> {
    if expect.one_clock {
        leases::objections(story)
    } else {
        Vec::new()
    }
}

fn named(told: &Told, what: &str) -> String {
    format!("{what} (run {}, {:?})", told.id, told.input)
}
