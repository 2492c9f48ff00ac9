//! F65: one tenant floods the queue; another one's run does not wait for it. A capped tenant stays below
//! its cap and holds nobody up.

use std::time::Duration;

use anyhow::Context;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::Value;

use super::{Scenario, Task};
use crate::cli::Takes;
use crate::database::Kind;
use crate::dice::Dice;
use crate::history::Expect;
use crate::history::story::{Story, Told};
use crate::plan::Shape;
use crate::report::Report;
use crate::world::{Outcome, Setup, World};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "fairness",
    about: "F65: a tenant queues thousands of runs, another one gets the next slot; and the cap holds",
    kinds: &[Kind::Postgres],
    also: &[Kind::Sqlite],
    takes: &[Takes::Runs, Takes::Replicas],
    run: |task| Box::pin(run(task)),
};

/// Slots of all replicas: one each, so that every claim is of one run, and tenants cannot take turns
/// within it.
const SLOTS: usize = 3;

/// Where there is a cap, it leaves a replica free.
const CAP: i64 = 2;

/// One turn of a tenth of a second; less where so many are asked for that it would take long.
const fn shape(runs: usize) -> Shape {
    Shape {
        turns: 1,
        tools: 0,
        pace: if runs > 1000 { 1 } else { 20 },
        tool: 0,
    }
}

/// How many runs of the flood are asked for at once.
const AT_ONCE: usize = 16;

async fn run(task: Task) -> anyhow::Result<Report> {
    let free = flood(task, None).await?;
    let capped = flood(task, Some(CAP)).await?;
    let mut report = free.report;
    report.add("with a cap", capped.report);
    Ok(report)
}

/// One tenant floods, the other one comes three times.
async fn flood(task: Task, cap: Option<i64>) -> anyhow::Result<Outcome> {
    let mut setup = Setup::of(SCENARIO.name, task.seed, task.kind, task.replicas);
    let runs = task.runs.unwrap_or(80);
    setup.shape = shape(runs);
    setup.slots_are_free = false;
    let workers = SLOTS.div_ceil(setup.replicas);
    setup
        .variables
        .push(("HANGO_RUN_WORKERS", workers.to_string()));
    if let Some(cap) = cap {
        setup
            .variables
            .push(("HANGO_MAX_RUNNING_PER_TENANT", cap.to_string()));
    }
    let world = World::start(setup).await?;
    let sessions = world.load.sessions(runs.div_ceil(4).min(500)).await?;
    // Nobody waits for the flood's ends: thousands who do would be a flood of their own.
    let flood = (0..runs).map(|n| {
        let (client, session) = (world.client.clone(), sessions[n % sessions.len()].clone());
        async move { client.start_run(&session, &format!("run {n}")).await }
    });
    // Who comes later finds a queue that is as long as it will be.
    let flood = stream::iter(flood).buffer_unordered(AT_ONCE);
    let flood: Vec<_> = flood.try_collect().await?;
    let other = world.client.with_key(&other_tenant(&world).await?);
    other.create_agent().await?;
    let session = other.open_session().await?;

    let mut dice = Dice::of(task.seed, "visits");
    let mut visits = Vec::new();
    let mut most = 0;
    for n in 0..3 {
        tokio::time::sleep(dice.millis(50, 300)).await;
        most = most.max(world.facts.running_of_a_tenant().await?);
        let visit = other.start_run(&session, &format!("visit {n}")).await?;
        other.follow(&visit.id).await;
        visits.push(visit.id);
    }
    // Until nothing was running for a while.
    let mut idle = 0;
    while idle < 5 {
        let running = world.facts.running_of_a_tenant().await?;
        most = most.max(running);
        idle = if running == 0 { idle + 1 } else { 0 };
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let slots = workers * world.fleet.size();
    // Each tenant's runs are read with its own key.
    let mut outcome = world.finish_with(&Expect::SUCCESS, Some(&other)).await?;
    let report = &mut outcome.report;
    let overtaken: Vec<_> = visits
        .iter()
        .map(|visit| overtaken(&outcome.story, visit))
        .collect();
    report.line(
        "visits",
        format!(
            "claimed after {overtaken:?} of the flood's {} runs, with {slots} slots",
            flood.len()
        ),
    );
    report.must(overtaken.iter().all(|by| *by <= slots), || {
        format!("F65: {overtaken:?} runs of the flood were claimed before a visitor's, with {slots} slots")
    });
    if let Some(cap) = cap {
        report.line("cap", format!("{most} running at the most, of {cap}"));
        report.must(most <= cap, || {
            format!("goal: {most} runs of a tenant were running, over {cap}")
        });
    }
    Ok(outcome)
}

/// How many others were claimed between a run's acceptance and its claim.
fn overtaken(story: &Story, run: &str) -> usize {
    let moment = |told: &Told, kind: &str| {
        let event = told.events.iter().find(|event| event.kind == kind);
        event.map(|event| event.at)
    };
    let Some(told) = story.runs.iter().find(|told| told.id == run) else {
        return usize::MAX;
    };
    let (from, until) = (moment(told, "run.queued"), moment(told, "run.started"));
    let others = story.runs.iter().filter(|other| {
        let claimed = moment(other, "run.started");
        other.id != run && claimed > from && claimed < until
    });
    others.count()
}

/// Makes another tenant; its key.
async fn other_tenant(world: &World) -> anyhow::Result<String> {
    let start = world.fleet.start_of(0);
    let said = start
        .command("admin tenant create --slug other --owner-email other@example.org --json")
        .await?;
    let said: Value = serde_json::from_str(&said).with_context(|| said.clone())?;
    let key = said.pointer("/api_key/key").and_then(Value::as_str);
    Ok(key.with_context(|| format!("no key: {said}"))?.to_owned())
}
