//! Runs: every promise is kept, each ends once and for good, and is charged for what was kept.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Expect;
use super::story::{Story, Told};

/// What every answer of the provider costs.
const EACH: [(&str, usize); 2] = [("input_tokens", 10), ("output_tokens", 5)];

/// Every promise is kept, nobody executes what nobody asked for, and each acceptance is on record.
pub(super) fn promises(story: &Story) -> Vec<String> {
    let stored = story.runs.iter().map(|told| (told.id.as_str(), told));
    let stored: HashMap<_, _> = stored.collect();
    let sent: HashSet<_> = story.clients.sent.iter().map(String::as_str).collect();
    let mut audited: HashMap<&str, usize> = HashMap::new();
    for target in &story.audited {
        *audited.entry(target).or_default() += 1;
    }
    let mut objections = Vec::new();
    for accepted in &story.clients.accepted {
        let Some(told) = stored.get(accepted.id.as_str()) else {
            objections.push(format!("I1: run {} was promised and is lost", accepted.id));
            continue;
        };
        if (&told.session, &told.input) != (&accepted.session, &accepted.input) {
            objections.push(format!(
                "I1: run {} is not what was promised: {accepted:?}",
                accepted.id
            ));
        }
    }
    for told in &story.runs {
        if !sent.contains(told.input.as_str()) {
            objections.push(format!("I1: nobody asked for run {}", told.id));
        }
        let rows = audited.remove(told.id.as_str()).unwrap_or_default();
        if rows != 1 {
            objections.push(format!("I14: run {} has {rows} audit rows", told.id));
        }
    }
    for (target, _) in audited {
        objections.push(format!(
            "I14: an audit row tells of run {target}, which is not there"
        ));
    }
    let inputs: HashSet<_> = story.runs.iter().map(|told| told.input.as_str()).collect();
    let strange = story.asked.keys();
    let strange = strange.filter(|input| !inputs.contains(input.as_str()));
    objections
        .extend(strange.map(|input| format!("I1: the model was asked for {input:?}, no run's")));
    let strange = story.called.keys();
    let strange = strange.filter(|run| !stored.contains_key(run.as_str()));
    objections
        .extend(strange.map(|run| format!("I1: tools were called for {run}, which is no run")));
    objections
}

/// What speaks against one run by itself.
pub(super) fn objections(story: &Story, told: &Told, expect: &Expect) -> Vec<String> {
    let mut objections = Vec::new();
    let run = &told.run;
    if !(expect.ends)(run) {
        objections.push(format!("I1: it ends as it should not: {run}"));
    }
    if let Some(first) = story.clients.ended.get(&told.id)
        && first != run
    {
        objections.push(format!("I6: its end was not final: {first} became {run}"));
    }
    let own = story.messages_of(told);
    let answers: Vec<_> = own
        .iter()
        .copied()
        .filter(|message| message["role"] == "assistant" && message["partial"] == false)
        .collect();
    objections.extend(ends_once(told, &own, &answers));
    objections.extend(charges(run, answers.len(), story.asked_for(told).len()));
    objections.extend(events(told, expect));
    objections
}

/// A run has its input once and, if it succeeded, one final message, which is its last.
fn ends_once(told: &Told, own: &[&Value], answers: &[&Value]) -> Vec<String> {
    let run = &told.run;
    let mut objections = Vec::new();
    let inputs = own.iter().filter(|message| {
        message["role"] == "user" && message["content"][0]["type"] != "tool_result"
    });
    let inputs = inputs.count();
    if inputs > 1 || (inputs == 0 && run["attempt"] != 0) {
        objections.push(format!("I4: its input is in the history {inputs} times"));
    }
    if run["state"] != "succeeded" {
        return objections;
    }
    if own.last().map(|last| &last["id"]) != Some(&run["final_message_id"]) {
        objections.push("I4: its final message is not its last".to_owned());
    }
    let finals = answers.iter();
    let finals = finals.filter(|answer| answer["stop_reason"] != "tool_use");
    if finals.count() != 1 {
        objections.push("I4: it has not exactly one final answer".to_owned());
    }
    if run["iterations"] != answers.len() {
        objections.push(format!(
            "I11: {} answers, {}",
            answers.len(),
            run["iterations"]
        ));
    }
    objections
}

/// A run is charged for exactly the answers that were kept, however it ended, and nothing is said to be
/// discarded that was never asked for.
fn charges(run: &Value, kept: usize, asked: usize) -> Vec<String> {
    let mut objections = Vec::new();
    for (field, each) in EACH {
        let cost = &run["usage"][field];
        if *cost != each * kept {
            objections.push(format!("I11: {kept} answers cost {cost} {field}"));
        }
        let discarded = &run["usage_discarded"][field];
        let most = each * asked.saturating_sub(kept);
        if discarded.as_u64().is_none_or(|it| it > most as u64) {
            objections.push(format!(
                "I11: {kept} of {asked} answers were kept, and {discarded} {field} discarded"
            ));
        }
    }
    objections
}

/// Events count up without gaps, end with the only terminal one, and none was written by an attempt after
/// a later one had begun; there is a start for each attempt.
fn events(told: &Told, expect: &Expect) -> Vec<String> {
    let events = &told.events;
    let mut objections = Vec::new();
    if !events
        .iter()
        .map(|event| event.n)
        .eq((1..).take(events.len()))
    {
        objections.push("I6: its events have gaps".to_owned());
    }
    if !events.is_sorted_by_key(|event| event.attempt) {
        objections.push(format!(
            "I3: an old attempt wrote behind a later one: {events:?}"
        ));
    }
    if expect.one_clock && !events.is_sorted_by_key(|event| event.at) {
        objections.push(format!(
            "I3: its events are not in the order of time: {events:?}"
        ));
    }
    let started = events.iter().filter(|event| event.kind == "run.started");
    if started.count() as u64 != told.run["attempt"].as_u64().unwrap_or_default() {
        objections.push("I3: it has not one start for each attempt".to_owned());
    }
    let terminal = |kind: &str| matches!(kind, "run.succeeded" | "run.failed" | "run.cancelled");
    let ends = events.iter().filter(|event| terminal(&event.kind));
    let last = events.last().map(|event| event.n);
    if !ends.map(|event| event.n).eq(last) {
        objections.push(format!(
            "I6: not the last event, or not only it, is an end: {events:?}"
        ));
    }
    let kind = events.last().map(|event| event.kind.as_str());
    let state = told.text("state");
    if kind.and_then(|kind| kind.strip_prefix("run.")) != Some(state) {
        objections.push(format!("I6: it is {state}, and its last event is {kind:?}"));
    }
    objections
}
