//! The one retry policy of model calls: whether there is another try, and when.

use std::time::Duration;

use crate::model::ModelFailure;

/// The wait before the first retry; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The longest wait that is not asked for by a provider.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The longest wait that a provider may ask for and get.
const LONGEST_ASKED: Duration = Duration::from_hours(1);

/// How often a model call is tried, and how long a run may keep its slot while it waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RetryPolicy {
    /// Tries beyond the first.
    pub max_retries: u32,
    /// Longer waits give the slot back.
    pub inline_wait: Duration,
}

/// What follows a try that failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NextTry {
    /// None: the run fails.
    Never,
    /// Another one, after a wait in the slot.
    Wait(Duration),
    /// Another one, by whoever claims the run when the wait is over.
    GiveBack(Duration),
}

impl RetryPolicy {
    /// Decides after the `failed`-th try in a row (counting from 1) brought `failure`.
    ///
    /// `jitter` lies between 0 and 1 and spreads tries that failed together. A wait that would not end
    /// within `left` of the run's time is not begun.
    #[must_use]
    pub fn after(
        &self,
        failure: &ModelFailure,
        failed: u32,
        jitter: f64,
        left: Duration,
    ) -> NextTry {
        if !failure.kind.is_retryable() || failed > self.max_retries {
            return NextTry::Never;
        }
        let wait = match asked(failure) {
            Some(asked) => asked + spread(asked, jitter),
            None => backoff(failed, jitter),
        };
        self.wait(wait, left)
    }

    /// How a wait of `wait` is spent, of which `left` of the run's time must remain.
    #[must_use]
    pub fn wait(&self, wait: Duration, left: Duration) -> NextTry {
        if wait >= left {
            NextTry::Never
        } else if wait > self.inline_wait {
            NextTry::GiveBack(wait)
        } else {
            NextTry::Wait(wait)
        }
    }
}

/// The wait that a provider asked for with `failure`, an hour at most; `None` if it asked for none.
#[must_use]
pub fn asked(failure: &ModelFailure) -> Option<Duration> {
    failure.retry_after.map(|asked| asked.min(LONGEST_ASKED))
}

/// What is added to a wait that a provider asked for, a tenth of it at most: it told everybody the same.
fn spread(asked: Duration, jitter: f64) -> Duration {
    asked.mul_f64(0.1 * jitter.clamp(0.0, 1.0))
}

/// The wait after the `failed`-th failure in a row: between half of the doubled wait and all of it.
#[must_use]
pub fn backoff(failed: u32, jitter: f64) -> Duration {
    let doublings = failed.saturating_sub(1).min(16);
    let whole = FIRST_WAIT
        .saturating_mul(2_u32.saturating_pow(doublings))
        .min(LONGEST_WAIT);
    whole.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelFailureKind;

    const POLICY: RetryPolicy = RetryPolicy {
        max_retries: 2,
        inline_wait: Duration::from_secs(10),
    };
    const AMPLE: Duration = Duration::from_hours(2);

    fn unavailable() -> ModelFailure {
        ModelFailure::new(ModelFailureKind::Unavailable, "overloaded")
    }

    #[test]
    fn waits_double_and_are_spread_over_their_upper_half() {
        assert_eq!(backoff(1, 0.0), Duration::from_millis(250));
        assert_eq!(backoff(1, 1.0), Duration::from_millis(500));
        assert_eq!(backoff(3, 1.0), Duration::from_secs(2));
        assert_eq!(backoff(99, 1.0), LONGEST_WAIT);
    }

    #[test]
    fn the_last_retry_is_the_one_allowed_last() {
        assert!(matches!(
            POLICY.after(&unavailable(), 2, 0.5, AMPLE),
            NextTry::Wait(_)
        ));
        assert_eq!(POLICY.after(&unavailable(), 3, 0.5, AMPLE), NextTry::Never);
    }

    #[test]
    fn what_will_be_refused_again_is_not_tried_again() {
        let rejected = ModelFailure::new(ModelFailureKind::Rejected, "no such model");

        assert_eq!(POLICY.after(&rejected, 1, 0.5, AMPLE), NextTry::Never);
    }

    #[test]
    fn e1_a_long_wait_that_a_provider_asks_for_is_the_least_and_gives_the_slot_back() {
        let asked = ModelFailure {
            retry_after: Some(Duration::from_secs(30)),
            ..unavailable()
        };

        let next = [0.0, 1.0].map(|jitter| POLICY.after(&asked, 1, jitter, AMPLE));

        let give_back = |seconds| NextTry::GiveBack(Duration::from_secs(seconds));
        assert_eq!(next, [give_back(30), give_back(33)]);
    }

    #[test]
    fn no_provider_gets_more_than_an_hour() {
        let eternity = ModelFailure {
            retry_after: Some(Duration::MAX),
            ..unavailable()
        };

        assert_eq!(asked(&eternity), Some(LONGEST_ASKED));
        assert_eq!(asked(&unavailable()), None);
    }

    #[test]
    fn a_wait_beyond_the_deadline_is_not_begun() {
        let left = Duration::from_millis(100);

        assert_eq!(POLICY.after(&unavailable(), 1, 0.5, left), NextTry::Never);
    }
}
