//! How long runs waited for another holder after theirs was hit.

use std::time::Duration;

use crate::fault::{Fault, Gap, nobody_between};
use crate::history::story::{Story, Told};

/// How runs got on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recoveries {
    /// From the fault to the next claim, shortest first; times in which nobody could claim do not count.
    pub(crate) took: Vec<Duration>,
    /// How many more had been hit in that turn before, and waited longer on purpose.
    pub(crate) backed_off: usize,
}

impl Recoveries {
    /// Measures them.
    pub(crate) fn of(story: &Story) -> Self {
        let mut recoveries = Self::default();
        for told in &story.runs {
            for fault in &story.faults {
                recoveries.add(told, fault, &story.gaps);
            }
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
                        let nobody = nobody_between(gaps, fault.from, event.at);
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
