//! G15: a run that ends every process which executes it does so a few times, and not for ever; the others
//! get on.

use std::time::Duration;

use serde_json::json;

use super::{Scenario, Task};
use crate::cli::Takes;
use crate::database::Kind;
use crate::dice::Dice;
use crate::fleet::Fleet;
use crate::history::Expect;
use crate::plan::Shape;
use crate::report::{Report, seconds};
use crate::support::reply::Reply;
use crate::truth::tools::POISON;
use crate::world::{Setup, World};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "poison",
    about: "G15: a run whose tool aborts the process fails as stalled after five claims",
    kinds: &[Kind::Postgres],
    also: &[],
    takes: &[Takes::Replicas],
    run: |task| Box::pin(run(task)),
};

/// How often a turn is begun.
const CLAIMS: u32 = 5;

async fn run(task: Task) -> anyhow::Result<Report> {
    let seed = task.seed;
    let mut setup = Setup::of(SCENARIO.name, seed, task.kind, task.replicas);
    setup.script = Some(Box::new(move |run, turn, serial| {
        if run.starts_with(POISON) {
            Reply::calls([(POISON, json!({}))])
        } else {
            Shape::STORM.reply(seed, run, turn, serial)
        }
    }));
    let failpoint = format!("tool.call.before@{POISON}:abort:1+");
    setup.variables.extend([
        ("HANGO_FAILPOINT", failpoint),
        ("HANGO_MAX_STALLED_ATTEMPTS", CLAIMS.to_string()),
    ]);
    let world = World::start(setup).await?;
    let sessions = world.load.sessions(20).await?;
    let load = world.load.steady(
        &sessions,
        Duration::from_millis(250),
        Dice::of(seed, "load"),
    );
    let supervisors: Vec<_> = (0..world.fleet.size())
        .map(|place| tokio::spawn(supervise(world.fleet.clone(), place)))
        .collect();

    let poisoned = world.load.sessions(1).await?;
    let poison = world.load.begin_as(&poisoned[0], POISON).await?;
    drop(load);
    world.settle().await;
    for supervisor in supervisors {
        supervisor.abort();
        // It says why it ended, if that was by itself.
        if let Ok(ended) = supervisor.await {
            ended?;
        }
    }

    let expect = Expect {
        ends: |run| {
            let input = run["input"][0]["text"].as_str().unwrap_or_default();
            if input.starts_with(POISON) {
                run["error"]["code"] == "stalled"
            } else {
                run["state"] == "succeeded"
            }
        },
        ..Expect::SUCCESS
    };
    let mut outcome = world.finish(&expect).await?;
    let deaths = outcome.story.faults.iter();
    let deaths = deaths
        .filter(|fault| fault.what == "died by itself")
        .count();
    let told = outcome
        .story
        .runs
        .iter()
        .find(|told| Some(&told.id) == poison.as_ref());
    let lived = told.and_then(|told| {
        let (first, last) = (told.events.first()?, told.events.last()?);
        Some(last.at.since(first.at))
    });
    // A process that is too slow to trust its lease gives the run back: such a claim is none of those that count.
    let silent = told.map(|told| {
        let back = told.events.iter().filter(|it| it.kind == "run.requeued");
        let given_back = back.filter(|it| it.reason != "lease_expired").count();
        let claims = told.run["attempt"].as_u64().unwrap_or_default();
        claims.saturating_sub(given_back as u64)
    });
    let report = &mut outcome.report;
    if let Some(silent) = silent {
        report.must(silent == u64::from(CLAIMS), || {
            format!(
                "goal: the run failed after {silent} claims that ended in silence, not {CLAIMS}"
            )
        });
    }
    report.line(
        "poison",
        format!("ended after {}", seconds(lived.unwrap_or_default())),
    );
    let died = || format!("goal: {deaths} processes died of a run that is claimed {CLAIMS} times");
    report.must(deaths <= CLAIMS as usize, died);
    // A claim may run out before its turn comes so far.
    report.must_be_in_time(deaths >= CLAIMS as usize, died);
    Ok(outcome.report)
}

/// Starts a replica again whenever it ends.
async fn supervise(fleet: Fleet, place: usize) -> anyhow::Result<()> {
    loop {
        fleet.died(place).await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
        fleet.start(place).await?;
    }
}
