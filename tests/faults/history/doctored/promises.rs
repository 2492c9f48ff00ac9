//! Stories against the rules about promises, answers and secrets.

use super::{Doctored, run, set};

pub(super) const ALL: &[Doctored] = &[
    Doctored::new(
        "a run is lost that was promised",
        |story| {
            let mut lost = story.clients.accepted[0].clone();
            lost.id = "run-9".into();
            story.clients.accepted.push(lost);
        },
        &["I1: run run-9 was promised and is lost"],
    ),
    Doctored::new(
        "a run is in another session than it was promised in",
        |story| story.clients.accepted[2].session = "session-1".into(),
        &["I1: run run-3 is not what was promised"],
    ),
    Doctored::new(
        "a run is there that nobody asked for",
        |story| {
            story.clients.sent.remove(0);
        },
        &["I1: nobody asked for run run-1"],
    ),
    Doctored::new(
        "the model is asked for what is no run",
        |story| {
            let asked = story.asked["run 2, try 1"].clone();
            story.asked.insert("run 9, try 1".to_owned(), asked);
        },
        &["I1: the model was asked for \"run 9, try 1\", no run's"],
    ),
    Doctored::new(
        "a tool is called for what is no run",
        |story| {
            let called = story.called["run-1"].clone();
            story.called.insert("run-9".to_owned(), called);
        },
        &["I1: tools were called for run-9, which is no run"],
    ),
    Doctored::new(
        "a run does not end",
        |story| {
            run(story, 3).run["state"] = "running".into();
        },
        &["I1: it does not end"],
    ),
    Doctored::new(
        "a run fails that should succeed",
        |story| {
            set(story, 3, "state", "failed");
            super::event(story, 3, "run.succeeded").kind = "run.failed".into();
        },
        &["I1: it ends as it should not"],
    ),
    Doctored::new(
        "an accepted run has no audit row",
        |story| {
            story.audited.remove(1);
        },
        &["I14: run run-2 has 0 audit rows"],
    ),
    Doctored::new(
        "an accepted run has two audit rows",
        |story| story.audited.push("run-2".to_owned()),
        &["I14: run run-2 has 2 audit rows"],
    ),
    Doctored::new(
        "an audit row tells of a run that is not there",
        |story| story.audited.push("run-9".to_owned()),
        &["I14: an audit row tells of run run-9"],
    ),
    Doctored::new(
        "the provider refuses what it is asked",
        |story| story.refused.push("a call is not answered".to_owned()),
        &["I7: the provider refused: a call is not answered"],
    ),
    Doctored::new(
        "a client gets an answer that nothing excuses",
        |story| story.clients.wrong.push("GET /v1/runs: 500".to_owned()),
        &["API: GET /v1/runs: 500"],
    ),
    Doctored::new(
        "two tenants see the same run",
        |story| story.foreign.push("/v1/runs/run-1".to_owned()),
        &["I12: two tenants see /v1/runs/run-1"],
    ),
    Doctored::new(
        "a secret is on record",
        |story| story.leaks.push("the table events".to_owned()),
        &["I13: the table events holds a secret"],
    ),
];
