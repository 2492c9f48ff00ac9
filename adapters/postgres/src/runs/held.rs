//! What this process remembers of the runs that it holds, so that a write of theirs need not read first.
//!
//! No rule depends on it. A write that is decided upon what is remembered carries that in its fence: if
//! the row is not so any more, nothing is written, and the write is decided again upon what is read.
//! And what is remembered never refuses: only a run that was just read does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hango_domain::run::{Lease, Run};
use hango_domain::session::SessionLine;
use hango_domain::{OwnerId, RunId};
use hango_ports::run_store::Standing;
use serde_json::Map;

/// A run as it was after the last write of this process.
pub(crate) struct Remembered {
    /// The run; see [`HeldRuns::keep`].
    pub(crate) run: Run,
    /// Where its session stood; of this only the number of the last message is sure.
    pub(crate) line: SessionLine,
    /// What was true of its creator then.
    pub(crate) standing: Standing,
}

/// The runs that are remembered. Bounded by what is claimed and neither ended nor given up.
#[derive(Default)]
pub(crate) struct HeldRuns(Mutex<BTreeMap<RunId, Remembered>>);

impl HeldRuns {
    /// Remembers a run that is held; forgets one that is not. What its client sent is not remembered: it
    /// can be large, and no change reads it once the run was claimed.
    pub(crate) fn keep(&self, mut it: Remembered) {
        let run = it.run.id;
        if it.run.lease().is_some() {
            it.run.input = Vec::new();
            it.run.metadata = Map::new();
            self.lock().insert(run, it);
        } else {
            self.lock().remove(&run);
        }
    }

    /// Takes out what is remembered under this lease: whoever writes puts it back when he knows the
    /// outcome. What is remembered of an earlier or later claim is of no use, and forgotten.
    pub(crate) fn take(&self, lease: Lease) -> Option<Remembered> {
        let remembered = self.lock().remove(&lease.run)?;
        (remembered.run.lease() == Some(lease)).then_some(remembered)
    }

    /// Forgets what the owner does not hold.
    pub(crate) fn retain(&self, owner: OwnerId, in_force: &BTreeSet<Lease>) {
        self.lock().retain(|_, it| match it.run.lease() {
            Some(lease) => lease.owner != owner || in_force.contains(&lease),
            None => false,
        });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, Remembered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::fence::running;
    use super::*;

    #[tokio::test]
    async fn what_a_client_sent_is_not_remembered_of_the_run_that_is_held() {
        let (store, fixture, place, lease, _guard) = running().await;

        let remembered = store.held.take(lease).map(|it| it.run);

        let held = Run {
            input: Vec::new(),
            metadata: Map::new(),
            ..fixture.on_record(&place, lease.run).await.run
        };
        assert_eq!(remembered, Some(held));
    }
}
