//! The writes of a run's holder, as a well-behaved one would make them.

use std::time::Duration;

use hango_domain::MessageId;
use hango_domain::conversation::{Block, NewMessage, Role, StopReason, Usage};
use hango_domain::journal::{self, CallResult, ToolCall};
use hango_domain::run::{
    AfterTurn, Answer, Boundary, Change, End, FailedTry, GiveBack, Lease, Outcome, Record, Repair,
    RequeueReason, Retry, StoredMemory, Todo, TodoStatus, TryFailure, WriteId,
};
use hango_domain::tool::ToolResult;
use serde_json::{Map, json};

use crate::{Fixture, Place, owner};

/// What one model call of the checks costs.
pub const USAGE: Usage = Usage {
    input_tokens: 100,
    output_tokens: 20,
    cache_read_tokens: 30,
    cache_write_tokens: 5,
    estimated: false,
};

/// The result of a call that was executed.
#[must_use]
pub fn result_of(call: &ToolCall) -> CallResult {
    let result = ToolResult {
        for_user: Some(format!("{} said so", call.name)),
        ..ToolResult::ok(format!("result {}", call.position))
    };
    call.to_result(result, false, Some(7))
}

impl Fixture {
    /// A new name of a write.
    pub fn write_id(&self) -> WriteId {
        WriteId(self.uuid())
    }

    /// A message of the model that asks for nothing.
    pub fn says(&self, text: &str) -> NewMessage {
        NewMessage {
            id: MessageId(self.uuid()),
            role: Role::Assistant,
            content: vec![Block::text(text)],
            stop_reason: Some(StopReason::EndTurn),
            usage: Some(USAGE),
            partial: false,
        }
    }

    /// Appends a message before the first model call.
    pub fn repair(&self, lease: Lease) -> Repair {
        Repair {
            lease,
            write: self.write_id(),
            message: NewMessage::user(MessageId(self.uuid()), vec![Block::text("(repaired)")]),
        }
    }

    /// Keeps an answer that asks for `calls` tools, of which `starting` begin at once.
    pub fn answer(&self, lease: Lease, turn: u32, calls: u32, starting: usize) -> Answer {
        let call = |position| Block::ToolUse {
            id: format!("call_{turn}_{position}"),
            name: "get_time".to_owned(),
            input: Map::from_iter([("zone".to_owned(), json!("Europe/Vienna"))]),
            provider_data: None,
        };
        let content: Vec<Block> = std::iter::once(Block::text("Let me look."))
            .chain((1..=calls).map(call))
            .collect();
        Answer {
            lease,
            write: self.write_id(),
            turn,
            calls: journal::batch(&content, |_| None, false, starting, || self.uuid()),
            message: NewMessage {
                content,
                stop_reason: Some(StopReason::ToolUse),
                ..self.says("")
            },
        }
    }

    /// Records the result of `call` and begins `next`.
    pub fn record(&self, lease: Lease, call: &ToolCall, next: Option<&ToolCall>) -> Record {
        Record {
            lease,
            write: self.write_id(),
            turn: call.turn,
            result: result_of(call),
            starts: next.map(ToolCall::to_started),
        }
    }

    /// Completes the turn of `calls`, with the results of those that are open.
    pub fn boundary(&self, lease: Lease, turn: u32, calls: &[ToolCall]) -> Boundary {
        let open = calls.iter().filter(|call| !call.is_settled());
        Boundary {
            lease,
            write: self.write_id(),
            turn,
            results: open.map(result_of).collect(),
            message: self.results(calls),
            memory: Some(StoredMemory {
                version: hango_domain::memory::MEMORY_VERSION,
                json: json!({"todos": [], "private": {"turn": turn}}),
            }),
            todos: Some(vec![Todo {
                content: "look at the clock".to_owned(),
                status: TodoStatus::InProgress,
            }]),
            then: AfterTurn::GoOn,
        }
    }

    /// The message with the results of a batch, open calls with theirs.
    pub fn results(&self, calls: &[ToolCall]) -> NewMessage {
        let settled: Vec<(String, ToolResult)> = calls
            .iter()
            .map(|call| {
                let result = call.result.clone();
                let result = result.unwrap_or_else(|| result_of(call).result);
                (call.tool_use_id.clone(), result)
            })
            .collect();
        let settled = settled.iter().map(|(id, result)| (id.as_str(), result));
        journal::results_message(MessageId(self.uuid()), settled)
    }

    /// Notes a failed try.
    pub fn retry(&self, lease: Lease, turn: u32) -> Retry {
        Retry {
            lease,
            write: self.write_id(),
            turn,
            failed: FailedTry {
                kind: TryFailure::Provider,
                usage: USAGE,
                shown: true,
            },
        }
    }

    /// Gives the run back, to be claimed after `delay`.
    pub fn give_back(&self, lease: Lease, delay: Duration) -> GiveBack {
        GiveBack {
            lease,
            write: self.write_id(),
            reason: RequeueReason::Drain,
            delay,
            failed: None,
            closing: None,
        }
    }

    /// Ends the run well, with the answer of `turn`.
    pub fn finish(&self, lease: Lease, turn: u32) -> End {
        let answer = self.says("It is noon.");
        End {
            lease,
            write: self.write_id(),
            outcome: Outcome::Succeeded,
            stop_reason: Some(StopReason::EndTurn),
            turn: Some(turn),
            results: Vec::new(),
            final_message_id: Some(answer.id),
            messages: vec![answer],
            usage: USAGE,
            usage_discarded: Usage::default(),
            memory: None,
            todos: None,
        }
    }

    /// A run that the first process holds, its first answer on record: it asks for `calls` tools, of
    /// which `starting` began.
    pub async fn answered(&self, calls: u32, starting: usize) -> (Place, Lease, Vec<ToolCall>) {
        let (place, lease) = self.running().await;
        assert_eq!(lease.owner, owner(1));
        let answer = self.answer(lease, 1, calls, starting);
        self.written(Change::Answer(answer)).await;
        let calls = self.on_record(&place, lease.run).await.calls;
        (place, lease, calls)
    }
}
