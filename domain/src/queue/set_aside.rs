//! Runs whose rows could not be read: left out for a while, so that they take nobody's place.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::RunId;

/// How long a run is left out before its row is tried again, and said in the log again.
const FOR: Duration = Duration::from_mins(1);

/// The most runs that are left out; more of them take places.
const MOST: usize = 1000;

/// The runs that a store leaves out of claims and sweeps for the time being, as what is stored of them
/// could not be read. Else a claim of one would get the same one again and again, and nobody else.
#[derive(Debug, Default)]
pub struct SetAside(Mutex<BTreeMap<RunId, Instant>>);

impl SetAside {
    /// Leaves a run out from now on; whether that is new, and possible.
    pub fn add(&self, run: RunId, now: Instant) -> bool {
        let mut runs = self.current(now);
        let added = !runs.contains_key(&run) && runs.len() < MOST;
        if added {
            runs.insert(run, now);
        }
        added
    }

    /// The runs that are left out now.
    #[must_use]
    pub fn runs(&self, now: Instant) -> Vec<RunId> {
        self.current(now).keys().copied().collect()
    }

    fn current(&self, now: Instant) -> MutexGuard<'_, BTreeMap<RunId, Instant>> {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|_, since| now.duration_since(*since) < FOR);
        runs
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    /// Some moment: which one does not matter.
    #[expect(
        clippy::disallowed_methods,
        reason = "there is no other way to have a first one"
    )]
    fn some_moment() -> Instant {
        Instant::now()
    }

    fn run(n: usize) -> RunId {
        RunId(Uuid::from_u128(n as u128))
    }

    #[test]
    fn a_run_is_left_out_once_and_tried_again_after_a_while() {
        let (aside, now) = (SetAside::default(), some_moment());

        assert!(aside.add(run(1), now));
        assert!(!aside.add(run(1), now));
        assert_eq!(aside.runs(now), [run(1)]);

        assert_eq!(aside.runs(now + FOR), []);
        assert!(aside.add(run(1), now + FOR));
    }

    #[test]
    fn no_more_runs_are_left_out_than_can_be_kept_in_mind() {
        let (aside, now) = (SetAside::default(), some_moment());

        let added = (0..2 * MOST).filter(|n| aside.add(run(*n), now)).count();

        assert_eq!(added, MOST);
    }
}
