//! Tools: the journal has every call of the history, all of them settled; nobody was called more often
//! than it says, and never again once the result was on record.

use serde_json::Value;

use super::story::{Story, Told};
use super::{Expect, SKEW};
use crate::moment::Moment;
use crate::support::messages;
use crate::truth::tools::Called;

/// What speaks against the calls of a run.
pub(super) fn objections(story: &Story, told: &Told, expect: &Expect) -> Vec<String> {
    let mut objections = Vec::new();
    let history: Vec<Value> = story.messages_of(told).into_iter().cloned().collect();
    let journaled: Vec<_> = told
        .calls
        .iter()
        .map(|call| text(call, "tool_use_id"))
        .collect();
    if messages::calls(&history) != journaled {
        objections.push("I4: history and journal have different calls".to_owned());
    }
    let seen = story.called_by(told);
    for call in &told.calls {
        let key = text(call, "idempotency_key");
        let arrived: Vec<_> = seen.iter().filter(|called| called.key == key).collect();
        let found = of_call(story, told, call, &arrived, expect);
        objections.extend(found.map(|what| format!("I4: {what}: {call}, arrived {arrived:?}")));
    }
    for called in seen {
        let known = |call: &Value| call["idempotency_key"] == called.key.as_str();
        if !told.calls.iter().any(known) {
            objections.push(format!("I4: nobody asked for {called:?}"));
        }
    }
    objections
}

/// What speaks against one call; `arrived` are those that its service saw.
fn of_call<'a>(
    story: &'a Story,
    told: &'a Told,
    call: &'a Value,
    arrived: &'a [&Called],
    expect: &'a Expect,
) -> impl Iterator<Item = &'static str> + use<> {
    let executions = call["executions"].as_u64().unwrap_or_default();
    let settled = matches!(call["state"].as_str(), Some("finished" | "in_doubt"));
    let unsafe_one = call["name"] == "unsafe";
    let kept = call["state"] == "finished" && told.run["state"] == "succeeded";
    let answered = arrived.iter().any(|called| called.answered == Some(true));
    let recorded = Moment::of_text(&text(call, "finished_at"));
    let late = |called: &&&Called| recorded.is_some_and(|recorded| called.at > recorded.plus(SKEW));
    let same = |called: &&&Called| {
        called.call == text(call, "tool_use_id") && called.tool == text(call, "name")
    };
    [
        (!settled, "a call is not settled"),
        (
            arrived.len() as u64 > executions,
            "a tool was called more often than the journal says",
        ),
        (
            unsafe_one && executions > 1,
            "a call was repeated that must not be",
        ),
        (kept && !answered, "a result was kept that no tool gave"),
        (
            expect.one_clock
                && arrived
                    .iter()
                    .any(|called| late(&called) && !story.is_of_a_sleeper(told, called.at)),
            "a call was made after its result was on record",
        ),
        (
            !arrived.iter().all(|called| same(&called)),
            "a call came under another's key",
        ),
    ]
    .into_iter()
    .filter_map(|(wrong, what)| wrong.then_some(what))
}

fn text(call: &Value, field: &str) -> String {
    call[field].as_str().unwrap_or_default().to_owned()
}
