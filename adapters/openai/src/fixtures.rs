//! Calls for tests.

use std::sync::Arc;

use hango_domain::conversation::{Block, Message, NewMessage, Role};
use hango_domain::model::{CallContext, ModelCall};
use hango_domain::{
    AgentId, MessageId, RunId, RunTrace, SessionId, SpanId, TenantId, Timestamp, TraceId,
};
use uuid::Uuid;

/// A call that sends these messages and nothing else.
pub(crate) fn call(messages: Vec<(Role, Vec<Block>)>) -> ModelCall {
    let messages = messages
        .into_iter()
        .map(|(role, content)| message(role, content));
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
        model: "m".to_owned(),
        system: Vec::new(),
        messages: Arc::new(messages.collect()),
        tools: Vec::new(),
        max_tokens: None,
        temperature: None,
    }
}

fn message(role: Role, content: Vec<Block>) -> Message {
    let message = NewMessage::user(MessageId(Uuid::nil()), content);
    let session = SessionId(Uuid::nil());
    NewMessage { role, ..message }.stored(session, None, 1, Timestamp::from_micros(0))
}
