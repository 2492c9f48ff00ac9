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
    /// Why times are not judged, where the machine had too little of it.
    pub(crate) too_busy: Option<String>,
    /// What came too late, where that is not judged.
    pub(crate) late: Vec<String>,
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

    /// Notes something that came too late.
    pub(crate) fn must_be_in_time(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.add_late([what()]);
        }
    }

    /// Notes what came too late.
    pub(crate) fn add_late(&mut self, what: impl IntoIterator<Item = String>) {
        if self.too_busy.is_some() {
            self.late.extend(what);
        } else {
            self.violations.extend(what);
        }
    }

    /// Takes over what came of another part of the same scenario.
    pub(crate) fn add(&mut self, part: &str, other: Self) {
        let lines = other.lines.into_iter();
        self.lines
            .extend(lines.map(|(name, what)| (name, format!("{what} ({part})"))));
        self.violations.extend(other.violations);
        self.late.extend(other.late);
        self.too_busy = self.too_busy.take().or(other.too_busy);
        self.kept = self.kept.take().or(other.kept);
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
        if let Some(why) = &self.too_busy {
            let late = self.late.len();
            writeln!(f, "   {:<12} NOT JUDGED: {why}; {late} were late", "times")?;
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
