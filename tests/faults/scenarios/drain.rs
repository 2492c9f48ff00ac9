//! G16: replicas are asked to end under load, and hand their runs over.

use std::time::Duration;

use super::kill_storm::victim;
use super::{Scenario, Task};
use crate::cli::Takes;
use crate::database::Kind;
use crate::dice::Dice;
use crate::history::Expect;
use crate::history::story::Story;
use crate::recovery::within;
use crate::report::{Report, seconds};
use crate::world::{Setup, World};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "drain",
    about: "G16: SIGTERM under load; runs are handed over at their boundary",
    kinds: &[Kind::Postgres],
    also: &[Kind::Sqlite],
    takes: &[Takes::Faults, Takes::Replicas],
    run: |task| Box::pin(run(task)),
};

/// Longer than any turn here.
const DRAIN: Duration = Duration::from_secs(8);

async fn run(task: Task) -> anyhow::Result<Report> {
    let mut setup = Setup::of(SCENARIO.name, task.seed, task.kind, task.replicas);
    setup
        .variables
        .push(("HANGO_DRAIN_TIMEOUT", format!("{}s", DRAIN.as_secs())));
    let world = World::start(setup).await?;
    let mut dice = Dice::of(task.seed, "drains");
    let sessions = world.load.sessions(30).await?;
    let load = world.load.steady(
        &sessions,
        Duration::from_millis(100),
        Dice::of(task.seed, "load"),
    );

    let mut exits = Vec::new();
    let mut ended_badly = 0;
    for _ in 0..task.faults.unwrap_or(5) {
        tokio::time::sleep(dice.millis(300, 1200)).await;
        let victim = victim(&world, &mut dice).await;
        let (took, well) = world.fleet.drain(victim).await?;
        exits.push(took);
        ended_badly += usize::from(!well);
        tokio::time::sleep(dice.millis(0, 500)).await;
        world.fleet.start(victim).await?;
    }
    drop(load);

    let alone = world.fleet.size() == 1;
    let expect = Expect {
        loses_no_turn: true,
        ..Expect::SUCCESS
    };
    let mut outcome = world.finish(&expect).await?;
    exits.sort_unstable();
    let handovers = handovers(&outcome.story);
    let report = &mut outcome.report;
    let longest = within(&exits, 1.0);
    report.line(
        "exits",
        format!(
            "{}: p50 {}, longest {}",
            exits.len(),
            seconds(within(&exits, 0.5)),
            seconds(longest)
        ),
    );
    report.line(
        "hand-overs",
        format!(
            "{}: p50 {}, p99 {}",
            handovers.len(),
            seconds(within(&handovers, 0.5)),
            seconds(within(&handovers, 0.99))
        ),
    );
    report.must(ended_badly == 0, || {
        format!("goal: {ended_badly} replicas did not end well")
    });
    report.must_be_in_time(longest <= DRAIN + Duration::from_secs(2), || {
        format!("goal: an exit took {longest:?}")
    });
    let slow = within(&handovers, 1.0);
    report.must_be_in_time(alone || slow <= Duration::from_secs(1), || {
        format!("goal: a hand-over took {slow:?}")
    });
    Ok(outcome.report)
}

/// From the return of a run to its next claim, shortest first.
fn handovers(story: &Story) -> Vec<Duration> {
    let mut took = Vec::new();
    for told in &story.runs {
        for pair in told.events.windows(2) {
            if let [given, taken] = pair
                && given.reason == "drain"
            {
                took.push(taken.at.since(given.at));
            }
        }
    }
    took.sort_unstable();
    took
}
