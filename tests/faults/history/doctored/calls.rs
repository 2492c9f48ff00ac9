//! Stories against the rules about tools. The first run has a call that is keyed, and one that is unsafe.

use std::time::Duration;

use serde_json::Value;

use super::{CLOCKS_JUMP, Doctored, run, sleeper};
use crate::history::story::Story;
use crate::truth::tools::Called;

/// The places of the two calls.
const KEYED: usize = 0;
const UNSAFE: usize = 1;

pub(super) const ALL: &[Doctored] = &[
    Doctored::new(
        "the journal has the calls in another order than the history",
        |story| run(story, 1).calls.swap(KEYED, UNSAFE),
        &["I4: history and journal have different calls"],
    ),
    Doctored::new(
        "a run ends while one of its calls is under way",
        |story| journal(story, KEYED)["state"] = "started".into(),
        &["I4: a call is not settled"],
    ),
    Doctored::new(
        "a tool is called twice, and the journal knows of one time",
        |story| {
            again(story, Duration::ZERO);
        },
        &["I4: a tool was called more often than the journal says"],
    ),
    Doctored::new(
        "a keyed call is repeated, and the journal says so",
        |story| {
            journal(story, KEYED)["executions"] = 2.into();
            again(story, Duration::ZERO);
        },
        &[],
    ),
    Doctored::new(
        "a call is repeated that must not be",
        |story| journal(story, UNSAFE)["executions"] = 2.into(),
        &["I4: a call was repeated that must not be"],
    ),
    Doctored::new(
        "a result is kept that no tool gave",
        |story| called(story)[UNSAFE].answered = Some(false),
        &["I4: a result was kept that no tool gave"],
    ),
    Doctored::new(
        "of a call in doubt nobody has to know the result",
        |story| {
            called(story)[UNSAFE].answered = Some(false);
            journal(story, UNSAFE)["state"] = "in_doubt".into();
        },
        &[],
    ),
    Doctored::new(
        "a call is made after its result is on record",
        late_call,
        &["I4: a call was made after its result was on record"],
    ),
    Doctored::new(
        "whoever wakes may still make the call that he was about to make when he fell asleep",
        |story| {
            late_call(story);
            let wakes = called(story).last().map(|called| called.at);
            sleeper(story, 1, wakes.unwrap_or_default());
        },
        &[],
    ),
    Doctored::new(
        "by a clock that jumps nobody knows whether a result was on record",
        late_call,
        &[],
    )
    .expecting(CLOCKS_JUMP),
    Doctored::new(
        "a call comes under another one's key",
        |story| called(story)[KEYED].tool = "safe".into(),
        &["I4: a call came under another's key"],
    ),
    Doctored::new(
        "a tool is called that nobody asked for",
        |story| {
            let mut strange = called(story)[KEYED].clone();
            strange.key = "nobody's".into();
            called(story).push(strange);
        },
        &["I4: nobody asked for"],
    ),
];

fn journal(story: &mut Story, place: usize) -> &mut Value {
    &mut run(story, 1).calls[place]
}

fn called(story: &mut Story) -> &mut Vec<Called> {
    let id = run(story, 1).id.clone();
    story.called.entry(id).or_default()
}

/// The keyed call comes again, that much later.
fn again(story: &mut Story, later: Duration) {
    let mut again = called(story)[KEYED].clone();
    again.at = again.at.plus(later);
    called(story).push(again);
}

fn late_call(story: &mut Story) {
    journal(story, KEYED)["executions"] = 2.into();
    again(story, Duration::from_secs(1));
}
