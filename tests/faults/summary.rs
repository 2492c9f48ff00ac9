//! What was counted in a scenario, and how long recoveries took.

use crate::history::story::Story;
use crate::history::taken;
use crate::recovery::Recoveries;
use crate::report::{Report, seconds};

/// Adds it to a report.
pub(crate) fn add(report: &mut Report, story: &Story, recoveries: &Recoveries) {
    let ended = |state: &str| {
        let runs = story.runs.iter().filter(|told| told.run["state"] == state);
        runs.count()
    };
    let promised = story.clients.accepted.len();
    report.line(
        "runs",
        format!(
            "{promised} promised, {} more were there without an answer; {} succeeded, {} failed, {} cancelled",
            story.runs.len().saturating_sub(promised),
            ended("succeeded"),
            ended("failed"),
            ended("cancelled"),
        ),
    );
    let mut kinds: Vec<_> = story.faults.iter().map(|fault| fault.what).collect();
    kinds.sort_unstable();
    let counted = kinds
        .chunk_by(PartialEq::eq)
        .map(|same| format!("{} {}", same.len(), same[0]));
    let held: usize = story.faults.iter().map(|fault| fault.held.len()).sum();
    let faults: Vec<_> = counted.collect();
    report.line(
        "faults",
        format!("{}; {held} claims were hit", faults.join(", ")),
    );
    report.line(
        "recoveries",
        format!(
            "{}: p50 {}, p99 {}, longest {}; {} more backed off",
            recoveries.took.len(),
            seconds(recoveries.within(0.5)),
            seconds(recoveries.within(0.99)),
            seconds(recoveries.within(1.0)),
            recoveries.backed_off,
        ),
    );
    let taken = story.runs.iter().flat_map(taken);
    let taken: Vec<_> = taken.map(|(claim, _)| claim).collect();
    let unseen = taken.iter();
    let unseen = unseen.filter(|claim| !story.holders.contains_key(*claim));
    report.line(
        "leases",
        format!(
            "{} ran out, {} of them of a holder whom nobody saw",
            taken.len(),
            unseen.count()
        ),
    );
    let asked: usize = story.asked.values().map(Vec::len).sum();
    let iterations = story
        .runs
        .iter()
        .filter_map(|told| told.run["iterations"].as_u64());
    let answers: u64 = iterations.sum();
    report.line(
        "model",
        format!("asked {asked} times for {answers} answers that were kept"),
    );
    let called: usize = story.called.values().map(Vec::len).sum();
    let calls = story.runs.iter().flat_map(|told| &told.calls);
    let in_doubt = calls
        .clone()
        .filter(|call| call["state"] == "in_doubt")
        .count();
    report.line(
        "tools",
        format!(
            "called {called} times for {} calls, {in_doubt} in doubt",
            calls.count()
        ),
    );
    report.line(
        "clients",
        format!(
            "{} times nobody there, 503: {:?}",
            story.clients.unreachable, story.clients.unavailable
        ),
    );
}
