use futures::executor::block_on;
use serde_json::{Value, json};

use super::*;
use crate::chain::Chain;
use crate::fixtures::{context, tool_call};
use crate::middleware::MockToolHandler;
use crate::note::Notes;
use crate::tool::ToolFailure;
use crate::tool::View;
use std::sync::Arc;

fn chain() -> Chain {
    Chain::new(vec![Arc::new(RepeatCall::new(3))])
}

fn call(position: u32, name: &str, input: &Value) -> ToolRequest {
    ToolRequest {
        position,
        input: input.as_object().cloned().unwrap_or_default(),
        ..tool_call(name)
    }
}

/// Calls of one tool with the same arguments.
fn same(count: u32) -> Vec<ToolRequest> {
    (1..=count).map(|at| call(at, "look", &json!({}))).collect()
}

fn batch(memory: RunMemory, calls: Vec<ToolRequest>) -> Batch {
    Batch::new(memory, Notes::default()).of(calls)
}

/// Which positions are executed when the calls of a batch come in that order; the memory after it.
fn executed(memory: RunMemory, calls: Vec<ToolRequest>, order: &[usize]) -> (Vec<u32>, RunMemory) {
    let batch = batch(memory, calls);
    let mut executed = Vec::new();
    for at in order {
        let call = batch.calls()[*at].clone();
        let position = call.position;
        let mut base = MockToolHandler::new();
        base.expect_call().returning(|_, _| ToolResult::ok("done"));
        if block_on(chain().tool(call, &batch, &base)) == ToolResult::ok("done") {
            executed.push(position);
        }
    }
    executed.sort_unstable();
    (executed, batch.into_memory())
}

#[test]
fn the_third_call_is_answered_with_a_nudge_and_not_executed() {
    let batch = batch(RunMemory::default(), same(4));
    let mut base = MockToolHandler::new();
    base.expect_call()
        .times(2)
        .returning(|_, _| ToolResult::ok("done"));

    let results = batch.calls().iter().cloned();
    let results: Vec<_> = results
        .map(|call| block_on(chain().tool(call, &batch, &base)))
        .collect();

    let nudge = |made| {
        let text = format!(
            "this exact call was already made {made} times; use the previous result or change approach"
        );
        ToolResult::failed(ToolFailure::RepeatBlocked, text)
    };
    let done = ToolResult::ok("done");
    assert_eq!(results, [done.clone(), done, nudge(2), nudge(3)]);
    let blocked = Note::RepeatCallBlocked {
        tool: "look".to_owned(),
    };
    assert_eq!(batch.notes().take(), [blocked.clone(), blocked]);
}

#[test]
fn calls_are_counted_across_batches_and_attempts() {
    let mut memory = RunMemory::default();
    let mut passed = Vec::new();
    for _ in 0..4 {
        let (executed, after) = executed(memory, same(1), &[0]);
        passed.push(executed.len());
        memory = RunMemory::from_stored(&after.to_stored()).expect("it was stored");
    }

    assert_eq!(passed, [1, 1, 0, 0]);
    let counts: Option<Counts> = memory.load(RepeatCall::NAME).expect("counts");
    assert_eq!(
        counts.map(|counts| counts.made.into_values().collect()),
        Some(vec![4])
    );
}

#[test]
fn a_call_is_the_same_by_name_and_value() {
    let look = |text: &str| call(1, "look", &serde_json::from_str(text).expect("JSON"));
    let first = key(&look(r#"{"a": 1, "b": [1.5, "x"]}"#));

    for same in [
        r#"{"b":[1.5,"x"],"a":1}"#,
        r#"{ "a" : 1.0 , "b" : [ 15e-1, "\u0078" ] }"#,
        r#"{"a": 1e0, "b": [1.50, "x"]}"#,
    ] {
        assert_eq!(key(&look(same)), first, "{same}");
    }
    for other in [
        r#"{"a": 2, "b": [1.5, "x"]}"#,
        r#"{"a": "1", "b": [1.5, "x"]}"#,
        r#"{"a": 1, "b": ["x", 1.5]}"#,
        r#"{"a": 1, "b": [1.5, "x"], "c": null}"#,
    ] {
        assert_ne!(key(&look(other)), first, "{other}");
    }
    let other_tool = ToolRequest {
        name: "Look".to_owned(),
        ..look(r#"{"a": 1, "b": [1.5, "x"]}"#)
    };
    assert_ne!(key(&other_tool), first);
}

#[test]
fn text_that_no_store_keeps_is_the_same_call_before_and_after_a_restart() {
    let live = call(1, "lo\0ok", &json!({"\0": "a\0"}));
    let stored = call(1, "lo\u{fffd}ok", &json!({"\u{fffd}": "a\u{fffd}"}));

    assert_eq!(key(&live), key(&stored));
}

#[test]
fn of_equal_calls_in_a_batch_the_first_ones_are_executed_in_whatever_order_they_come() {
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let (executed, _) = executed(RunMemory::default(), same(3), &order);

        assert_eq!(executed, [1, 2], "{order:?}");
    }
}

#[test]
fn a_batch_that_goes_on_in_a_new_attempt_counts_each_call_once() {
    let calls = same(3);
    let batch = batch(RunMemory::default(), calls.clone());
    let chain = chain();

    // The third call was blocked before the crash, and its result is on record.
    let on_record = ToolResult::error("blocked");
    block_on(chain.replay(calls[2].clone(), on_record, &View::default(), &batch));
    let mut base = MockToolHandler::new();
    base.expect_call()
        .times(2)
        .returning(|_, _| ToolResult::ok("done"));
    for call in &calls[..2] {
        let result = block_on(chain.tool(call.clone(), &batch, &base));
        assert_eq!(result, ToolResult::ok("done"));
    }

    let counts: Option<Counts> = batch.into_memory().load(RepeatCall::NAME).expect("counts");
    assert_eq!(
        counts.map(|counts| counts.made.into_values().collect()),
        Some(vec![3])
    );
}

#[test]
fn a_first_attempt_begins_with_no_counts_and_nobody_is_told() {
    let (memory, notes) = before_run(RunMemory::default(), false).expect("nothing to fail");

    assert_eq!(
        memory.load(RepeatCall::NAME).ok(),
        Some(Some(Counts::default()))
    );
    assert_eq!(notes, []);
}

#[test]
fn a_resumed_run_without_counts_begins_anew_and_says_so_once() {
    let (memory, notes) = before_run(RunMemory::default(), true).expect("nothing to fail");
    let missing = Note::StateMissing {
        layer: "repeat_call",
    };
    assert_eq!(notes, [missing]);

    let (again, notes) = before_run(memory.clone(), true).expect("nothing to fail");
    assert_eq!((again, notes), (memory, vec![]));
}

#[test]
fn counts_that_cannot_be_read_let_no_run_begin() {
    for damaged in [
        json!("text"),
        json!({"made": {"x": -1}}),
        json!({"seen": {}}),
    ] {
        let mut memory = RunMemory::default();
        memory
            .store(RepeatCall::NAME, &damaged)
            .expect("a JSON form");

        let error = before_run(memory, true)
            .expect_err("it is damaged")
            .to_string();

        assert!(error.starts_with("what repeat_call remembers"), "{error}");
    }
}

fn before_run(
    mut memory: RunMemory,
    resumed: bool,
) -> Result<(RunMemory, Vec<Note>), BeforeRunError> {
    let (context, notes) = (context(), Notes::default());
    let run = RunView {
        context: &context,
        history: &[],
        resumed,
        notes: &notes,
    };
    block_on(chain().before_run(&run, &mut memory))?;
    Ok((memory, notes.take()))
}
