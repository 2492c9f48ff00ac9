//! For the tests of a dialect: calls to write as requests, and a recorded stream, cut off and split in
//! every place.

pub mod flood;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::iter;
use hango_domain::accumulator::Accumulator;
use hango_domain::conversation::{Block, Message, NewMessage, Role};
use hango_domain::model::{CallContext, ModelCall, ModelFailure, ModelReply};
use hango_domain::{
    AgentId, MessageId, RunId, RunTrace, SessionId, SpanId, TenantId, Timestamp, TraceId,
};
use tokio::time::Instant;
use uuid::Uuid;

use crate::failure::Origin;
use crate::wire::{Dialect, Patience, answer};

/// A call of the model `m` that sends these messages and nothing else.
#[must_use]
pub fn call(messages: Vec<(Role, Vec<Block>)>) -> ModelCall {
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

/// What the engine makes of a stream that arrives in these pieces and then ends.
pub async fn reply<D: Dialect>(
    pieces: impl IntoIterator<Item = Bytes>,
    dialect: D,
) -> Result<ModelReply, ModelFailure> {
    let patience = Patience {
        first_byte: Instant::now() + Duration::from_mins(1),
        idle: Duration::from_mins(1),
    };
    let pieces: Vec<_> = pieces.into_iter().map(Ok::<_, Infallible>).collect();
    let mut events = Box::pin(answer(
        iter(pieces),
        Origin::named("recorded"),
        patience,
        dialect,
    ));
    let mut answer = Accumulator::new("call_1");
    while let Some(event) = events.next().await {
        answer.push(event?)?;
    }
    answer.finish()
}

/// Cuts a recorded stream off behind each of its bytes: it must be the answer that the whole one is, its
/// usage aside, or a failure that may pass. Never another answer, and so never a call that is not whole.
///
/// # Panics
///
/// Panics if it is not so.
pub async fn is_never_mistaken<D: Dialect>(recorded: &str, dialect: impl Fn() -> D) {
    let bytes = Bytes::copy_from_slice(recorded.as_bytes());
    let whole = reply([bytes.clone()], dialect()).await;
    let whole = whole.expect("the recorded stream is an answer");
    for at in 0..bytes.len() {
        match reply([bytes.slice(..at)], dialect()).await {
            Ok(cut) => {
                let cut = ModelReply {
                    usage: whole.usage,
                    ..cut
                };
                assert_eq!(cut, whole, "cut off at {at}");
            }
            Err(failure) => assert!(failure.kind.is_retryable(), "cut off at {at}: {failure:?}"),
        }
    }
}

/// Splits a recorded stream in two behind each of its bytes, then behind all of them, with every kind of
/// line end: it must always be the same answer.
///
/// # Panics
///
/// Panics if it is not so.
pub async fn says_the_same_wherever_it_is_split<D: Dialect>(
    recorded: &str,
    dialect: impl Fn() -> D,
) {
    let bytes = Bytes::copy_from_slice(recorded.as_bytes());
    let whole = reply([bytes.clone()], dialect()).await;
    assert!(whole.is_ok(), "the recorded stream is an answer: {whole:?}");
    for at in 0..=bytes.len() {
        let pieces = [bytes.slice(..at), bytes.slice(at..)];
        assert_eq!(reply(pieces, dialect()).await, whole, "split at {at}");
    }
    for end in ["\n", "\r\n", "\r"] {
        let bytes = Bytes::from(recorded.replace('\n', end));
        let pieces = (0..bytes.len()).map(|at| bytes.slice(at..=at));
        assert_eq!(reply(pieces, dialect()).await, whole, "{end:?}");
    }
}
