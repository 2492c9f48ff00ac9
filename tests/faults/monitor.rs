//! Watches the database while things happen to it: what must hold at every moment, not only at the end.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::fleet::Fleet;
use crate::moment::Moment;
use crate::store::{Claim, Facts, RunningRow};
use crate::timing::Timing;

/// Between two looks.
const LOOKS: Duration = Duration::from_millis(200);

/// What a bound is widened by, for a machine that has other things to do.
const SLACK: Duration = Duration::from_secs(1);

/// A watch that is kept until it is dropped.
pub(crate) struct Monitor {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// How often somebody looked.
    pub(crate) looks: usize,
    /// What must not be.
    pub(crate) violations: Vec<String>,
    /// What did not come in time.
    pub(crate) late: Vec<String>,
    /// Who held each claim. One that runs out was held for longer than it takes to look.
    pub(crate) holders: HashMap<Claim, String>,
}

impl Monitor {
    /// Watches from now on. `slots_are_free` says that nothing that can be claimed has to wait.
    pub(crate) fn start(facts: Facts, fleet: Fleet, timing: Timing, slots_are_free: bool) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let watched = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let mut waiting = HashMap::new();
            loop {
                tokio::time::sleep(LOOKS).await;
                // Whoever cannot be asked says nothing; that is for the scenario to judge.
                let Ok(running) = facts.running().await else {
                    continue;
                };
                let late = late(&facts, &fleet, timing, slots_are_free, &mut waiting).await;
                let mut seen = watched.lock().unwrap_or_else(PoisonError::into_inner);
                seen.looks += 1;
                add(&mut seen.violations, crowded(&running));
                add(&mut seen.late, late.unwrap_or_default());
                for row in running {
                    seen.holders.insert(row.claim, row.owner);
                }
            }
        });
        Self { seen, task }
    }

    /// What was seen so far.
    pub(crate) fn seen(&self) -> Seen {
        let seen = self.seen.lock();
        seen.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Adds what is new.
fn add(known: &mut Vec<String>, found: Vec<String>) {
    for what in found {
        if !known.contains(&what) {
            known.push(what);
        }
    }
}

/// Sessions that have more than one running run.
fn crowded(running: &[RunningRow]) -> Vec<String> {
    let mut sessions = HashSet::new();
    let crowded = running.iter().filter(|row| !sessions.insert(&row.session));
    crowded
        .map(|row| format!("I2: session {} has two running runs", row.session))
        .collect()
}

/// What did not come in time; `waiting` remembers since when each run can be claimed.
async fn late(
    facts: &Facts,
    fleet: &Fleet,
    timing: Timing,
    slots_are_free: bool,
    waiting: &mut HashMap<String, Moment>,
) -> anyhow::Result<Vec<String>> {
    let mut late = Vec::new();
    let bound = 2 * timing.sweep + SLACK;
    let overdue = facts.overdue(bound).await?;
    if served_for(fleet, bound) {
        let stuck = overdue.iter();
        late.extend(stuck.map(|run| {
            format!("I10: run {run} is running although its lease ended over {bound:?} ago")
        }));
    }

    if slots_are_free {
        let bound = 2 * timing.poll + SLACK;
        let claimable = facts.claimable().await?;
        let now = Moment::now();
        waiting.retain(|run, _| claimable.contains(run));
        for run in claimable {
            let since = *waiting.entry(run.clone()).or_insert(now);
            if now.since(since) > bound && served_for(fleet, bound) {
                late.push(format!(
                    "I10: run {run} could be claimed for over {bound:?} and was not"
                ));
            }
        }
    }
    Ok(late)
}

/// Whether somebody could execute for that long, without a pause.
fn served_for(fleet: &Fleet, time: Duration) -> bool {
    let since = fleet.serving_since();
    since.is_some_and(|since| Moment::now().since(since) > time)
}
