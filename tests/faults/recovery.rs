//! How long runs waited for another holder after theirs was hit.

use std::time::Duration;

use crate::fleet::{Fault, Gap};
use crate::history::story::{Story, Told};
use crate::moment::Moment;
use crate::timing::Timing;

/// How runs got on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recoveries {
    /// From the fault to the next claim, shortest first; times in which nobody could claim do not count.
    pub(crate) took: Vec<Duration>,
    /// How many more had been hit in that turn before, and waited longer on purpose.
    pub(crate) backed_off: usize,
    /// Runs that were taken from somebody whom nothing had happened to.
    pub(crate) unexplained: Vec<String>,
}

impl Recoveries {
    /// Measures them.
    pub(crate) fn of(story: &Story, gaps: &[Gap], timing: Timing) -> Self {
        let mut recoveries = Self::default();
        for told in &story.runs {
            for fault in &story.faults {
                recoveries.add(told, fault, gaps);
            }
            let unexplained = unexplained(told, &story.faults, gaps, timing);
            recoveries.unexplained.extend(unexplained);
        }
        recoveries.took.sort_unstable();
        recoveries
    }

    fn add(&mut self, told: &Told, fault: &Fault, gaps: &[Gap]) {
        let held = fault.held.iter().find(|(run, _)| *run == told.id);
        let Some((_, attempt)) = held else { return };
        let mut hits = 0;
        for event in &told.events {
            match event.kind.as_str() {
                "turn.completed" => hits = 0,
                "run.requeued" if event.reason == "lease_expired" => hits += 1,
                "run.started" if event.attempt == attempt + 1 => {
                    if hits > 1 {
                        self.backed_off += 1;
                    } else {
                        let waited = event.at.since(fault.from);
                        let nobody = between(gaps, fault.from, event.at);
                        self.took.push(waited.saturating_sub(nobody));
                    }
                    return;
                }
                _ => {}
            }
        }
    }

    /// The time within which that share of them was over.
    pub(crate) fn within(&self, share: f64) -> Duration {
        within(&self.took, share)
    }
}

/// The time within which that share of sorted times lies.
pub(crate) fn within(sorted: &[Duration], share: f64) -> Duration {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a length is a place in the list"
    )]
    let at = (sorted.len() as f64 * share).ceil() as usize;
    let at = at.saturating_sub(1).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

/// For how long of that time nobody could execute.
fn between(gaps: &[Gap], from: Moment, until: Moment) -> Duration {
    let overlaps = gaps.iter().map(|gap| {
        let (from, until) = (gap.from.max(from), gap.until.min(until));
        until.since(from)
    });
    overlaps.sum()
}

fn unexplained(told: &Told, faults: &[Fault], gaps: &[Gap], timing: Timing) -> Vec<String> {
    let taken = told.events.iter();
    let taken = taken.filter(|event| event.reason == "lease_expired");
    let unexplained = taken.filter(|event| {
        let explains = |fault: &&Fault| {
            let nobody = between(gaps, fault.from, event.at);
            let latest = fault.until.plus(2 * timing.takeover() + nobody);
            fault.from <= event.at && event.at <= latest
        };
        !faults.iter().any(|fault| explains(&fault))
    });
    unexplained
        .map(|event| {
            format!(
                "I5: run {} was taken from a healthy holder: {event:?}",
                told.id
            )
        })
        .collect()
}
