//! Asking a provider as the engine does, and keeping all that came.

use std::sync::Arc;

use futures::StreamExt;
use hango_domain::accumulator::Accumulator;
use hango_domain::conversation::{Block, Message, NewMessage, Role};
use hango_domain::model::{
    CallContext, ModelCall, ModelFailure, ModelReply, StreamEvent, SystemBlock,
};
use hango_domain::tool::{ToolDef, schema};
use hango_domain::{
    AgentId, MessageId, RunId, RunTrace, SessionId, SpanId, TenantId, Timestamp, TraceId,
};
use hango_ports::Provider;
use uuid::Uuid;

use super::{Called, Spoken};
use crate::other_side::in_time;

/// What a user asks where it does not matter.
pub(super) fn hello() -> ModelCall {
    call([user(vec![Block::text("Good morning.")])])
}

/// A call that sends these messages.
pub(super) fn call(messages: impl IntoIterator<Item = (Role, Vec<Block>)>) -> ModelCall {
    let messages = (1..)
        .zip(messages)
        .map(|(seq, message)| stored(seq, message));
    ModelCall {
        context: Arc::new(CallContext {
            tenant: TenantId(Uuid::from_u128(1)),
            agent: AgentId(Uuid::from_u128(2)),
            session: SessionId(Uuid::from_u128(3)),
            run: RunId(Uuid::from_u128(4)),
            turn: 1,
            attempt: 1,
            trace: RunTrace {
                trace_id: TraceId([1; 16]),
                span_id: SpanId([1; 8]),
                sampled: false,
                created_by_traceparent: None,
            },
        }),
        model: "model-of-the-check".to_owned(),
        system: vec![SystemBlock::new("Answer in one sentence.")],
        messages: Arc::new(messages.collect()),
        tools: vec![ToolDef {
            name: "look_up_order".to_owned(),
            description: "Finds an order by its number.".to_owned(),
            parameters: schema::object([schema::field(
                "order_number",
                "string",
                "Seven digits.",
                true,
            )]),
        }],
        max_tokens: Some(1877),
        temperature: Some(0.25),
    }
}

pub(super) fn user(content: Vec<Block>) -> (Role, Vec<Block>) {
    (Role::User, content)
}

pub(super) fn assistant(content: Vec<Block>) -> (Role, Vec<Block>) {
    (Role::Assistant, content)
}

fn stored(seq: u64, (role, content): (Role, Vec<Block>)) -> Message {
    let id = MessageId(Uuid::from_u128(u128::from(seq)));
    let message = NewMessage {
        role,
        ..NewMessage::user(id, content)
    };
    let session = SessionId(Uuid::from_u128(3));
    message.stored(session, None, seq, Timestamp::from_micros(0))
}

/// All that came of a call.
pub(super) struct Came {
    /// The stream's events, as far as they came.
    pub(super) events: Vec<StreamEvent>,
    /// What the engine makes of them.
    pub(super) outcome: Result<ModelReply, ModelFailure>,
}

impl Came {
    /// How many reasons of its end the stream gave.
    pub(super) fn stops(&self) -> usize {
        let stops = self.events.iter();
        stops
            .filter(|event| matches!(event, StreamEvent::Stop(_)))
            .count()
    }

    /// The text that came, whatever became of the call.
    pub(super) fn text(&self) -> String {
        let texts = self.events.iter().filter_map(|event| match event {
            StreamEvent::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// The failure that it must have ended in.
    pub(super) fn failure(self) -> ModelFailure {
        let failure = self.outcome.expect_err("the call fails");
        assert!(
            !failure.message.trim().is_empty(),
            "people are told nothing"
        );
        failure
    }
}

/// Asks, and listens to the end.
pub(super) async fn ask(provider: &dyn Provider, call: ModelCall) -> Came {
    in_time("the answer to a call", async {
        let mut events = Vec::new();
        let mut answer = Accumulator::new("call_1");
        let outcome = async {
            let mut stream = provider.stream(call).await?;
            while let Some(event) = stream.next().await.transpose()? {
                events.push(event.clone());
                answer.push(event)?;
            }
            answer.finish()
        }
        .await;
        Came { events, outcome }
    })
    .await
}

/// A reply as its other side gave it: text before calls, and what the protocol attached left out.
pub(super) fn spoken(reply: &ModelReply) -> Spoken {
    let mut text = String::new();
    let mut calls = Vec::new();
    for block in &reply.content {
        match block {
            Block::Text { text: more, .. } if calls.is_empty() => text.push_str(more),
            Block::ToolUse {
                id, name, input, ..
            } => calls.push(Called {
                id: id.clone(),
                name: name.clone(),
                input: input.clone(),
            }),
            Block::Text { .. }
            | Block::ToolResult { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::Provider(_) => panic!("nobody said {block:?} there"),
        }
    }
    Spoken {
        words: vec![text],
        calls,
        stop: reply.stop_reason,
        usage: reply.usage,
    }
}

impl Spoken {
    /// The same with its text in one piece, as it is when all of it has come.
    pub(super) fn whole(mut self) -> Self {
        self.words = vec![self.words.concat()];
        self
    }
}
