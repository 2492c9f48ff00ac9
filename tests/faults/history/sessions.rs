//! Sessions: their runs execute one after the other, in the order in which they were created, and leave a
//! history that every provider takes.

use std::collections::HashMap;

use super::story::{Story, Told};
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
    objections.extend(order_of_promises(story));
    objections.extend(order_of_messages(story));
    objections.extend(order_of_work(story));
    if expect.one_clock {
        objections.extend(order_of_times(story));
    }
    objections
}

/// The runs of each session, in the order of its queue.
fn queues(story: &Story) -> impl Iterator<Item = &[Told]> {
    story
        .runs
        .chunk_by(|one, other| one.session == other.session)
}

/// Whoever had a promise before he asked for another run of the session has them in that order in its queue.
fn order_of_promises(story: &Story) -> Vec<String> {
    let accepted = story.clients.accepted.iter();
    let accepted: HashMap<_, _> = accepted.map(|it| (it.id.as_str(), it)).collect();
    let mut objections = Vec::new();
    for queue in queues(story) {
        // When the last of those before it was asked for.
        let mut latest = Moment::default();
        let promised = queue
            .iter()
            .filter_map(|told| accepted.get(told.id.as_str()));
        for accepted in promised {
            if accepted.promised < latest {
                objections.push(format!(
                    "I8: run {} was promised before another one was asked for, and is behind it",
                    accepted.id
                ));
            }
            latest = latest.max(accepted.asked);
        }
    }
    objections
}

/// The messages of a session are those of one run after the other, in the order of its queue.
fn order_of_messages(story: &Story) -> Vec<String> {
    let runs = story.runs.iter().map(|told| told.id.as_str());
    let place: HashMap<_, _> = runs.zip(0..).collect();
    let mut objections = Vec::new();
    for (session, messages) in &story.messages {
        let runs = messages
            .iter()
            .filter_map(|message| message["run_id"].as_str());
        let mut runs: Vec<_> = runs.collect();
        runs.dedup();
        if !runs.is_sorted_by(|before, after| place.get(before) < place.get(after)) {
            objections.push(format!(
                "I8: the messages of session {session} are not those of one run after the other: {runs:?}"
            ));
        }
    }
    objections
}

/// When anything is asked or called for a run, all is over that was asked or called for those before it in
/// its session's queue.
fn order_of_work(story: &Story) -> Vec<String> {
    let mut objections = Vec::new();
    for queue in queues(story) {
        // When those before it were worked for last.
        let mut latest = Moment::default();
        for told in queue {
            let work = work_of(story, told);
            if work.iter().any(|at| at.plus(SKEW) < latest) {
                objections.push(format!(
                    "I8: run {} was at work before those before it had ended theirs",
                    told.id
                ));
            }
            latest = work.into_iter().fold(latest, Moment::max);
        }
    }
    objections
}

/// When anything was asked or called for a run, but for what begins when somebody wakes.
fn work_of(story: &Story, told: &Told) -> Vec<Moment> {
    let asked = story.asked_for(told).iter().map(|asked| asked.at);
    let called = story.called_by(told).iter().map(|called| called.at);
    let work = asked.chain(called);
    work.filter(|at| !story.is_of_a_sleeper(told, *at))
        .collect()
}

/// By the store's clock, runs of a session do not overlap, and execute in the order of its queue.
fn order_of_times(story: &Story) -> Vec<String> {
    let mut objections = Vec::new();
    for queue in queues(story) {
        let executed = queue.iter();
        let executed: Vec<_> = executed
            .filter(|told| !told.run["started_at"].is_null() && !told.run["finished_at"].is_null())
            .collect();
        for pair in executed.windows(2) {
            let [before, after] = pair else { continue };
            // The contract's timestamps sort as texts.
            if before.text("finished_at") > after.text("started_at") {
                objections.push(format!(
                    "I8: run {} started before {} had ended",
                    after.id, before.id
                ));
            }
        }
    }
    objections
}
