//! Leases: nobody loses a claim to whom nothing happened that could cost it.

use std::time::Duration;

use super::SKEW;
use super::story::{Story, Told};
use crate::fault::{Fault, Hits, nobody_between};
use crate::moment::Moment;
use crate::store::{Claim, EventRow};

/// How long a renewal may take that finds everything as it should be.
const RENEWS: Duration = Duration::from_millis(300);

/// How long after a fault a claim may still begin that was asked for before.
const UNDER_WAY: Duration = Duration::from_secs(1);

/// The claims that ran out before their holder let them go.
pub(crate) fn taken(told: &Told) -> impl Iterator<Item = (Claim, &EventRow)> {
    let taken = told.events.iter();
    let taken = taken.filter(|event| event.reason == "lease_expired");
    taken.map(|event| ((told.id.clone(), event.attempt), event))
}

/// What speaks against the claims that ran out. On a machine without time for its processes nothing has
/// to happen to them.
pub(super) fn objections(story: &Story) -> Vec<String> {
    let mut objections = Vec::new();
    for told in &story.runs {
        for (claim, event) in taken(told) {
            let lost = Lost {
                begun: begun(told, event.attempt),
                at: event.at,
                holder: story.holders.get(&claim),
                claim,
            };
            let mut faults = story.faults.iter();
            if !faults.any(|fault| lost.may_be_due_to(fault, story)) {
                objections.push(format!(
                    "I5: run {} was taken from a holder whom nothing had happened to, {:?}: {event:?}",
                    told.id, lost.holder
                ));
            }
        }
    }
    objections
}

/// When an attempt began.
fn begun(told: &Told, attempt: i64) -> Moment {
    let mut events = told.events.iter();
    let begun = events.find(|event| event.kind == "run.started" && event.attempt == attempt);
    begun.map(|event| event.at).unwrap_or_default()
}

/// A claim that ran out.
struct Lost<'a> {
    claim: Claim,
    begun: Moment,
    at: Moment,
    /// `None` if nobody saw who it was: then it may have been anybody.
    holder: Option<&'a String>,
}

impl Lost<'_> {
    fn may_be_due_to(&self, fault: &Fault, story: &Story) -> bool {
        let is = |owner: &String| {
            fault.held.contains(&self.claim) || self.holder.is_none_or(|holder| holder == owner)
        };
        let is_strange = self
            .holder
            .is_none_or(|holder| !story.owners.contains(holder));
        let hit = match &fault.hits {
            Hits::Nobody => false,
            Hits::Dead(owner) => is(owner),
            Hits::Stranger => is_strange,
            Hits::Owner(owner) => is(owner) && self.is_outlasted_by(fault, story),
            Hits::Everybody => self.is_outlasted_by(fault, story),
        };
        hit && fault.from <= self.at.plus(SKEW)
    }

    /// Whether the fault lasted for longer than what a lease has left when it cannot be renewed any more,
    /// and until just before the claim was taken. At worst it was renewed a heartbeat before, and is again
    /// a heartbeat after.
    fn is_outlasted_by(&self, fault: &Fault, story: &Story) -> bool {
        let timing = story.timing;
        let longest = fault.until.since(fault.from) + 2 * timing.heartbeat + RENEWS;
        let nobody = nobody_between(&story.gaps, fault.until, self.at);
        let latest = fault.until.plus(timing.takeover() + UNDER_WAY + nobody);
        longest >= timing.lease && self.begun <= fault.until.plus(UNDER_WAY) && self.at <= latest
    }
}
