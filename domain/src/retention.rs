//! What is old enough to be removed: what was kept for idempotency keys, and, where an operator wants that,
//! runs and sessions.
//!
//! * An answer kept for an idempotency key is old after [a day](ANSWERS_KEPT), and counts no more.
//! * A run is old when it ended that long ago. It goes with its journal and its events.
//! * A session is old when it has no run any more, and nothing was said or changed in it for that long.
//!   It goes with its messages.
//!
//! So a session whose runs all ended long ago goes behind them, and one with a run that has not ended
//! never does. What was said stays as long as its session, whoever said it: a later run needs the whole
//! history. A message goes on naming its run, which may not be there any more. The audit trail stays.
//!
//! Every store follows this rule; the in-memory one calls it, others say it in SQL, and the conformance
//! suite compares them.

use std::time::Duration;

use crate::Timestamp;
use crate::run::Run;
use crate::session::{Session, SessionLine};

/// How long the answer for an idempotency key is kept, whatever becomes of what it tells of.
pub const ANSWERS_KEPT: Duration = Duration::from_hours(24);

/// Whether an answer for an idempotency key that was given at `at` is old.
#[must_use]
pub fn is_old_answer(at: Timestamp, now: Timestamp) -> bool {
    at <= now.minus(ANSWERS_KEPT)
}

/// How long what is over is kept.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Retention(Duration);

impl Retention {
    /// The shortest: whoever waits for a run's end asks again within that time, and has to find it.
    pub const LEAST: Duration = Duration::from_mins(1);

    /// What is over is kept for `span`; `None` where that is too short.
    #[must_use]
    pub fn new(span: Duration) -> Option<Self> {
        (span >= Self::LEAST).then_some(Self(span))
    }

    /// For how long.
    #[must_use]
    pub const fn span(self) -> Duration {
        self.0
    }

    /// What was over at this moment is old at `now`.
    #[must_use]
    pub fn cutoff(self, now: Timestamp) -> Timestamp {
        now.minus(self.0)
    }

    /// Whether a run is old.
    #[must_use]
    pub fn is_old_run(self, run: &Run, now: Timestamp) -> bool {
        let ended = run.state.finished_at();
        ended.is_some_and(|at| at <= self.cutoff(now))
    }

    /// Whether a session is old that has so many runs, and in which the last message was said then.
    #[must_use]
    pub fn is_old_session(
        self,
        session: &Session,
        runs: usize,
        said: Option<Timestamp>,
        now: Timestamp,
    ) -> bool {
        let last = said.map_or(session.updated_at, |said| said.max(session.updated_at));
        runs == 0 && last <= self.cutoff(now)
    }
}

/// How many rows go with a run, about: its own and one for each event.
#[must_use]
pub const fn rows_of_run(run: &Run) -> u64 {
    1 + run.progress.last_event
}

/// How many rows go with a session that has no run: its own and its messages.
#[must_use]
pub const fn rows_of_session(line: &SessionLine) -> u64 {
    1 + line.last_seq
}

/// What is removed in one step, of `old` things with the rows of each: as long as those before are fewer
/// than `rows`. So no step is long, and the largest thing goes in a step too.
pub fn one_step<T>(old: impl IntoIterator<Item = (T, u64)>, rows: u32) -> impl Iterator<Item = T> {
    let mut before = 0_u64;
    let fits = move |(_, own): &(T, u64)| {
        let fits = before < u64::from(rows);
        before = before.saturating_add(*own);
        fits
    };
    old.into_iter().take_while(fits).map(|(thing, _)| thing)
}

#[cfg(test)]
mod tests;
