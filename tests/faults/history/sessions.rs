//! Sessions: their runs execute one after the other, in the order in which they were created, and leave a
//! history that every provider takes.

use std::collections::HashMap;

use super::story::Story;
use super::{Expect, SKEW};
use crate::moment::Moment;
use crate::support::messages;
use crate::truth::client::has_ended;

/// What speaks against the sessions.
pub(super) fn objections(story: &Story, expect: &Expect) -> Vec<String> {
    let mut objections = Vec::new();
    let pending = |session: &String| {
        let mut runs = story.runs.iter();
        runs.any(|told| told.session == *session && !has_ended(&told.run))
    };
    for (session, messages) in &story.messages {
        if pending(session) {
            continue;
        }
        if let Some(what) = messages::objection(messages) {
            objections.push(format!("I7: session {session}: {what}"));
        }
    }
    if expect.one_clock {
        objections.extend(order(story));
        objections.extend(promised_order(story));
    }
    objections
}

/// Runs of a session do not overlap, and execute in the order of its queue.
fn order(story: &Story) -> Vec<String> {
    let executed: Vec<_> = story
        .runs
        .iter()
        .filter(|told| !told.run["started_at"].is_null() && !told.run["finished_at"].is_null())
        .collect();
    let mut objections = Vec::new();
    for pair in executed.windows(2) {
        let [before, after] = pair else { continue };
        // The contract's timestamps sort as texts.
        if before.session == after.session && before.text("finished_at") > after.text("started_at")
        {
            objections.push(format!(
                "I8: run {} started before {} had ended",
                after.id, before.id
            ));
        }
    }
    objections
}

/// Who had a promise before he asked for the next run of a session gets them in that order.
fn promised_order(story: &Story) -> Vec<String> {
    let told: HashMap<_, _> = story
        .runs
        .iter()
        .map(|told| (told.id.as_str(), told))
        .collect();
    let mut sessions: HashMap<&str, Vec<_>> = HashMap::new();
    for accepted in &story.clients.accepted {
        sessions
            .entry(&accepted.session)
            .or_default()
            .push(accepted);
    }
    let mut objections = Vec::new();
    for runs in sessions.values_mut() {
        runs.sort_by_key(|accepted| accepted.promised);
        for (at, later) in runs.iter().enumerate() {
            let earlier = runs[..at].iter().rev();
            let mut earlier = earlier.filter(|earlier| earlier.promised < later.asked);
            let Some(earlier) = earlier.next() else {
                continue;
            };
            let moment = |id: &str, field| Moment::of_text(told.get(id)?.text(field));
            let (ended, started) = (
                moment(&earlier.id, "finished_at"),
                moment(&later.id, "started_at"),
            );
            if let (Some(ended), Some(started)) = (ended, started)
                && ended > started.plus(SKEW)
            {
                objections.push(format!(
                    "I8: run {} was promised before {} was asked for, and did not end before it",
                    earlier.id, later.id
                ));
            }
        }
    }
    objections
}
