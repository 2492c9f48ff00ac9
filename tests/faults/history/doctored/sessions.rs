//! Stories against the rules about sessions. The first one has two runs.

use std::time::Duration;

use super::good::text;
use super::runs::renumber;
use super::{CLOCKS_JUMP, Doctored, event, run, set};
use crate::history::story::Story;

pub(super) const ALL: &[Doctored] = &[
    Doctored::new(
        "a conversation is not legal",
        |story| {
            let messages = story.messages.entry("session-1".to_owned()).or_default();
            messages[2]["content"] = serde_json::json!([{"type": "text", "text": "no result"}]);
            messages[2]["run_id"] = serde_json::Value::Null;
        },
        &["I7: session session-1: message 3: it answers"],
    ),
    Doctored::new(
        "a promise is overtaken by what was asked for later",
        |story| {
            let asked = story.clients.accepted[0].asked;
            let overtaken = &mut story.clients.accepted[1];
            overtaken.asked = asked.minus(Duration::from_secs(2));
            overtaken.promised = asked.minus(Duration::from_secs(1));
        },
        &["I8: run run-2 was promised before another one was asked for"],
    ),
    Doctored::new(
        "what is asked for at the same time may come in any order",
        |story| {
            let asked = story.clients.accepted[0].asked;
            let overtaken = &mut story.clients.accepted[1];
            overtaken.asked = asked.minus(Duration::from_secs(2));
            overtaken.promised = asked.plus(Duration::from_millis(1));
        },
        &[],
    ),
    Doctored::new(
        "a later run has the first messages",
        |story| {
            let messages = story.messages.entry("session-1".to_owned()).or_default();
            messages.rotate_right(2);
            renumber(story);
        },
        &["I8: the messages of session session-1 are not those of one run after the other"],
    )
    .expecting(CLOCKS_JUMP),
    Doctored::new(
        "two runs have their messages among each other",
        |story| {
            let messages = story.messages.entry("session-1".to_owned()).or_default();
            let input = messages.remove(4);
            messages.insert(1, input);
            renumber(story);
        },
        &["I8: the messages of session session-1 are not those of one run after the other"],
    )
    .expecting(CLOCKS_JUMP),
    Doctored::new(
        "a run asks while the next one is at work",
        |story| {
            let late = event(story, 2, "run.succeeded").at;
            asked_at(story, late);
        },
        &["I8: run run-2 was at work before those before it had ended theirs"],
    )
    .expecting(CLOCKS_JUMP),
    Doctored::new(
        "a run calls while the next one is at work",
        |story| {
            let late = event(story, 2, "run.succeeded").at;
            let called = story.called.entry("run-1".to_owned()).or_default();
            called[1].at = late.plus(Duration::from_secs(1));
        },
        &["I8: run run-2 was at work before those before it had ended theirs"],
    )
    .expecting(CLOCKS_JUMP),
    Doctored::new(
        "a run starts before the one before it has ended",
        |story| {
            let ended = event(story, 1, "run.succeeded").at;
            let before = text(ended.minus(Duration::from_millis(1)));
            set(story, 2, "started_at", before);
        },
        &["I8: run run-2 started before run-1 had ended"],
    ),
    Doctored::new(
        "by a clock that jumps runs may seem to overlap",
        |story| {
            let ended = event(story, 1, "run.succeeded").at;
            let before = text(ended.minus(Duration::from_mins(1)));
            set(story, 2, "started_at", before);
        },
        &[],
    )
    .expecting(CLOCKS_JUMP),
];

/// The first run asks for its last answer a second behind that.
fn asked_at(story: &mut Story, at: crate::moment::Moment) {
    let input = run(story, 1).input.clone();
    let asked = story.asked.entry(input).or_default();
    asked[1].at = at.plus(Duration::from_secs(1));
}
