//! Models: an answer that is on record is never asked for again, and a fault costs at most the turn that
//! it hit.

use serde_json::Value;

use super::story::{Story, Told};
use super::{Expect, SKEW};
use crate::moment::Moment;
use crate::support::messages;
use crate::truth::provider::Asked;

/// What speaks against what was asked for a run.
pub(super) fn objections(story: &Story, told: &Told, expect: &Expect) -> Vec<String> {
    let asked = story.asked_for(told);
    let mut objections = Vec::new();
    let awake = asked.iter();
    let awake = awake.filter(|asked| !story.is_of_a_sleeper(told, asked.at));
    if !awake.is_sorted_by_key(|asked| asked.turn) {
        objections.push("I4: a turn was asked for after a later one".to_owned());
    }
    let attempts = told.run["attempt"].as_u64().unwrap_or_default();
    let answers = story.messages_of(told);
    let answers: Vec<_> = answers
        .into_iter()
        .filter(|message| message["role"] == "assistant" && message["partial"] == false)
        .collect();
    for (turn, answer) in (1..).zip(&answers) {
        let of_turn: Vec<_> = asked.iter().filter(|asked| asked.turn == turn).collect();
        let kept = of_turn.iter().find(|asked| gave(asked, answer));
        let Some(kept) = kept else {
            objections.push(format!(
                "I4: nobody gave the answer of turn {turn}: {answer}"
            ));
            continue;
        };
        let committed = Moment::of_text(answer["created_at"].as_str().unwrap_or_default());
        let again = of_turn.iter().find(|asked| {
            expect.one_clock
                && committed.is_some_and(|committed| asked.at > committed.plus(SKEW))
                && !story.is_of_a_sleeper(told, asked.at)
        });
        if let Some(again) = again {
            objections.push(format!(
                "I4: turn {turn} was answered by {kept:?} and asked for again: {again:?}"
            ));
        }
    }
    // Each attempt but the last may lose the one answer that it waits for. One whose end nobody waited for
    // loses it as well.
    let lost = match (expect.loses_no_turn, told.run["state"] == "succeeded") {
        (true, true) => 0,
        (false, true) => attempts.saturating_sub(1),
        (_, false) => attempts,
    };
    let bound = answers.len() as u64 + lost;
    if asked.len() as u64 > bound {
        objections.push(format!(
            "I5: {} answers were kept in {attempts} attempts, and {} asked for",
            answers.len(),
            asked.len()
        ));
    }
    objections
}

/// Whether that is the answer that the provider gave then.
fn gave(asked: &Asked, answer: &Value) -> bool {
    if asked.ids.is_empty() {
        let text = messages::text(answer);
        text.rsplit(' ').next() == Some(&asked.serial.to_string())
    } else {
        messages::calls(std::slice::from_ref(answer)) == asked.ids
    }
}
