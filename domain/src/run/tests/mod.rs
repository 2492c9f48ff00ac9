//! The rules of a run's life, each by an example, and what holds whatever is tried in whatever order.

mod claims;
mod ends;
mod events;
mod fence;
mod life;

use super::fixtures::*;
use super::*;
use crate::event::{Event, EventKind};

/// Makes `change` at `second` and tells the run after it.
fn made(run: Run, change: &Change, second: u64) -> Run {
    let applied = run.apply(change, at(second)).expect("a legal change");
    applied.run
}

/// Why `change` is refused at `second`.
fn refused(run: &Run, change: &Change, second: u64) -> TransitionError {
    let applied = run.clone().apply(change, at(second));
    applied.expect_err("a change that is not legal")
}

/// The names of the events that go with `change`.
fn told(run: &Run, change: &Change, second: u64) -> Vec<String> {
    let applied = run.clone().apply(change, at(second));
    let events = applied.expect("a legal change").events;
    let names = events.iter().map(|event| event.kind.name());
    names.map(str::to_owned).collect()
}

fn lost(lease: Lease) -> TransitionError {
    TransitionError::LeaseLost {
        owner: lease.owner,
        presented: lease.attempt,
    }
}
