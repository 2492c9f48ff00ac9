//! Stories against the rules about one run's end, its messages, its costs and its events.

use serde_json::json;

use super::{CANCELS, CLOCKS_JUMP, Doctored, cancel, event, run, set};
use crate::history::story::Story;

pub(super) const ALL: &[Doctored] = &[
    Doctored::new(
        "an end changes after somebody saw it",
        |story| run(story, 1).run["stop_reason"] = "end_turn".into(),
        &["I6: its end was not final"],
    ),
    Doctored::new(
        "an input is in the history twice",
        |story| {
            let messages = story.messages.entry("session-2".to_owned()).or_default();
            messages.insert(1, messages[0].clone());
            renumber(story);
        },
        &["I4: its input is in the history 2 times"],
    ),
    Doctored::new(
        "an input is not in the history",
        |story| {
            story
                .messages
                .entry("session-2".to_owned())
                .or_default()
                .remove(0);
            renumber(story);
        },
        &["I4: its input is in the history 0 times"],
    ),
    Doctored::new(
        "a final message is not the last one",
        |story| set(story, 1, "final_message_id", "message-session-1-2"),
        &["I4: its final message is not its last"],
    ),
    Doctored::new(
        "a run has two final answers",
        |story| {
            let messages = story.messages.entry("session-1".to_owned()).or_default();
            messages[1]["stop_reason"] = "end_turn".into();
        },
        &["I4: it has not exactly one final answer"],
    ),
    Doctored::new(
        "a run has more turns than answers",
        |story| set(story, 1, "iterations", 3),
        &["I11: 2 answers, 3"],
    ),
    Doctored::new(
        "an answer is paid for twice",
        |story| {
            set(
                story,
                3,
                "usage",
                json!({"input_tokens": 20, "output_tokens": 5}),
            );
        },
        &["I11: 1 answers cost 20 input_tokens"],
    ),
    Doctored::new(
        "a cancelled run does not pay for what it keeps",
        |story| {
            cancel(story, 2);
            set(
                story,
                2,
                "usage",
                json!({"input_tokens": 10, "output_tokens": 0}),
            );
        },
        &["I11: 1 answers cost 0 output_tokens"],
    )
    .expecting(CANCELS),
    Doctored::new(
        "an answer is discarded that was asked for and not kept",
        |story| {
            set(
                story,
                3,
                "usage_discarded",
                json!({"input_tokens": 10, "output_tokens": 5}),
            );
        },
        &[],
    ),
    Doctored::new(
        "an answer is kept and discarded",
        |story| {
            set(
                story,
                1,
                "usage_discarded",
                json!({"input_tokens": 10, "output_tokens": 0}),
            );
        },
        &["I11: 2 of 2 answers were kept, and 10 input_tokens discarded"],
    ),
    Doctored::new(
        "an event is missing",
        |story| {
            run(story, 1).events.remove(2);
        },
        &["I6: its events have gaps"],
    ),
    Doctored::new(
        "an old attempt writes behind a later one",
        |story| {
            let events = &mut run(story, 3).events;
            let before_last = events.len() - 2;
            events[before_last].attempt = 1;
        },
        &["I3: an old attempt wrote behind a later one"],
    ),
    Doctored::new(
        "an event is older than the one before it",
        older_event,
        &["I3: its events are not in the order of time"],
    ),
    Doctored::new(
        "by a clock that jumps events may be older than those before them",
        older_event,
        &[],
    )
    .expecting(CLOCKS_JUMP),
    Doctored::new(
        "an attempt has no start",
        |story| event(story, 2, "run.started").kind = "turn.started".into(),
        &["I3: it has not one start for each attempt"],
    ),
    Doctored::new(
        "a run ends, and then again",
        |story| {
            let events = &mut run(story, 2).events;
            let before_last = events.len() - 2;
            events[before_last].kind = "run.succeeded".into();
        },
        &["I6: not the last event, or not only it, is an end"],
    ),
    Doctored::new(
        "a run's end is another one than its last event tells",
        |story| event(story, 2, "run.succeeded").kind = "run.failed".into(),
        &["I6: it is succeeded, and its last event is Some(\"run.failed\")"],
    ),
];

/// The messages of all sessions count up again.
pub(super) fn renumber(story: &mut Story) {
    for messages in story.messages.values_mut() {
        for (seq, message) in (1..).zip(messages) {
            message["seq"] = seq.into();
        }
    }
}

fn older_event(story: &mut Story) {
    let events = &mut run(story, 2).events;
    events[2].at = events[0].at;
}
