//! Runs and their journal as callers see them.

use hango_domain::conversation::{Block, StopReason, Usage};
use hango_domain::journal::{CallState, ToolCall};
use hango_domain::memory::RunMemory;
use hango_domain::run::{Run, RunError, RunStatus, Todo};
use hango_domain::{
    AgentId, MessageId, RunId, RunTrace, SessionId, SpanId, TenantId, ToolCallId, TraceId, UserId,
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::openapi::schema;
use crate::time::Time;

/// A run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Run)]
pub(crate) struct RunBody {
    #[schema(value_type = Uuid)]
    id: RunId,
    #[schema(value_type = Uuid)]
    tenant_id: TenantId,
    #[schema(value_type = Uuid)]
    session_id: SessionId,
    #[schema(value_type = Uuid)]
    agent_id: AgentId,
    agent_version: u32,
    #[schema(value_type = Uuid)]
    created_by: UserId,
    lane: String,
    #[schema(schema_with = schema::run_state)]
    state: RunStatus,
    resume_turn: u32,
    attempt: u32,
    #[schema(schema_with = schema::content)]
    input: Vec<Block>,
    #[schema(schema_with = schema::object)]
    metadata: Map<String, Value>,
    #[schema(schema_with = schema::run_error)]
    error: Option<RunError>,
    #[schema(schema_with = schema::stop_reason)]
    stop_reason: Option<StopReason>,
    iterations: u32,
    #[schema(schema_with = schema::usage)]
    usage: Usage,
    #[schema(schema_with = schema::usage)]
    usage_discarded: Usage,
    #[schema(value_type = Option<Uuid>)]
    final_message_id: Option<MessageId>,
    #[schema(schema_with = schema::todos)]
    todos: Vec<Todo>,
    #[schema(value_type = String, pattern = "^[0-9a-f]{32}$")]
    trace_id: TraceId,
    #[schema(value_type = String, pattern = "^[0-9a-f]{16}$")]
    span_id: SpanId,
    cancel_requested_at: Option<Time>,
    started_at: Option<Time>,
    finished_at: Option<Time>,
    created_at: Time,
}

/// An entry of a run's journal.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolCall)]
pub(crate) struct ToolCallBody {
    #[schema(value_type = Uuid)]
    id: ToolCallId,
    tool_use_id: String,
    turn: u32,
    position: u32,
    name: String,
    #[schema(schema_with = schema::call_state)]
    state: CallState,
    idempotency_key: String,
    executions: u32,
    is_error: Option<bool>,
    started_at: Option<Time>,
    finished_at: Option<Time>,
}

impl From<Run> for RunBody {
    fn from(run: Run) -> Self {
        let Run {
            id,
            tenant_id,
            session_id,
            agent_id,
            agent_version,
            created_by,
            lane,
            session_no: _,
            state,
            attempt,
            stalled_attempts: _,
            available_at: _,
            progress,
            input,
            input_message_id: _,
            metadata,
            iterations,
            usage,
            usage_discarded,
            stop_reason,
            final_message_id,
            memory,
            trace:
                RunTrace {
                    trace_id,
                    span_id,
                    sampled: _,
                    created_by_traceparent: _,
                },
            cancel_requested_at,
            started_at,
            created_at,
        } = run;
        // A memory that this build cannot read has a plan that it cannot show.
        let todos = RunMemory::from_stored(&memory).map(|memory| memory.todos);
        Self {
            id,
            tenant_id,
            session_id,
            agent_id,
            agent_version,
            created_by,
            lane,
            state: state.status(),
            resume_turn: progress.resume_turn,
            attempt,
            input,
            metadata,
            error: state.error().cloned(),
            stop_reason,
            iterations,
            usage,
            usage_discarded,
            final_message_id,
            todos: todos.unwrap_or_default(),
            trace_id,
            span_id,
            cancel_requested_at: cancel_requested_at.map(Time),
            started_at: started_at.map(Time),
            finished_at: state.finished_at().map(Time),
            created_at: Time(created_at),
        }
    }
}

impl From<ToolCall> for ToolCallBody {
    fn from(call: ToolCall) -> Self {
        let idempotency_key = call.idempotency_key();
        let ToolCall {
            id,
            run_id: _,
            turn,
            position,
            tool_use_id,
            name,
            input: _,
            invalid_input: _,
            state,
            executions,
            result,
            started_at,
            finished_at,
        } = call;
        Self {
            id,
            tool_use_id,
            turn,
            position,
            name,
            state,
            idempotency_key,
            executions,
            is_error: result.map(|result| result.is_error),
            started_at: started_at.map(Time),
            finished_at: finished_at.map(Time),
        }
    }
}
