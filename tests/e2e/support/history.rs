//! The invariants that hold after every test, checked from outside: what the client was promised, what
//! the provider and the tools saw, and what hango says, must be one story.

use std::collections::BTreeMap;

use serde_json::Value;

use super::api::{has_ended, text};
use super::messages;
use super::tools::CLASSES;
use super::world::{Accepted, World};

/// What a model is told of a call that was not executed because the run had made it too often.
const NUDGE: &str = "this exact call was already made";

/// What a model is told of a call that was not answered in time, by whoever noticed first: the tool, or the
/// engine.
pub(crate) const LEFT: [&str; 2] = [
    "the tool's service did not answer within",
    "the tool did not return within",
];

/// Waits until every accepted run has ended as `state`, then checks everything.
pub(crate) async fn all_ended(world: &World, state: &str) {
    for run in world.accepted() {
        let ended = world.api.ended(&run.id).await;
        assert_eq!(ended["state"], state, "{ended:#}");
    }
    check(world).await;
}

/// Checks everything; all accepted runs have ended.
pub(crate) async fn check(world: &World) {
    assert_eq!(world.provider.refused(), Vec::<String>::new());
    let mut sessions: BTreeMap<String, Vec<Accepted>> = BTreeMap::new();
    for run in world.accepted() {
        sessions.entry(run.session.clone()).or_default().push(run);
    }
    for (session, runs) in sessions {
        let messages = world.api.messages(&session).await;
        assert_eq!(messages::objection(&messages), None, "{messages:#?}");
        let mut before: Option<Value> = None;
        for accepted in &runs {
            let run = world.api.run(&accepted.id).await;
            assert!(has_ended(&run), "an accepted run is lost: {run:#}");
            in_order(before.as_ref(), &run);
            let own: Vec<_> = messages
                .iter()
                .filter(|message| message["run_id"] == accepted.id.as_str())
                .collect();
            ends_once(&run, &own);
            journal_is_true(world, &run, &own).await;
            events_are_whole(world, &accepted.id).await;
            assert_eq!(
                run,
                world.api.run(&accepted.id).await,
                "the end was not final"
            );
            before = Some(run);
        }
    }
}

/// Runs of a session do not overlap, and execute in the order in which they were created.
fn in_order(before: Option<&Value>, run: &Value) {
    let Some(before) = before else { return };
    if run["started_at"].is_null() || before["started_at"].is_null() {
        return;
    }
    // The contract's timestamps sort as texts.
    let (ended, started) = (text(&before["finished_at"]), text(&run["started_at"]));
    assert!(ended <= started, "{before:#} overlaps {run:#}");
}

/// A run has its input once and, if it succeeded, one final message, which is its last; it is charged
/// for exactly the answers that were kept.
fn ends_once(run: &Value, own: &[&Value]) {
    let inputs = own.iter().filter(|message| {
        message["role"] == "user" && message["content"][0]["type"] != "tool_result"
    });
    let answers: Vec<_> = own
        .iter()
        .filter(|message| message["role"] == "assistant" && message["partial"] == false)
        .collect();
    if run["state"] == "succeeded" {
        assert_eq!(inputs.count(), 1, "{own:#?}");
        let last = own.last().expect("a run that succeeded has messages");
        assert_eq!(run["final_message_id"], last["id"], "{run:#} {own:#?}");
        let finals = answers
            .iter()
            .filter(|answer| answer["stop_reason"] != "tool_use");
        assert_eq!(finals.count(), 1, "{own:#?}");
        assert_eq!(run["iterations"], answers.len(), "{run:#}");
        for (field, each) in [("input_tokens", 10), ("output_tokens", 5)] {
            assert_eq!(run["usage"][field], each * answers.len(), "{run:#}");
        }
    }
}

/// The journal has every call of the history, all of them settled, and no tool saw more than it says.
async fn journal_is_true(world: &World, run: &Value, own: &[&Value]) {
    let calls = world.api.tool_calls(&text(&run["id"])).await;
    let history: Vec<Value> = own.iter().copied().cloned().collect();
    let journaled: Vec<_> = calls
        .iter()
        .map(|call| text(&call["tool_use_id"]))
        .collect();
    assert_eq!(messages::calls(&history), journaled);

    let seen = world.tools.calls_of(&text(&run["id"]));
    for call in &calls {
        let key = text(&call["idempotency_key"]);
        let arrived: Vec<_> = seen.iter().filter(|called| called.key == key).collect();
        let settled = matches!(call["state"].as_str(), Some("finished" | "in_doubt"));
        assert!(settled, "{call:#}");
        if !CLASSES.contains(&call["name"].as_str().unwrap_or_default()) {
            continue;
        }
        let executions = call["executions"].as_u64().unwrap_or_default();
        assert!(arrived.len() as u64 <= executions, "{call:#} {arrived:#?}");
        assert!(call["name"] != "unsafe" || executions <= 1, "{call:#}");
        for called in &arrived {
            assert_eq!(called.call, text(&call["tool_use_id"]));
            assert_eq!(called.tool, text(&call["name"]));
            let trace = text(&run["trace_id"]);
            assert!(called.traceparent.contains(&trace), "{called:#?}");
        }
        let told = world.provider.told_of(&text(&call["tool_use_id"]));
        let was_told = |what| told.as_ref().is_some_and(|told| told.starts_with(what));
        if was_told(NUDGE) {
            assert!(arrived.is_empty(), "a blocked call was made: {arrived:#?}");
        } else if LEFT.into_iter().any(was_told) {
            let answered = arrived.iter().any(|called| called.answered == Some(true));
            assert!(!answered, "it returned: {call:#} {arrived:#?}");
        } else if run["state"] == "succeeded" && call["state"] == "finished" {
            let answered = arrived
                .iter()
                .filter(|called| called.answered == Some(true));
            assert_ne!(answered.count(), 0, "{call:#} {arrived:#?}");
        }
    }
    let keys: Vec<_> = calls
        .iter()
        .map(|call| text(&call["idempotency_key"]))
        .collect();
    for called in seen {
        assert!(keys.contains(&called.key), "nobody asked for {called:#?}");
    }
}

/// Events count up without gaps, end with the only terminal one, and none was written by an attempt
/// after a later one had begun.
async fn events_are_whole(world: &World, run: &str) {
    let events = world.home.store().events(run).await;
    let numbers: Vec<_> = events.iter().map(|event| event.n).collect();
    let counted: Vec<_> = (1..).take(events.len()).collect();
    assert_eq!(numbers, counted);
    assert!(
        events.is_sorted_by_key(|event| event.attempt),
        "{events:#?}"
    );
    let terminal = |kind: &Value| {
        let kind = kind["type"].as_str();
        matches!(kind, Some("run.succeeded" | "run.failed" | "run.cancelled"))
    };
    let ends: Vec<_> = events
        .iter()
        .filter(|event| terminal(&event.kind))
        .map(|event| event.n)
        .collect();
    assert_eq!(ends, numbers[numbers.len() - 1..], "{events:#?}");
}
