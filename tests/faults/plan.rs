//! What a run is to do: decided by the seed and its name, so that a repeated question gets the same
//! kind of answer and nothing has to be remembered.

use std::time::Duration;

use serde_json::json;

use crate::dice::Dice;
use crate::support::reply::Reply;
use crate::truth::tools::CLASSES;

/// The shape of the runs of a scenario.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The most turns; there is at least one.
    pub(crate) turns: u64,
    /// The most tools of a turn; the last one has none.
    pub(crate) tools: u64,
    /// The longest pause between two pieces of an answer, in milliseconds.
    pub(crate) pace: u64,
    /// The longest time that a tool takes, in milliseconds.
    pub(crate) tool: u64,
}

impl Shape {
    /// 1 to 6 turns, 0 to 3 tools, half a second a turn: what storms are made of.
    pub(crate) const STORM: Self = Self {
        turns: 6,
        tools: 3,
        pace: 60,
        tool: 120,
    };

    /// How many turns a run has.
    pub(crate) fn turns_of(&self, seed: u64, run: &str) -> u64 {
        Dice::of(seed, run).between(1, self.turns)
    }

    /// What the model answers in that turn; `serial` makes the answer unlike any other.
    pub(crate) fn reply(&self, seed: u64, run: &str, turn: usize, serial: usize) -> Reply {
        let mut dice = Dice::of(seed, &format!("{run}, turn {turn}"));
        let pace = dice.millis(0, self.pace);
        if u64::try_from(turn).unwrap_or(u64::MAX) >= self.turns_of(seed, run) {
            return Reply::text(&format!("after all of this the answer is {serial}")).paced(pace);
        }
        let tools = dice.between(1, self.tools);
        let calls = (0..tools).map(|n| {
            let class = *dice.pick(&CLASSES);
            // Never equal to another one: a repeated call would not be made.
            (class, json!({"n": turn * 10, "place": n}))
        });
        Reply::calls(calls).paced(pace)
    }

    /// How long a tool works on a call.
    pub(crate) fn tool_time(&self, seed: u64, key: &str) -> Duration {
        Dice::of(seed, key).millis(0, self.tool)
    }
}
