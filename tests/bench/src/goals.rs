//! What is aimed at: for each figure the bar, and where it shall go.

use std::fmt;

/// Which side of its bar a figure has to be on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Side {
    AtMost,
    AtLeast,
}

/// A goal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    /// Its number.
    pub(crate) number: &'static str,
    /// What is measured, in which unit.
    pub(crate) what: &'static str,
    side: Side,
    must: f64,
    aim: f64,
}

/// How a figure stands to its goal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// It is where it shall go.
    Reached,
    /// It is within the bar.
    Met,
    /// It is not.
    NotMet,
}

impl Goal {
    const fn at_most(number: &'static str, what: &'static str, must: f64, aim: f64) -> Self {
        Self {
            number,
            what,
            side: Side::AtMost,
            must,
            aim,
        }
    }

    const fn at_least(number: &'static str, what: &'static str, must: f64, aim: f64) -> Self {
        Self {
            side: Side::AtLeast,
            ..Self::at_most(number, what, must, aim)
        }
    }

    /// How `measured` stands to it.
    pub(crate) fn verdict(&self, measured: f64) -> Verdict {
        // What is counted a hundred times may be once more.
        let measured = (measured * 100.0).round() / 100.0;
        let within = |bar| match self.side {
            Side::AtMost => measured <= bar,
            Side::AtLeast => measured >= bar,
        };
        match (within(self.must), within(self.aim)) {
            (_, true) => Verdict::Reached,
            (true, false) => Verdict::Met,
            (false, false) => Verdict::NotMet,
        }
    }

    /// What it must be.
    pub(crate) fn must(&self) -> String {
        self.bar(self.must)
    }

    /// What it shall be.
    pub(crate) fn aim(&self) -> String {
        self.bar(self.aim)
    }

    fn bar(&self, bar: f64) -> String {
        match self.side {
            Side::AtMost => format!("≤ {bar}"),
            Side::AtLeast => format!("≥ {bar}"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reached => "met, the aim too",
            Self::Met => "met",
            Self::NotMet => "NOT MET",
        })
    }
}

pub(crate) const TEXT_RUNS: Goal =
    Goal::at_least("G1", "text runs/s, 32 in flight", 2_000.0, 4_000.0);
pub(crate) const TURNS: Goal =
    Goal::at_least("G2", "turns/s of W3, 32 in flight", 3_000.0, 7_000.0);
pub(crate) const TO_TERMINAL_P50: Goal = Goal::at_most("G3", "POST to terminal, ms, p50", 3.0, 1.5);
pub(crate) const TO_TERMINAL_P99: Goal = Goal::at_most("G3", "POST to terminal, ms, p99", 8.0, 4.0);
pub(crate) const TOOL_TURN: Goal = Goal::at_most("G4", "a tool turn, ms", 1.5, 0.8);
pub(crate) const OWN_CPU: Goal = Goal::at_most("G6", "CPU s of 1,000 turns: own", 0.3, 0.1);
pub(crate) const DATABASE_CPU: Goal =
    Goal::at_most("G6", "CPU s of 1,000 turns: database", 0.3, 0.1);
pub(crate) const TEXT_RUN_COMMITS: Goal = Goal::at_most("G7", "commits, text run", 3.0, 2.0);
pub(crate) const TOOL_TURN_COMMITS: Goal =
    Goal::at_most("G7", "commits, further tool turn", 2.0, 2.0);
pub(crate) const TEXT_RUN_WAL: Goal = Goal::at_most("G8", "WAL bytes, text run", 4_500.0, 3_300.0);
pub(crate) const TOOL_TURN_WAL: Goal =
    Goal::at_most("G8", "WAL bytes, further tool turn", 3_000.0, 2_000.0);
pub(crate) const TOOL_TURN_TRIPS: Goal =
    Goal::at_most("G9", "round trips, further tool turn", 2.0, 2.0);
pub(crate) const CROWD: Goal =
    Goal::at_most("G10", "W4: 200 runs at once, a turn of 1 s, s", 1.3, 1.1);
pub(crate) const MEMORY_AT_REST: Goal = Goal::at_most("G11", "memory at rest, MiB", 40.0, 20.0);
pub(crate) const MEMORY_IN_FLIGHT: Goal =
    Goal::at_most("G11", "memory, 500 in flight, MiB", 100.0, 50.0);
pub(crate) const IDLE_CPU: Goal = Goal::at_most("G12", "idle: CPU, %", 0.3, 0.1);
pub(crate) const IDLE_STATEMENTS: Goal = Goal::at_most("G12", "idle: statements/s", 5.0, 2.0);
pub(crate) const LEASE_STATEMENTS: Goal =
    Goal::at_most("G12", "500 waiting runs: lease statements/s", 5.0, 1.0);
pub(crate) const RENEWAL_WAL: Goal =
    Goal::at_most("G13", "WAL bytes of a renewal, each run", 150.0, 1.0);
pub(crate) const HEAP_ONLY: Goal =
    Goal::at_least("G13", "heap-only updates of runs, %", 95.0, 99.0);
pub(crate) const HANDED_OVER: Goal = Goal::at_most(
    "G16",
    "submitted here, provider called there, ms, p99",
    20.0,
    5.0,
);
pub(crate) const RECOVERED: Goal = Goal::at_most(
    "G17",
    "kill -9 to going on, beyond the lease (2 s), s",
    2.0,
    0.5,
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_belongs_to_the_side_that_meets_it() {
        assert_eq!(TEXT_RUN_COMMITS.verdict(2.0), Verdict::Reached);
        assert_eq!(TEXT_RUN_COMMITS.verdict(3.004), Verdict::Met);
        assert_eq!(TEXT_RUN_COMMITS.verdict(3.01), Verdict::NotMet);
        assert_eq!(HEAP_ONLY.verdict(95.0), Verdict::Met);
        assert_eq!(HEAP_ONLY.verdict(94.9), Verdict::NotMet);
        assert_eq!(HEAP_ONLY.verdict(99.8), Verdict::Reached);
    }
}
