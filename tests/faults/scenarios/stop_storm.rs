//! G03: replicas are stopped for longer than their leases last, and wake: at any moment, and at named
//! points. Whoever wakes finds that others have gone on, and must not disturb them.

use std::time::Duration;

use serde_json::Value;

use super::kill_storm::victim;
use super::{Scenario, Task};
use crate::cli::Takes;
use crate::database::Kind;
use crate::dice::Dice;
use crate::fault::STOPPED;
use crate::history::Expect;
use crate::history::story::Story;
use crate::moment::Moment;
use crate::report::{Report, seconds};
use crate::world::{Setup, World};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "stop-storm",
    about: "G03: SIGSTOP of a replica for 1.5 takeovers, at any moment and at named points",
    kinds: &[Kind::Postgres],
    also: &[],
    takes: &[Takes::Faults, Takes::Replicas],
    run: |task| Box::pin(run(task)),
};

/// Where a replica stops by itself.
const POINTS: [&str; 12] = [
    "store.claim.before",
    "store.claim.after",
    "provider.stream.before",
    "provider.event.before",
    "store.answer.before",
    "store.answer.after",
    "tool.call.before",
    "tool.call.after",
    "store.complete_turn.before",
    "store.complete_turn.after",
    "store.finish.before",
    "store.renew.before",
];

/// How soon somebody who wakes knows that his run is another one's.
const KNOWS: Duration = Duration::from_secs(1);

/// The longest wait for a replica that is to stop at a point.
const REACHES: Duration = Duration::from_secs(5);

async fn run(task: Task) -> anyhow::Result<Report> {
    let setup = Setup::of(SCENARIO.name, task.seed, task.kind, task.replicas);
    let world = World::start(setup).await?;
    let mut dice = Dice::of(task.seed, "stops");
    let sessions = world.load.sessions(30).await?;
    let load = world.load.steady(
        &sessions,
        Duration::from_millis(150),
        Dice::of(task.seed, "load"),
    );
    let time = world.timing.takeover().mul_f64(1.5);

    let stops = task.faults.unwrap_or(6);
    let first = dice.below(POINTS.len());
    let mut reached = 0;
    let mut asleep = Vec::new();
    for stop in 0..stops {
        tokio::time::sleep(dice.millis(200, 1500)).await;
        let victim = victim(&world, &mut dice).await;
        if stop % 2 == 1 {
            let point = POINTS[(stop / 2 + first) % POINTS.len()];
            if stop_at(&world, victim, point, &mut dice).await? {
                reached += 1;
            }
        }
        let fleet = world.fleet.clone();
        asleep.push(tokio::spawn(
            async move { fleet.freeze(victim, time).await },
        ));
        // Its place is empty before the next one is chosen.
        while world.fleet.listening().contains(&victim) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    for stopped in asleep {
        stopped.await??;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(load);

    let mut lines = Vec::new();
    for log in world.fleet.logs() {
        lines.extend(read(&log)?);
    }
    let mut outcome = world.finish(&Expect::SUCCESS).await?;
    let noticed = noticed(&outcome.story, &lines);
    let longest = noticed.iter().flatten().max().copied().unwrap_or_default();
    let silent = noticed.iter().filter(|it| it.is_none()).count();
    let report = &mut outcome.report;
    report.line(
        "points",
        format!("{reached} of {stops} stops were at a point"),
    );
    report.line(
        "zombies",
        format!(
            "{} attempts lost their run, and knew {} after they woke",
            noticed.len(),
            seconds(longest)
        ),
    );
    report.must_be_in_time(longest <= KNOWS, || {
        format!("goal: an attempt knew only after {longest:?} that it had lost its run")
    });
    report.must_be_in_time(silent == 0, || {
        format!("goal: {silent} attempts never said that they lost their run")
    });
    Ok(outcome.report)
}

/// Puts a replica in the place of another one that stops at a point; whether it got there.
async fn stop_at(
    world: &World,
    place: usize,
    point: &str,
    dice: &mut Dice,
) -> anyhow::Result<bool> {
    world.fleet.kill(place).await?;
    // Not so soon that it never listens.
    let failpoint = format!("{point}:stop:{}", dice.between(4, 8));
    let start = world
        .fleet
        .start_of(place)
        .with("HANGO_FAILPOINT", &failpoint);
    world.fleet.start_as(place, &start).await?;
    let begun = std::time::Instant::now();
    while begun.elapsed() < REACHES {
        if world.fleet.is_stopped(place).await? {
            return Ok(true);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // So that it does not stop later, when nobody waits for it.
    world.fleet.kill(place).await?;
    world.fleet.start(place).await?;
    Ok(false)
}

/// For each attempt whose run was taken while its process was stopped: how long after its waking it said
/// that it had lost it.
fn noticed(story: &Story, lines: &[Value]) -> Vec<Option<Duration>> {
    let mut noticed = Vec::new();
    let stops = story.faults.iter();
    for fault in stops.filter(|fault| fault.what == STOPPED) {
        for (run, attempt) in &fault.held {
            let told = story.runs.iter().find(|told| told.id == *run);
            let taken = told.into_iter().flat_map(|told| &told.events).any(|event| {
                event.kind == "run.started" && event.attempt > *attempt && event.at < fault.until
            });
            if !taken {
                continue;
            }
            let said = lines.iter().find(|line| {
                line["hango.run.id"] == run.as_str()
                    && line["attempt"] == *attempt
                    && line["message"]
                        .as_str()
                        .is_some_and(|it| it.starts_with("lease lost"))
            });
            let at = said.and_then(|line| Moment::of_text(line["timestamp"].as_str()?));
            noticed.push(at.map(|at| at.since(fault.until)));
        }
    }
    noticed
}

fn read(log: &std::path::Path) -> anyhow::Result<Vec<Value>> {
    let text = std::fs::read_to_string(log)?;
    let lines = text.lines().map(serde_json::from_str);
    // The last line of a process that was killed may be torn.
    Ok(lines.flatten().collect())
}
