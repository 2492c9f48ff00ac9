//! Runs, claims and changes for tests: short constructors, everything else as plain as it can be.

use std::time::Duration;

use serde_json::Map;
use uuid::Uuid;

use super::{
    AfterTurn, Answer, Boundary, Change, Closing, End, FailedTry, GiveBack, Lease, MAIN_LANE,
    Outcome, Progress, Reclaim, Record, Repair, RequeueReason, Resume, Retry, Run, RunState,
    StartedCall, StoredMemory, TryFailure, WriteId,
};
use crate::conversation::{Block, NewMessage, Role, StopReason, Usage};
use crate::journal::{CallResult, NewToolCall};
use crate::tool::ToolResult;
use crate::{
    AgentId, MessageId, OwnerId, RunId, RunTrace, SessionId, SpanId, TenantId, Timestamp,
    ToolCallId, TraceId, UserId,
};

/// How long a claim holds.
pub(crate) const TTL: Duration = Duration::from_secs(30);

/// A moment, in seconds after the run was accepted.
pub(crate) fn at(seconds: u64) -> Timestamp {
    Timestamp::from_micros(0).plus(Duration::from_secs(seconds))
}

pub(crate) fn owner(n: u128) -> OwnerId {
    OwnerId(Uuid::from_u128(n))
}

pub(crate) fn message_id(n: u128) -> MessageId {
    MessageId(Uuid::from_u128(n))
}

/// The claim number `attempt` of the one run, by owner 1.
pub(crate) fn lease(attempt: u32) -> Lease {
    Lease {
        run: RunId(Uuid::from_u128(1)),
        owner: owner(1),
        attempt,
    }
}

/// A run that was accepted at second 0.
pub(crate) fn queued() -> Run {
    let run = Run {
        id: RunId(Uuid::from_u128(1)),
        tenant_id: TenantId(Uuid::from_u128(2)),
        session_id: SessionId(Uuid::from_u128(3)),
        agent_id: AgentId(Uuid::from_u128(4)),
        agent_version: 1,
        created_by: UserId(Uuid::from_u128(5)),
        lane: MAIN_LANE.to_owned(),
        session_no: 1,
        state: RunState::Queued,
        attempt: 0,
        stalled_attempts: 0,
        available_at: None,
        progress: Progress::default(),
        input: vec![Block::text("what time is it?")],
        input_message_id: message_id(100),
        metadata: Map::new(),
        iterations: 0,
        usage: Usage::default(),
        usage_discarded: Usage::default(),
        stop_reason: None,
        final_message_id: None,
        memory: StoredMemory::default(),
        trace: RunTrace {
            trace_id: TraceId([1; 16]),
            span_id: SpanId([2; 8]),
            sampled: true,
            created_by_traceparent: None,
        },
        cancel_requested_at: None,
        started_at: None,
        created_at: at(0),
    };
    run.accepted().0
}

/// The run after owner 1 claimed it at second 0.
pub(crate) fn running() -> Run {
    after(queued(), &[claim(1)])
}

/// The run after `changes`, all of them made at second 0.
pub(crate) fn after(run: Run, changes: &[Change]) -> Run {
    changes.iter().fold(run, |run, change| {
        let applied = run.apply(change, at(0)).expect("a legal change");
        applied.run
    })
}

pub(crate) fn claim(by: u128) -> Change {
    Change::Claim {
        owner: owner(by),
        ttl: TTL,
    }
}

pub(crate) fn renew(lease: Lease) -> Change {
    Change::Renew { lease, ttl: TTL }
}

pub(crate) fn write(n: u128) -> WriteId {
    WriteId(Uuid::from_u128(n))
}

pub(crate) fn usage(input_tokens: u64) -> Usage {
    Usage {
        input_tokens,
        ..Usage::default()
    }
}

pub(crate) fn repair(lease: Lease, id: u128) -> Change {
    Change::Repair(Repair {
        lease,
        write: write(id),
        message: NewMessage::user(message_id(id), vec![Block::text("repaired")]),
    })
}

/// An answer that asks for two calls, of which the first starts.
pub(crate) fn answer(lease: Lease, id: u128, turn: u32) -> Change {
    let call = |position: u32| NewToolCall {
        id: ToolCallId(Uuid::from_u128(id * 10 + u128::from(position))),
        position,
        tool_use_id: format!("call_{position}"),
        name: "get_time".to_owned(),
        input: Map::new(),
        invalid_input: None,
        starts: position == 1,
    };
    Change::Answer(Answer {
        lease,
        write: write(id),
        turn,
        message: NewMessage {
            id: message_id(id),
            role: Role::Assistant,
            content: Vec::new(),
            stop_reason: Some(StopReason::ToolUse),
            usage: Some(usage(5)),
            partial: false,
        },
        calls: vec![call(1), call(2)],
    })
}

pub(crate) fn started(position: u32) -> StartedCall {
    StartedCall {
        position,
        tool_use_id: format!("call_{position}"),
        name: "get_time".to_owned(),
    }
}

pub(crate) fn result(position: u32) -> CallResult {
    CallResult {
        position,
        tool_use_id: format!("call_{position}"),
        name: "get_time".to_owned(),
        result: ToolResult::ok("12:00"),
        in_doubt: false,
        duration_ms: Some(3),
    }
}

pub(crate) fn resume(lease: Lease, id: u128, turn: u32) -> Change {
    Change::Resume(Resume {
        lease,
        write: write(id),
        turn,
        starts: vec![started(2)],
        in_doubt: vec![result(1)],
    })
}

pub(crate) fn record(lease: Lease, id: u128, turn: u32) -> Change {
    Change::Record(Record {
        lease,
        write: write(id),
        turn,
        result: result(1),
        starts: Some(started(2)),
    })
}

/// The boundary of a turn.
pub(crate) fn boundary(lease: Lease, id: u128, turn: u32, then: AfterTurn) -> Change {
    Change::CompleteTurn(Boundary {
        lease,
        write: write(id),
        turn,
        results: vec![result(2)],
        message: NewMessage::user(message_id(id), vec![Block::text("results")]),
        memory: None,
        todos: None,
        then,
    })
}

pub(crate) fn go_on(lease: Lease, id: u128, turn: u32) -> Change {
    boundary(lease, id, turn, AfterTurn::GoOn)
}

/// A try that failed after it was shown.
pub(crate) fn shown_try() -> FailedTry {
    FailedTry {
        kind: TryFailure::Provider,
        usage: usage(2),
        shown: true,
    }
}

pub(crate) fn retry(lease: Lease, id: u128, turn: u32, failed: FailedTry) -> Change {
    Change::Retry(Retry {
        lease,
        write: write(id),
        turn,
        failed,
    })
}

pub(crate) fn give_back(lease: Lease, id: u128) -> GiveBack {
    GiveBack {
        lease,
        write: write(id),
        reason: RequeueReason::Drain,
        delay: Duration::ZERO,
        failed: None,
        closing: None,
    }
}

/// An end that completes no turn.
pub(crate) fn end(lease: Lease, id: u128, outcome: Outcome) -> End {
    End::new(lease, write(id), outcome)
}

pub(crate) fn closing() -> Closing {
    Closing {
        message: NewMessage::user(message_id(900), vec![Block::text("closed")]),
        results: vec![result(1), result(2)],
    }
}

/// What a sweep wants that fails a run at its `max_stalled`-th claim without progress.
pub(crate) fn reclaim(max_stalled: u32) -> Change {
    Change::Reclaim(Reclaim {
        max_stalled,
        expired_only: true,
        closing: Some(closing()),
    })
}

/// What a start-up wants that knows of no other process, and never fails a run.
pub(crate) fn take_back() -> Change {
    Change::Reclaim(Reclaim {
        max_stalled: 0,
        expired_only: false,
        closing: Some(closing()),
    })
}
