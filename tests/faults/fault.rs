//! Something that was done on purpose, and whose claims it may cost.

use std::time::Duration;

use crate::moment::Moment;
use crate::store::Claim;

/// A replica was stopped, wherever it was, or stopped by itself at a named point.
pub(crate) const STOPPED: &str = "SIGSTOP";

/// Something that was done on purpose.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// What.
    pub(crate) what: &'static str,
    /// When it began.
    pub(crate) from: Moment,
    /// When it was over; the same moment for a death.
    pub(crate) until: Moment,
    /// Whose claims it may cost.
    pub(crate) hits: Hits,
    /// The claims that its victim was seen to hold.
    pub(crate) held: Vec<Claim>,
}

/// Whose claims a fault may cost.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Hits {
    /// Nobody's: whoever is hit goes on at once, or gives back what it holds.
    Nobody,
    /// Those of an owner who is dead.
    Dead(String),
    /// Those of somebody who died before saying who it is.
    Stranger,
    /// Those of an owner who cannot renew them for as long as it lasts.
    Owner(String),
    /// Everybody's, whom it keeps from renewing them.
    Everybody,
}

/// A time in which nobody could execute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    /// When it began.
    pub(crate) from: Moment,
    /// When it was over.
    pub(crate) until: Moment,
}

/// For how long of that time nobody could execute.
pub(crate) fn nobody_between(gaps: &[Gap], from: Moment, until: Moment) -> Duration {
    let overlaps = gaps.iter().map(|gap| {
        let (from, until) = (gap.from.max(from), gap.until.min(until));
        until.since(from)
    });
    overlaps.sum()
}
