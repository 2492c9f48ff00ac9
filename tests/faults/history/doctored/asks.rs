//! Stories against the rules about models.

use std::time::Duration;

use super::{CANCELS, CLOCKS_JUMP, Doctored, cancel, sleeper};
use crate::history::Expect;
use crate::history::story::Story;
use crate::moment::Moment;
use crate::truth::provider::Asked;

pub(super) const ALL: &[Doctored] = &[
    Doctored::new(
        "a turn is asked for after a later one",
        |story| asked(story, 1).swap(0, 1),
        &["I4: a turn was asked for after a later one"],
    ),
    Doctored::new(
        "an answer is kept that nobody gave",
        |story| asked(story, 2)[0].serial = 99,
        &["I4: nobody gave the answer of turn 1"],
    ),
    Doctored::new(
        "calls are kept that nobody asked for",
        |story| asked(story, 1)[0].ids.truncate(1),
        &["I4: nobody gave the answer of turn 1"],
    ),
    Doctored::new(
        "an answer is asked for again that is on record",
        |story| asked(story, 3)[0].at = long_after(story),
        &["I4: turn 1 was answered by"],
    ),
    Doctored::new(
        "by a clock that jumps nobody knows whether an answer was on record",
        |story| asked(story, 3)[0].at = long_after(story),
        &[],
    )
    .expecting(CLOCKS_JUMP),
    Doctored::new(
        "whoever wakes may still ask what he was about to ask when he fell asleep",
        |story| {
            let wakes = long_after(story);
            asked(story, 3)[0].at = wakes;
            sleeper(story, 3, wakes);
        },
        &[],
    ),
    Doctored::new(
        "also when others are in a later turn by then",
        |story| {
            let mut late = asked(story, 1)[0].clone();
            late.at = long_after(story);
            sleeper(story, 1, late.at);
            asked(story, 1).push(late);
        },
        &["I5: 2 answers were kept in 1 attempts, and 3 asked for"],
    ),
    Doctored::new(
        "whoever wakes does not ask for the runs of others",
        |story| {
            let wakes = long_after(story);
            asked(story, 3)[0].at = wakes;
            sleeper(story, 1, wakes);
        },
        &["I4: turn 1 was answered by"],
    ),
    Doctored::new(
        "a turn is asked for twice in one attempt",
        ask_twice,
        &["I5: 1 answers were kept in 1 attempts, and 2 asked for"],
    ),
    Doctored::new(
        "a cancel costs the answer that nobody waits for any more",
        |story| {
            ask_twice(story);
            cancel(story, 2);
        },
        &[],
    )
    .expecting(CANCELS),
    Doctored::new(
        "a turn is lost where none may be",
        |_| {},
        &["I5: 1 answers were kept in 2 attempts, and 2 asked for"],
    )
    .expecting(Expect {
        loses_no_turn: true,
        ..Expect::SUCCESS
    }),
    Doctored::new(
        "a fault costs two turns",
        |story| {
            let first = asked(story, 3)[0].clone();
            asked(story, 3).insert(0, first);
        },
        &["I5: 1 answers were kept in 2 attempts, and 3 asked for"],
    ),
];

/// What was asked for a run, counting from 1.
fn asked(story: &mut Story, n: usize) -> &mut Vec<Asked> {
    let input = super::run(story, n).input.clone();
    story.asked.entry(input).or_default()
}

/// The second run asks twice before it has an answer.
fn ask_twice(story: &mut Story) {
    let mut first = asked(story, 2)[0].clone();
    first.serial = 99;
    asked(story, 2).insert(0, first);
}

/// Long after the last run has its answer.
fn long_after(story: &mut Story) -> Moment {
    let end = super::event(story, 3, "run.succeeded").at;
    end.plus(Duration::from_secs(3))
}
