//! G13: far more requests at once than there are connections to the database. Leases are renewed on a
//! connection of their own, so no holder loses his run to a crowd.

use std::time::{Duration, Instant};

use futures::future;
use reqwest::Method;

use super::{Scenario, Task};
use crate::cli::Takes;
use crate::database::Kind;
use crate::dice::Dice;
use crate::history::Expect;
use crate::report::Report;
use crate::world::{Setup, World};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "api-burst",
    about: "G13: a thousand reads at once, again and again, over five connections to the database",
    kinds: &[Kind::Postgres],
    also: &[],
    takes: &[Takes::Faults, Takes::Replicas],
    run: |task| Box::pin(run(task)),
};

/// How many requests there are at once.
const CROWD: usize = 1000;

/// Connections of a replica, those that it keeps for itself included.
const CONNECTIONS: usize = 5;

async fn run(task: Task) -> anyhow::Result<Report> {
    let mut setup = Setup::of(SCENARIO.name, task.seed, task.kind, task.replicas);
    setup
        .variables
        .push(("HANGO_DATABASE_MAX_CONNECTIONS", CONNECTIONS.to_string()));
    // Whoever claims and whoever begins a turn stands in the same queue as the crowd.
    setup.slots_are_free = false;
    let world = World::start(setup).await?;
    let sessions = world.load.sessions(12).await?;
    let load = world.load.steady(
        &sessions,
        Duration::from_millis(200),
        Dice::of(task.seed, "load"),
    );

    let bursts = task.faults.unwrap_or(8);
    let (mut answered, mut slowest) = (0, Duration::ZERO);
    for _ in 0..bursts {
        let begun = Instant::now();
        let reads = (0..CROWD).map(|n| {
            let path = format!("/v1/sessions/{}", sessions[n % sessions.len()]);
            let client = world.client.clone();
            async move { client.once(&Method::GET, &path, None).await }
        });
        let answers = future::join_all(reads).await;
        answered += answers.iter().flatten().count();
        slowest = slowest.max(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    tokio::time::sleep(world.timing.takeover()).await;
    drop(load);

    let mut outcome = world.finish(&Expect::SUCCESS).await?;
    let again = outcome.story.runs.iter();
    let again = again.filter(|told| told.run["attempt"] != 1);
    let reasons = again.map(|told| {
        let reasons = told.events.iter().map(|event| event.reason.as_str());
        reasons.filter(|reason| !reason.is_empty()).collect()
    });
    let lost: Vec<Vec<_>> = reasons.collect();
    let report = &mut outcome.report;
    report.line(
        "crowd",
        format!(
            "{bursts} times {CROWD} reads, {answered} of them answered; the slowest crowd took {:.1} s",
            slowest.as_secs_f64()
        ),
    );
    report.must(answered > 0, || "goal: nobody was answered".to_owned());
    report.must_be_in_time(lost.is_empty(), || {
        format!("goal: runs were lost to a crowd of readers: {lost:?}")
    });
    Ok(outcome.report)
}
