//! What a model and its tools do in a whole run, known in advance: what a turn brings depends on nothing
//! but the turn and how often it was tried, and a call's result on nothing but the call.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::bench::{asks, empty, says, unavailable};
use crate::conversation::StopReason;
use crate::model::{ModelFailure, ModelFailureKind, ModelReply};
use crate::run::Progress;
use crate::tool::ToolResult;

/// The turns of a run; behind the last one the model says that it is done.
#[derive(Clone, Debug)]
pub(super) struct Script(pub(super) Vec<Turn>);

/// One turn: what its tries bring, one after the other, and the calls of its answer.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    failures: Vec<Failure>,
    empty_answers: u32,
    truncated: bool,
    calls: Vec<Call>,
}

#[derive(Clone, Copy, Debug)]
enum Failure {
    Unavailable,
    LongWait,
    Blocked(u64),
    Rejected,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    tool: &'static str,
    valid: bool,
}

/// What the model call comes to.
pub(super) enum Outcome {
    Reply(ModelReply),
    Failure(ModelFailure),
    Blocked(Duration),
}

impl Script {
    /// What comes of the model call that a run of this progress makes.
    pub(super) fn outcome(&self, progress: &Progress) -> Outcome {
        let number = progress.resume_turn + 1;
        let Some(turn) = self.0.get(progress.resume_turn as usize) else {
            return Outcome::Reply(says("done"));
        };
        match turn.failures.get(progress.tries as usize) {
            Some(Failure::Unavailable) => return Outcome::Failure(unavailable()),
            Some(Failure::LongWait) => {
                return Outcome::Failure(ModelFailure {
                    retry_after: Some(Duration::from_mins(1)),
                    ..unavailable()
                });
            }
            Some(Failure::Blocked(seconds)) => {
                return Outcome::Blocked(Duration::from_secs(*seconds));
            }
            Some(Failure::Rejected) => {
                return Outcome::Failure(ModelFailure::new(ModelFailureKind::Rejected, "no"));
            }
            None => {}
        }
        if progress.empty_answers < turn.empty_answers {
            return Outcome::Reply(empty(StopReason::EndTurn));
        }
        Outcome::Reply(turn.reply(number))
    }
}

impl Turn {
    fn reply(&self, number: u32) -> ModelReply {
        let ids: Vec<String> = (1..=self.calls.len())
            .map(|position| format!("t{number}_{position}"))
            .collect();
        let named: Vec<(&str, &str)> = ids
            .iter()
            .zip(&self.calls)
            .map(|(id, call)| (id.as_str(), call.tool))
            .collect();
        let invalid = ids.iter().zip(&self.calls).filter(|(_, call)| !call.valid);
        let whole = asks(&named);
        ModelReply {
            invalid_inputs: invalid
                .map(|(id, _)| (id.clone(), "[".to_owned()))
                .collect(),
            stop_reason: if self.truncated {
                StopReason::MaxTokens
            } else {
                whole.stop_reason
            },
            ..whole
        }
    }
}

/// What the call of that id gives whenever it is executed.
pub(super) fn result_of(tool_use_id: &str) -> ToolResult {
    let text = format!("what {tool_use_id} gives");
    if tool_use_id.ends_with('2') {
        ToolResult::error(text)
    } else {
        ToolResult::ok(text)
    }
}

/// Now and then of a model that is cut off each time.
pub(super) fn any_script() -> impl Strategy<Value = Script> {
    (vec(any_turn(), 0..5), prop::bool::weighted(0.2)).prop_map(|(mut turns, cut_off)| {
        for turn in &mut turns {
            turn.truncated |= cut_off;
        }
        Script(turns)
    })
}

/// Mostly turns that go well, or no run would come far.
fn any_turn() -> impl Strategy<Value = Turn> {
    let failures = prop_oneof![
        5 => Just(0..1_usize),
        2 => Just(1..3_usize),
        1 => Just(3..4_usize),
    ];
    let failures = failures.prop_flat_map(|many| vec(any_failure(), many));
    let empty_answers = prop_oneof![5 => Just(0), 2 => 1..3_u32, 1 => Just(3)];
    let truncated = prop::bool::weighted(0.2);
    (failures, empty_answers, truncated, vec(any_call(), 1..5)).prop_map(
        |(failures, empty_answers, truncated, calls)| Turn {
            failures,
            empty_answers,
            truncated,
            calls,
        },
    )
}

fn any_failure() -> impl Strategy<Value = Failure> {
    prop_oneof![
        6 => Just(Failure::Unavailable),
        2 => Just(Failure::LongWait),
        2 => Just(Failure::Blocked(60)),
        1 => Just(Failure::Rejected),
    ]
}

fn any_call() -> impl Strategy<Value = Call> {
    let tool = select(vec!["safe", "safe", "keyed", "unsafe", "gone"]);
    (tool, prop::bool::weighted(0.9)).prop_map(|(tool, valid)| Call { tool, valid })
}
