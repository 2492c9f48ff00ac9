//! Conversations for tests.

use std::sync::Arc;

use futures::StreamExt;
use futures::executor::block_on;
use hango_domain::accumulator::Accumulator;
use hango_domain::conversation::{Block, Message, NewMessage, Role};
use hango_domain::model::{CallContext, ModelCall, ModelFailure, ModelReply};
use hango_domain::tool::{ToolDef, schema};
use hango_domain::{
    AgentId, MessageId, RunId, RunTrace, SessionId, SpanId, TenantId, Timestamp, TraceId,
};
use hango_ports::Provider;
use serde_json::Map;
use uuid::Uuid;

/// A call that sends these messages, with `get_time` as its only tool.
pub(crate) fn call(messages: impl IntoIterator<Item = Message>) -> ModelCall {
    ModelCall {
        context: Arc::new(CallContext {
            tenant: TenantId(Uuid::nil()),
            agent: AgentId(Uuid::nil()),
            session: SessionId(Uuid::nil()),
            run: RunId(Uuid::nil()),
            turn: 1,
            attempt: 1,
            trace: RunTrace {
                trace_id: TraceId([1; 16]),
                span_id: SpanId([1; 8]),
                sampled: false,
                created_by_traceparent: None,
            },
        }),
        model: "demo".to_owned(),
        system: Vec::new(),
        messages: Arc::new(messages.into_iter().collect()),
        tools: vec![ToolDef {
            name: "get_time".to_owned(),
            description: "Tells the time.".to_owned(),
            parameters: schema::object([]),
        }],
        max_tokens: None,
        temperature: None,
    }
}

pub(crate) fn user(block: Block) -> Message {
    message(Role::User, vec![block])
}

pub(crate) fn assistant(content: impl Into<Vec<Block>>) -> Message {
    message(Role::Assistant, content.into())
}

pub(crate) fn tool_use(id: &str, name: &str) -> Block {
    Block::ToolUse {
        id: id.to_owned(),
        name: name.to_owned(),
        input: Map::new(),
        provider_data: None,
    }
}

pub(crate) fn result(id: &str, content: &str) -> Block {
    Block::ToolResult {
        tool_use_id: id.to_owned(),
        content: content.to_owned(),
        for_user: None,
        is_error: false,
    }
}

/// The whole answer to a call. Only for providers that wait for nothing.
pub(crate) fn answer(provider: &dyn Provider, call: ModelCall) -> Result<ModelReply, ModelFailure> {
    block_on(async {
        let mut answer = Accumulator::new("unused");
        let mut stream = provider.stream(call).await?;
        while let Some(event) = stream.next().await {
            answer.push(event?)?;
        }
        answer.finish()
    })
}

fn message(role: Role, content: Vec<Block>) -> Message {
    let message = NewMessage::user(MessageId(Uuid::nil()), content);
    let session = SessionId(Uuid::nil());
    NewMessage { role, ..message }.stored(session, None, 1, Timestamp::from_micros(0))
}
