//! G19: a run of four turns with two tools each is killed at the N-th call of the run store, before it and
//! behind it, for every N that it has.
//!
//! How many that are differs from run to run, by what polls and renewals add. So an N that a run survived is
//! tried again, and the first one that none of several runs reached is the end: up to there none is left out.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// How many runs must have survived a number before it is one that they do not reach.
const TRIES: usize = 4;

/// The calls that no run does without: claim, three answers, two results each, boundaries, end; and those of
/// a process that begins.
const LEAST: usize = 4 * TURNS;

/// With little beside the run's own calls: each that comes on top costs two more processes.
const TIMING: Timing = Timing {
    lease: Duration::from_millis(600),
    heartbeat: Duration::from_millis(250),
    sweep: Duration::from_millis(300),
    poll: Duration::from_millis(500),
};

/// The numbers of one side, which its lanes share.
#[derive(Default)]
struct Numbers(Mutex<Tried>);

#[derive(Default)]
struct Tried {
    /// How many were begun with.
    begun: usize,
    /// Those at which a run was killed.
    killed_at: BTreeSet<usize>,
    /// The first one that several runs did not reach.
    unreached: Option<usize>,
}

impl Numbers {
    fn lock(&self) -> MutexGuard<'_, Tried> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next number to be tried, if there may be more.
    fn next(&self) -> Option<usize> {
        let mut tried = self.lock();
        if tried.unreached.is_some() {
            return None;
        }
        tried.begun += 1;
        Some(tried.begun)
    }

    /// Whether there are fewer numbers.
    fn are_over_before(&self, n: usize) -> bool {
        self.lock().unreached.is_some_and(|unreached| unreached < n)
    }

    /// Several runs did not reach a number.
    fn end_at(&self, n: usize) {
        let mut tried = self.lock();
        tried.unreached = Some(tried.unreached.map_or(n, |before| before.min(n)));
    }

    /// All numbers up to this one were killed at.
    fn last(&self) -> usize {
        let tried = self.lock();
        let mut numbers = 1..;
        numbers.find(|n| !tried.killed_at.contains(n)).unwrap_or(1) - 1
    }
}

async fn run(task: Task) -> anyhow::Result<Report> {
    let sides = ["before", "after"].map(|side| (side, Arc::<Numbers>::default()));
    let lanes = sides.iter().flat_map(|(side, numbers)| {
        let lane = |_| {
            let lane = go(task, side, Arc::clone(numbers));
            (*side, tokio::spawn(lane))
        };
        (0..LANES).map(lane)
    });
    let lanes: Vec<_> = lanes.collect();
    let mut report = Report::default();
    for (side, lane) in lanes {
        let outcome = lane.await??;
        report.title.clone_from(&outcome.report.title);
        report.took = report.took.max(outcome.report.took);
        report.add(side, outcome.report);
    }
    // There are as many of each kind as there are lanes, and they say the same.
    report.lines.clear();
    for (side, numbers) in &sides {
        let (last, crashes) = (numbers.last(), numbers.lock().killed_at.len());
        let unreached = last + 1;
        report.line(
            side,
            format!(
                "{crashes} crashes, at every call from 1 to {last}; {TRIES} runs had no call {unreached}"
            ),
        );
        report.must(last >= LEAST, || {
            format!("{TRIES} runs survived a crash {side} their call {unreached}")
        });
    }
    Ok(report)
}

/// One home: as many runs as it gets numbers, each of them tried until a run was killed there.
async fn go(task: Task, side: &'static str, numbers: Arc<Numbers>) -> anyhow::Result<Outcome> {
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

    while let Some(n) = numbers.next() {
        let failpoint = format!("store.{side}:kill:{n}");
        let mut tries = 0;
        while tries < TRIES && !numbers.are_over_before(n) {
            if is_killed(&world, &sessions[0], &failpoint).await? {
                numbers.lock().killed_at.insert(n);
                break;
            }
            tries += 1;
        }
        if tries == TRIES {
            numbers.end_at(n);
        }
    }
    world.finish(&Expect::SUCCESS).await
}

/// Executes a run with a failpoint, and to its end if that was met; whether it was.
async fn is_killed(world: &World, session: &str, failpoint: &str) -> anyhow::Result<bool> {
    let start = world.fleet.start_of(0).with("HANGO_FAILPOINT", failpoint);
    let mut run = world.load.begin(session);
    let listens = world.fleet.try_start_as(0, &start).await?;
    let ended = listens
        && tokio::select! {
            died = world.fleet.died(0) => died.map(|()| false)?,
            _ = &mut run => true,
        };
    if ended && !world.fleet.missing().await.is_empty() {
        // Just behind the run's end, at a call that was not the run's.
        world.fleet.died(0).await?;
        return Ok(false);
    }
    if !ended {
        world.fleet.start(0).await?;
        run.await?;
    }
    world.fleet.kill(0).await?;
    Ok(!ended)
}
