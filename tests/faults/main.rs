//! Faults on purpose: a harness for developers and operators.
//!
//! Real replicas of the binary on a real database, with a provider, tools and clients that keep logs of
//! their own; scenarios kill, stop, cut off and starve them; then a checker compares what was promised
//! and seen with what hango says. `docs/faults.md` tells how to use it.
//!
//! ```text
//! cargo test --test faults -- kill-storm --runs 2000 --kills 500 --seed 7 --store postgres
//! ```

mod cli;
mod database;
mod dice;
mod fault;
mod fleet;
mod history;
mod inspect;
mod load;
mod moment;
mod monitor;
mod plan;
mod proxy;
mod pulse;
mod recovery;
mod replica;
mod report;
mod scenarios;
mod store;
mod summary;
mod support;
mod timing;
mod truth;
mod world;

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser as _;
use futures::StreamExt as _;

use cli::Cli;
use report::Report;
use scenarios::{ALL, Scenario, Task};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let wanted: Vec<_> = ALL.iter().filter(|it| cli.wants(it.name)).collect();
    if cli.list {
        for scenario in wanted {
            // As test runners read it.
            println!("{}: test", scenario.name);
            eprintln!("    {}", scenario.about);
        }
        return ExitCode::SUCCESS;
    }
    if wanted.is_empty() {
        let names: Vec<_> = ALL.iter().map(|scenario| scenario.name).collect();
        eprintln!("faults: no such scenario; there are {}", names.join(", "));
        // A filter that is meant for other targets finds nothing here, and that is fine.
        return ExitCode::from(if cli.is_for_faults() { 2 } else { 0 });
    }
    let refusals = wanted.iter().filter_map(|scenario| cli.refusal(scenario));
    let refusals: Vec<_> = refusals.collect();
    if !refusals.is_empty() {
        eprintln!("faults: {}", refusals.join("\nfaults: "));
        return ExitCode::from(2);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built");
    let tasks = wanted.iter().flat_map(|scenario| {
        let tasks = tasks(scenario, &cli).into_iter();
        tasks.map(move |task| (*scenario, task))
    });
    let tasks: Vec<_> = tasks.collect();
    let failed = runtime.block_on(async {
        let jobs = match cli.jobs {
            Some(jobs) => jobs,
            None if tasks.len() < 2 => 1,
            None => pulse::jobs().await,
        };
        all(tasks, jobs).await
    });
    if failed > 0 {
        println!("faults: {failed} scenarios FAILED");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Executes scenarios, so many at once, and prints what came of each; how many failed.
async fn all(tasks: Vec<(&'static Scenario, Task)>, jobs: usize) -> usize {
    let reports = futures::stream::iter(tasks).map(|(scenario, task)| async move {
        let executed = tokio::spawn(execute(scenario, task)).await;
        // What panicked has said so.
        executed.unwrap_or_else(|error| Report {
            title: scenario.name.to_owned(),
            violations: vec![error.to_string()],
            ..Report::default()
        })
    });
    let mut reports = reports.buffer_unordered(jobs.max(1));
    let mut failed = 0;
    while let Some(report) = reports.next().await {
        failed += usize::from(!report.violations.is_empty());
        println!("{report}");
    }
    failed
}

/// What a scenario is executed with.
fn tasks(scenario: &Scenario, cli: &Cli) -> Vec<Task> {
    let seed = cli.seed.unwrap_or_else(dice::new_seed);
    let kinds = match cli.store {
        Some(kind) => vec![kind],
        None => scenario.kinds.to_vec(),
    };
    let kinds = kinds.into_iter();
    kinds.map(|kind| Task::of(cli, seed, kind)).collect()
}

async fn execute(scenario: &'static Scenario, task: Task) -> Report {
    let begun = Instant::now();
    let name = scenario.name;
    let title = format!("{name} on {}, seed {}", task.kind.name(), task.seed);
    let mut kinds = scenario.kinds.iter().chain(scenario.also);
    let mut report = if kinds.any(|kind| *kind == task.kind) {
        (scenario.run)(task).await.unwrap_or_else(|error| Report {
            violations: vec![format!("the scenario could not be executed: {error:#}")],
            ..Report::default()
        })
    } else {
        Report::skipped("it is not for that kind of store")
    };
    if report.title.is_empty() {
        report.title = title;
        report.took = begun.elapsed();
    }
    report.replay = format!("cargo test --test faults -- {}", task.arguments(scenario));
    report
}
