//! G19: a run of four turns with two tools each is killed at the N-th call of the run store, before it and
//! behind it, for every N that it has.

use std::time::Duration;

use serde_json::json;

use super::{Scenario, Task};
use crate::database::Kind;
use crate::history::Expect;
use crate::plan::Shape;
use crate::report::Report;
use crate::support::reply::Reply;
use crate::timing::Timing;
use crate::world::{Outcome, Setup, World};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "crash-at-n",
    about: "G19: a four-turn run is killed before and behind every call of the store that it makes",
    kinds: &[Kind::Sqlite, Kind::Postgres],
    also: &[],
    takes: &[],
    run: |task| Box::pin(run(task)),
};

/// The turns of the run.
const TURNS: usize = 4;

/// How many homes there are for each side of the call, which share the numbers.
const LANES: usize = 3;

/// How many runs in a row have to end without a crash: what polls and renewals add differs.
const ENOUGH: usize = 3;

const TIMING: Timing = Timing {
    lease: Duration::from_millis(600),
    heartbeat: Duration::from_millis(150),
    sweep: Duration::from_millis(100),
    poll: Duration::from_millis(100),
};

/// What came of a lane.
struct Lane {
    outcome: Outcome,
    /// The numbers at which it was killed.
    killed_at: Vec<usize>,
}

async fn run(task: Task) -> anyhow::Result<Report> {
    let sides = ["before", "after"];
    let lanes = sides
        .into_iter()
        .flat_map(|side| (0..LANES).map(move |lane| tokio::spawn(go(task, side, lane))));
    let lanes: Vec<_> = lanes.collect();
    let mut report = Report::default();
    let mut killed_at = Vec::new();
    for (at, lane) in lanes.into_iter().enumerate() {
        let lane = lane.await??;
        let side = sides[at / LANES];
        report.title.clone_from(&lane.outcome.report.title);
        report.took = report.took.max(lane.outcome.report.took);
        killed_at.extend(lane.killed_at.into_iter().map(|n| (side, n)));
        report.add(side, lane.outcome.report);
    }
    // There are as many of each kind as there are lanes, and they say the same.
    report.lines.clear();
    for side in sides {
        let mut numbers: Vec<_> = killed_at
            .iter()
            .filter(|it| it.0 == side)
            .map(|it| it.1)
            .collect();
        numbers.sort_unstable();
        let last = numbers.last().copied().unwrap_or_default();
        report.line(
            side,
            format!("{} crashes, at calls 1 to {last}", numbers.len()),
        );
        // Claim, three answers, two results each, boundaries, end: fewer would be none of this.
        report.must(last >= 4 * TURNS, || {
            format!("there was no crash {side} calls behind {last}")
        });
    }
    Ok(report)
}

async fn go(task: Task, side: &'static str, lane: usize) -> anyhow::Result<Lane> {
    let mut setup = Setup::of(SCENARIO.name, task.seed, task.kind, 1);
    setup.timing = TIMING;
    setup.shape = Shape {
        tool: 5,
        ..Shape::STORM
    };
    setup.script = Some(Box::new(|_, turn, serial| {
        if turn < TURNS {
            let calls = ["keyed", "unsafe"].map(|class| (class, json!({"turn": turn})));
            Reply::calls(calls)
        } else {
            Reply::text(&format!("the answer is {serial}"))
        }
    }));
    let world = World::start(setup).await?;
    let sessions = world.load.sessions(1).await?;
    world.fleet.kill(0).await?;

    let mut killed_at = Vec::new();
    let mut survived = 0;
    let mut n = 1 + lane;
    while survived < ENOUGH {
        let failpoint = format!("store.{side}:kill:{n}");
        let start = world.fleet.start_of(0).with("HANGO_FAILPOINT", &failpoint);
        let mut run = world.load.begin_as(&sessions[0], &format!("run {n}"));
        let listens = world.fleet.try_start_as(0, &start).await?;
        let ended = listens
            && tokio::select! {
                died = world.fleet.died(0) => died.map(|()| false)?,
                _ = &mut run => true,
            };
        if ended {
            survived += 1;
        } else {
            killed_at.push(n);
            survived = 0;
            world.fleet.start(0).await?;
            run.await?;
        }
        world.fleet.kill(0).await?;
        n += LANES;
    }
    let outcome = world.finish(&Expect::SUCCESS).await?;
    Ok(Lane { outcome, killed_at })
}
