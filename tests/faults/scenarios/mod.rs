//! The scenarios: what is done to the replicas and their database, and what must come of it.

mod all_down;
mod api_burst;
mod cancel_race;
mod checker;
mod clock_jump;
mod crash_at_n;
mod database_restart;
mod disk_full;
mod drain;
mod fairness;
mod kill_storm;
mod poison;
mod proxy;
mod stop_storm;

use futures::future::BoxFuture;

use crate::cli::{Cli, Takes};
use crate::database::Kind;
use crate::report::Report;

/// A scenario.
pub(crate) struct Scenario {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it does, and which goal of `docs/faults.md` it measures.
    pub(crate) about: &'static str,
    /// The kinds of database that it is executed on where nobody names one.
    pub(crate) kinds: &'static [Kind],
    /// More kinds of database that it is for.
    pub(crate) also: &'static [Kind],
    /// The options that it has a use for.
    pub(crate) takes: &'static [Takes],
    /// Executes it.
    pub(crate) run: fn(Task) -> BoxFuture<'static, anyhow::Result<Report>>,
}

/// What a scenario is asked for. What is `None` is as CI's edition has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    /// What decides everything that can be decided.
    pub(crate) seed: u64,
    /// The kind of database.
    pub(crate) kind: Kind,
    /// How many runs are asked for.
    pub(crate) runs: Option<usize>,
    /// How many faults there are.
    pub(crate) faults: Option<usize>,
    /// How long it goes on.
    pub(crate) minutes: Option<f64>,
    /// How many replicas there are on PostgreSQL.
    pub(crate) replicas: usize,
}

/// Replicas, where nobody says how many.
const REPLICAS: usize = 3;

impl Task {
    /// What the command line asks for.
    pub(crate) fn of(cli: &Cli, seed: u64, kind: Kind) -> Self {
        Self {
            seed,
            kind,
            runs: cli.runs,
            faults: cli.faults,
            minutes: cli.minutes,
            replicas: cli.replicas.unwrap_or(REPLICAS).max(1),
        }
    }

    /// The arguments that replay it.
    pub(crate) fn arguments(&self, scenario: &Scenario) -> String {
        // A file has one replica.
        let replicas = (self.kind == Kind::Postgres).then_some(self.replicas);
        let counts = [
            (Takes::Runs, self.runs.map(|count| count.to_string())),
            (Takes::Faults, self.faults.map(|count| count.to_string())),
            (Takes::Minutes, self.minutes.map(|count| count.to_string())),
            (Takes::Replicas, replicas.map(|count| count.to_string())),
        ];
        let counts = counts
            .into_iter()
            .filter(|(option, _)| scenario.takes.contains(option))
            .filter_map(|(option, count)| Some(format!(" {} {}", option.name(), count?)));
        let Self { seed, kind, .. } = self;
        let (name, kind) = (scenario.name, kind.name());
        format!(
            "{name} --seed {seed} --store {kind}{}",
            counts.collect::<String>()
        )
    }
}

/// Every scenario.
pub(crate) const ALL: &[Scenario] = &[
    checker::SCENARIO,
    kill_storm::KILL_STORM,
    stop_storm::SCENARIO,
    all_down::SCENARIO,
    database_restart::RESTART,
    database_restart::BACKEND_KILL,
    proxy::SCENARIO,
    kill_storm::SESSION_SERIAL,
    cancel_race::SCENARIO,
    drain::SCENARIO,
    fairness::SCENARIO,
    api_burst::SCENARIO,
    clock_jump::SCENARIO,
    disk_full::SCENARIO,
    poison::SCENARIO,
    crash_at_n::SCENARIO,
];
