//! G02: all replicas are killed at once and start again.

use std::time::Duration;

use super::{Scenario, Task};
use crate::cli::Takes;
use crate::database::Kind;
use crate::dice::Dice;
use crate::history::Expect;
use crate::moment::Moment;
use crate::report::{Report, seconds};
use crate::world::{Setup, World};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "all-down",
    about: "G02: kill -9 of all replicas at once, which all start again",
    kinds: &[Kind::Postgres],
    also: &[Kind::Sqlite],
    takes: &[Takes::Faults, Takes::Replicas],
    run: |task| Box::pin(run(task)),
};

/// Connections of one replica.
const CONNECTIONS: usize = 10;

async fn run(task: Task) -> anyhow::Result<Report> {
    let mut setup = Setup::of(SCENARIO.name, task.seed, task.kind, task.replicas);
    setup
        .variables
        .push(("HANGO_DATABASE_MAX_CONNECTIONS", CONNECTIONS.to_string()));
    let world = World::start(setup).await?;
    let mut dice = Dice::of(task.seed, "deaths");
    let sessions = world.load.sessions(20).await?;
    let load = world.load.steady(
        &sessions,
        Duration::from_millis(150),
        Dice::of(task.seed, "load"),
    );

    let mut back = Vec::new();
    let mut connections = 0;
    for _ in 0..task.faults.unwrap_or(3) {
        tokio::time::sleep(dice.millis(800, 2500)).await;
        let all = (0..world.fleet.size()).map(|place| world.fleet.kill(place));
        futures::future::try_join_all(all).await?;
        tokio::time::sleep(dice.millis(0, 1000)).await;
        world.fleet.start_all().await?;
        back.push(Moment::now());
        connections = connections.max(world.facts.backends().await?.len());
    }
    tokio::time::sleep(world.timing.takeover()).await;
    drop(load);

    let (timing, replicas) = (world.timing, world.fleet.size());
    let mut outcome = world.finish(&Expect::SUCCESS).await?;
    outcome.must_recover(timing);
    let bound = timing.takeover() + Duration::from_secs(1);
    let longest = outcome.longest_to_first_claim(&back);
    let report = &mut outcome.report;
    report.line(
        "first claim",
        format!("{} after a start at the latest", seconds(longest)),
    );
    report.must_be_in_time(longest <= bound, || {
        format!("goal: the first claim came {longest:?} after a start")
    });
    if task.kind == Kind::Postgres {
        report.line("connections", format!("{connections} at the most"));
        report.must(connections <= replicas * CONNECTIONS, || {
            format!("goal: {connections} connections of {replicas} replicas")
        });
    }
    Ok(outcome.report)
}
