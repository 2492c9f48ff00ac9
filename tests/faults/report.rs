//! What is said at the end of a scenario.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How many violations are printed.
const SHOWN: usize = 20;

/// What came of a scenario.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Its name, the store, and the arguments that replay it.
    pub(crate) title: String,
    /// The command that replays it.
    pub(crate) replay: String,
    /// How long it took.
    pub(crate) took: Duration,
    /// What was counted and measured, by name.
    pub(crate) lines: Vec<(&'static str, String)>,
    /// What must not be.
    pub(crate) violations: Vec<String>,
    /// Where everything is kept, if something is to be looked at.
    pub(crate) kept: Option<PathBuf>,
    /// Why it was not executed.
    pub(crate) skipped: Option<String>,
}

impl Report {
    /// That a scenario cannot be executed here.
    pub(crate) fn skipped(why: impl Into<String>) -> Self {
        Self {
            skipped: Some(why.into()),
            ..Self::default()
        }
    }

    /// Adds something that was counted or measured.
    pub(crate) fn line(&mut self, name: &'static str, what: impl Into<String>) {
        self.lines.push((name, what.into()));
    }

    /// Notes a goal that was not reached.
    pub(crate) fn must(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.violations.push(what());
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(why) = &self.skipped {
            return writeln!(f, "== {}: SKIPPED, {why}", self.title);
        }
        writeln!(f, "== {}, {:.1} s", self.title, self.took.as_secs_f64())?;
        for (name, what) in &self.lines {
            writeln!(f, "   {name:<12} {what}")?;
        }
        if self.violations.is_empty() {
            return writeln!(f, "   {:<12} none", "violations");
        }
        writeln!(f, "   {:<12} {}", "VIOLATIONS", self.violations.len())?;
        for violation in self.violations.iter().take(SHOWN) {
            writeln!(f, "     - {violation}")?;
        }
        if let Some(kept) = &self.kept {
            writeln!(f, "   everything is kept in {}", kept.display())?;
        }
        writeln!(f, "   replay with: {}", self.replay)
    }
}

/// A time, for people.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
