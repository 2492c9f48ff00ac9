//! The tool calls of one answer: which begin, which are answered without being executed, and when the
//! turn is complete.

use super::{AfterSave, AgentLoop, MOST_IN_A_ROW, Step};
use crate::RunId;
use crate::Timestamp;
use crate::conversation::{Message, Role, StopReason};
use crate::journal::{self, CallResult, NewToolCall, ToolCall};
use crate::run::{AfterTurn, Boundary, Change, Record, Resume, Run};
use crate::tool::{ToolFailure, ToolResult};

/// What the model sees of a call that was cut off.
const CUT_OFF: &str = "The answer was cut off at its token limit, so this call may be incomplete and \
                       was not executed. Make it again with shorter arguments, or in smaller steps.";

/// An answered turn whose calls are not all settled in the history.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Batch {
    pub(super) turn: u32,
    /// The journal as it stands, by position.
    pub(super) calls: Vec<ToolCall>,
    /// Whether the answer was cut off, so that none of its calls is executed.
    truncated: bool,
    /// Results that are known and go with the boundary.
    pub(super) unrecorded: Vec<CallResult>,
}

impl Batch {
    /// The batch of a fresh answer.
    pub(super) fn begin(run: RunId, turn: u32, calls: &[NewToolCall], truncated: bool) -> Self {
        // The store has its own moments; these calls are only executed from.
        let now = Timestamp::from_micros(0);
        let calls = calls
            .iter()
            .map(|call| ToolCall::begin(run, turn, call.clone(), now))
            .collect();
        let mut batch = Self {
            turn,
            calls,
            truncated,
            unrecorded: Vec::new(),
        };
        batch.answer_unexecutable();
        batch
    }

    /// The batch that an earlier attempt left open, if it did.
    pub(super) fn reopen(run: &Run, history: &[Message], calls: Vec<ToolCall>) -> Option<Self> {
        let answer = &history[journal::open_answer(run, history)?];
        let mut batch = Self {
            turn: run.progress.answered_turn,
            calls,
            truncated: answer.stop_reason == Some(StopReason::MaxTokens),
            unrecorded: Vec::new(),
        };
        batch.answer_unexecutable();
        Some(batch)
    }

    /// Answers the calls that are never executed: cut off, or with arguments that are no object.
    fn answer_unexecutable(&mut self) {
        for at in 0..self.calls.len() {
            let call = &self.calls[at];
            let result = match &call.invalid_input {
                _ if call.is_settled() => continue,
                _ if self.truncated => ToolResult::failed(ToolFailure::Truncated, CUT_OFF),
                Some(_) => ToolResult::failed(
                    ToolFailure::InvalidArgs,
                    format!(
                        "The arguments of this call are not a JSON object, so it was not executed. \
                         Call {} again with one JSON object.",
                        call.name
                    ),
                ),
                None => continue,
            };
            let result = call.to_result(result, false, None);
            self.settle(&result);
            self.unrecorded.push(result);
        }
    }

    pub(super) fn started(&self) -> Vec<ToolCall> {
        let started = |call: &&ToolCall| call.state == journal::CallState::Started;
        self.calls.iter().filter(started).cloned().collect()
    }

    fn settle(&mut self, result: &CallResult) {
        if let Some(call) = self.call_mut(result.position) {
            *call = call.clone().settled(result, Timestamp::from_micros(0));
        }
    }

    fn start(&mut self, position: u32) -> Option<ToolCall> {
        let call = self.call_mut(position)?;
        *call = call.clone().started(Timestamp::from_micros(0));
        Some(call.clone())
    }

    fn start_next(&mut self) -> Option<ToolCall> {
        let pending = |call: &&ToolCall| call.state == journal::CallState::Pending;
        let position = self.calls.iter().find(pending)?.position;
        self.start(position)
    }

    fn call_mut(&mut self, position: u32) -> Option<&mut ToolCall> {
        self.calls.iter_mut().find(|call| call.position == position)
    }

    /// Whether the call at `position` is being executed.
    pub(super) fn executes(&self, position: u32) -> bool {
        let mut calls = self.calls.iter();
        calls.any(|call| call.position == position && call.state == journal::CallState::Started)
    }

    pub(super) fn is_settled(&self) -> bool {
        self.calls.iter().all(ToolCall::is_settled)
    }

    /// The calls that were or are to be executed.
    fn executable(&self) -> impl Iterator<Item = &ToolCall> {
        let executable = |call: &&ToolCall| call.executions > 0 || !call.is_settled();
        self.calls.iter().filter(executable)
    }
}

impl AgentLoop {
    /// The calls of the open turn that were or are to be executed, by position.
    #[must_use]
    pub fn open_calls(&self) -> Vec<ToolCall> {
        let open = self.open.iter();
        open.flat_map(Batch::executable).cloned().collect()
    }

    /// Those of them that an earlier attempt executed and this one does not: their results are on
    /// record, or nobody will ever know them. Ask before the loop begins.
    #[must_use]
    pub fn passed_calls(&self) -> Vec<ToolCall> {
        let mut calls = self.open_calls();
        let plan = journal::resume(&calls, |name| self.classes.get(name).copied());
        calls.retain(|call| !plan.execute.contains(&call.position));
        calls
    }

    /// Goes on with the calls that an earlier attempt left open: those that may be executed are, the
    /// others are in doubt, and both are on record before anything begins.
    pub(super) fn resume_batch(&mut self) -> Step {
        let Some(mut batch) = self.open.take() else {
            return self.next_turn();
        };
        let plan = journal::resume(&batch.calls, |name| self.classes.get(name).copied());
        for result in &plan.in_doubt {
            batch.settle(result);
        }
        let begun: Vec<ToolCall> = plan
            .execute
            .iter()
            .take(self.limits.tool_concurrency.max(1))
            .filter_map(|position| batch.start(*position))
            .collect();
        // What waits for its place is pending again, whatever it was before the crash.
        for position in plan.execute.iter().skip(begun.len()) {
            if let Some(call) = batch.call_mut(*position) {
                call.state = journal::CallState::Pending;
            }
        }
        let turn = batch.turn;
        self.open = Some(batch);
        if plan.in_doubt.is_empty() && begun.is_empty() {
            return self.complete_turn();
        }
        let resume = Resume {
            lease: self.lease,
            write: self.write_id(),
            turn,
            starts: begun.iter().map(ToolCall::to_started).collect(),
            in_doubt: plan.in_doubt,
        };
        self.save(Change::Resume(resume), AfterSave::Execute(begun))
    }

    pub(super) fn tool_returned(
        &mut self,
        position: u32,
        result: ToolResult,
        duration_ms: u64,
    ) -> Step {
        let Some(batch) = &mut self.open else {
            return self.end_internal("a tool returned outside of a batch");
        };
        let Some(call) = batch.call_mut(position) else {
            return self.end_internal("a tool returned that is not in the batch");
        };
        let result = call.to_result(result, false, Some(duration_ms));
        batch.settle(&result);
        if batch.is_settled() {
            batch.unrecorded.push(result);
            return self.complete_turn();
        }
        let next = batch.start_next();
        let turn = batch.turn;
        let record = Record {
            lease: self.lease,
            write: self.write_id(),
            turn,
            result,
            starts: next.as_ref().map(ToolCall::to_started),
        };
        let begin = next.into_iter().collect();
        self.save(Change::Record(record), AfterSave::Execute(begin))
    }

    /// Every call is answered: the turn is complete, and with it perhaps the run.
    pub(super) fn complete_turn(&mut self) -> Step {
        let Some(batch) = self.open.take() else {
            return self.next_turn();
        };
        let Batch {
            turn,
            calls,
            truncated,
            unrecorded: results,
        } = batch;
        let message = journal::results_message(self.message_id(), settled(&calls));
        if truncated && self.truncated_in_a_row() >= MOST_IN_A_ROW {
            return self.end_truncated(results, message, turn);
        }
        if turn >= self.limits.max_iterations {
            return self.end_max_iterations(results, vec![message], Some(turn));
        }
        self.remember(message.clone());
        self.run.progress.resume_turn = turn;
        self.run.progress.tries = 0;
        self.run.progress.empty_answers = 0;
        let (then, after) = match self.give_back {
            Some(reason) => (AfterTurn::GiveBack(reason), AfterSave::Done),
            None => (AfterTurn::GoOn, AfterSave::NextTurn),
        };
        let boundary = Boundary {
            lease: self.lease,
            write: self.write_id(),
            turn,
            results,
            message,
            memory: None,
            todos: None,
            then,
        };
        self.save(Change::CompleteTurn(boundary), after)
    }

    /// How many answers of this run, the last ones, were cut off inside a tool call.
    fn truncated_in_a_row(&self) -> u32 {
        let cut_off = |message: &&Message| {
            message.run_id == Some(self.run.id)
                && message.stop_reason == Some(StopReason::MaxTokens)
                && journal::asks_for_tools(message)
        };
        let answers = self
            .messages
            .iter()
            .rev()
            .filter(|message| message.role == Role::Assistant);
        u32::try_from(answers.take_while(cut_off).count()).unwrap_or(u32::MAX)
    }
}

/// The results of a batch, in the order of the calls.
fn settled(calls: &[ToolCall]) -> impl Iterator<Item = (&str, &ToolResult)> {
    calls
        .iter()
        .filter_map(|call| Some((call.tool_use_id.as_str(), call.result.as_ref()?)))
}
