//! The command line: scenarios by name, what makes them larger, and what a test runner says to every
//! test target alike.

use clap::Parser;

use crate::database::Kind;
use crate::scenarios::Scenario;

/// Faults on purpose: real replicas, a real database, and an account of what became of every promise.
#[derive(Clone, Debug, Parser)]
#[command(name = "faults", disable_version_flag = true)]
pub(crate) struct Cli {
    /// Scenarios, or parts of their names; none for all of them, in the edition for CI.
    pub(crate) scenarios: Vec<String>,
    /// How many runs are asked for.
    #[arg(long)]
    pub(crate) runs: Option<usize>,
    /// How many faults there are.
    #[arg(long, visible_aliases = ["kills", "stops"])]
    pub(crate) faults: Option<usize>,
    /// How long a scenario goes on that has no count of faults.
    #[arg(long)]
    pub(crate) minutes: Option<f64>,
    /// How many replicas there are on PostgreSQL.
    #[arg(long)]
    pub(crate) replicas: Option<usize>,
    /// What decides everything that can be decided; a new one where it is not given.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// sqlite or postgres; each that a scenario is for where it is not given.
    #[arg(long)]
    pub(crate) store: Option<Kind>,
    /// How many scenarios are executed at once; as many as the machine has time for where it is not given.
    #[arg(long)]
    pub(crate) jobs: Option<usize>,
    /// Prints the scenarios.
    #[arg(long)]
    pub(crate) list: bool,

    #[command(flatten)]
    pub(crate) runner: Runner,
}

/// What `cargo test -- …` and other runners say to every target. Only some of it means anything here.
#[derive(Clone, Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are switches of a command line"
)]
#[command(next_help_heading = "For test runners")]
pub(crate) struct Runner {
    /// Names are whole.
    #[arg(long)]
    pub(crate) exact: bool,
    /// Leaves scenarios out.
    #[arg(long)]
    pub(crate) skip: Vec<String>,
    /// Only what is ignored: nothing is.
    #[arg(long)]
    pub(crate) ignored: bool,
    #[arg(long, hide = true)]
    include_ignored: bool,
    #[arg(long, hide = true)]
    nocapture: bool,
    #[arg(long, hide = true)]
    no_capture: bool,
    #[arg(long, hide = true)]
    show_output: bool,
    #[arg(long, hide = true)]
    test: bool,
    #[arg(long, hide = true)]
    bench: bool,
    #[arg(long, short, hide = true)]
    quiet: bool,
    #[arg(long, hide = true)]
    test_threads: Option<usize>,
    #[arg(long, hide = true)]
    color: Option<String>,
    #[arg(long, hide = true)]
    format: Option<String>,
    #[arg(short = 'Z', hide = true)]
    unstable: Vec<String>,
}

/// What makes a scenario larger, if it has a use for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Takes {
    /// `--runs`.
    Runs,
    /// `--faults`.
    Faults,
    /// `--minutes`.
    Minutes,
    /// `--replicas`.
    Replicas,
}

impl Takes {
    /// As it is written.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Runs => "--runs",
            Self::Faults => "--faults",
            Self::Minutes => "--minutes",
            Self::Replicas => "--replicas",
        }
    }
}

impl Cli {
    /// What is asked for that a scenario has no use for, if anything.
    pub(crate) fn refusal(&self, scenario: &Scenario) -> Option<String> {
        let given = [
            (Takes::Runs, self.runs.is_some()),
            (Takes::Faults, self.faults.is_some()),
            (Takes::Minutes, self.minutes.is_some()),
            (Takes::Replicas, self.replicas.is_some()),
        ];
        if self.replicas.is_some() && self.store == Some(Kind::Sqlite) {
            return Some(format!("{} has one replica on a file", scenario.name));
        }
        let mut given = given.into_iter().filter(|(_, given)| *given);
        let (useless, _) = given.find(|(option, _)| !scenario.takes.contains(option))?;
        let takes: Vec<_> = scenario.takes.iter().map(|it| it.name()).collect();
        let takes = if takes.is_empty() {
            "nothing of the kind".to_owned()
        } else {
            takes.join(", ")
        };
        let (name, useless) = (scenario.name, useless.name());
        Some(format!("{name} takes no {useless}; it takes {takes}"))
    }

    /// Whether a scenario is asked for.
    pub(crate) fn wants(&self, name: &str) -> bool {
        let is = |asked: &String| {
            if self.runner.exact {
                asked == name
            } else {
                name.contains(asked.as_str())
            }
        };
        let asked = self.scenarios.is_empty() || self.scenarios.iter().any(is);
        asked && !self.runner.ignored && !self.runner.skip.iter().any(is)
    }

    /// Whether somebody speaks to this target, and not to all of them.
    pub(crate) fn is_for_faults(&self) -> bool {
        self.runs.is_some()
            || self.faults.is_some()
            || self.minutes.is_some()
            || self.replicas.is_some()
            || self.seed.is_some()
            || self.store.is_some()
    }
}
