//! Small values for the tests of chain and layers.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Map;
use uuid::Uuid;

use crate::conversation::{Block, Message, Role, StopReason, Usage};
use crate::middleware::ToolRequest;
use crate::model::{CallContext, ModelCall, ModelReply};
use crate::tool::ToolDef;
use crate::tool::schema;
use crate::{AgentId, MessageId, RunId, RunTrace, SessionId, SpanId, TenantId, Timestamp, TraceId};

pub(crate) fn context() -> CallContext {
    CallContext {
        tenant: TenantId(Uuid::from_u128(1)),
        agent: AgentId(Uuid::from_u128(2)),
        session: SessionId(Uuid::from_u128(3)),
        run: RunId(Uuid::from_u128(4)),
        turn: 1,
        attempt: 1,
        trace: RunTrace {
            trace_id: TraceId([1; 16]),
            span_id: SpanId([2; 8]),
            sampled: true,
            created_by_traceparent: None,
        },
    }
}

/// A message that no run brought.
pub(crate) fn said(seq: u64, role: Role, block: Block) -> Message {
    Message {
        id: MessageId(Uuid::from_u128(seq.into())),
        session_id: context().session,
        run_id: None,
        seq,
        role,
        content: vec![block],
        stop_reason: None,
        usage: None,
        partial: false,
        created_at: Timestamp::from_micros(0),
    }
}

pub(crate) fn model_call() -> ModelCall {
    ModelCall {
        context: Arc::new(context()),
        model: "m".to_owned(),
        system: Vec::new(),
        messages: Arc::new(vec![said(1, Role::User, Block::text("hi"))]),
        tools: Vec::new(),
        max_tokens: None,
        temperature: None,
    }
}

pub(crate) fn reply(text: &str) -> ModelReply {
    ModelReply {
        content: vec![Block::text(text)],
        stop_reason: StopReason::EndTurn,
        usage: Usage::default(),
        invalid_inputs: BTreeMap::new(),
    }
}

pub(crate) fn tool_call(name: &str) -> ToolRequest {
    ToolRequest {
        context: Arc::new(context()),
        position: 1,
        name: name.to_owned(),
        input: Map::new(),
        tool_use_id: "call_1".to_owned(),
        idempotency_key: "key".to_owned(),
    }
}

pub(crate) fn tool(name: &str) -> ToolDef {
    ToolDef {
        name: name.to_owned(),
        description: String::new(),
        parameters: schema::object([]),
    }
}

pub(crate) fn tool_use(id: &str) -> Block {
    Block::ToolUse {
        id: id.to_owned(),
        name: "get_time".to_owned(),
        input: Map::new(),
        provider_data: None,
    }
}
