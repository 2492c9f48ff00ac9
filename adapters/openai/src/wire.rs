//! Turns a response's bytes into server-sent events and those into the answer's stream, within limits.
//!
//! * The first byte has a time of its own; after it, no two may be further apart than the idle timeout.
//!   Comments are bytes too, but keep a stream without data alive for three idle timeouts at most.
//! * A response has at most 8 MiB, an event at most 4.
//! * An event that lacks its blank line at the end of the file counts.
//! * Once the stop is known, a stream that breaks or falls silent has merely ended.
//! * Dropping the stream drops the response, which closes its connection.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use hango_domain::model::{ModelFailure, ModelFailureKind, StreamEvent};
use sse_stream::{Sse, SseStream};
use tokio::time::{Instant, timeout_at};

use crate::failure::Origin;
use crate::mapping::{Flow, Mapping};

/// The most bytes that a response may have.
pub(crate) const MAX_RESPONSE: usize = 8 << 20;

/// The most bytes that one event's data may have.
const MAX_EVENT: usize = 4 << 20;

/// How many idle timeouts a stream may pass with nothing but comments.
const COMMENTS_HOLD: u32 = 3;

/// How long the answer may keep one waiting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// When the first byte must be there.
    pub(crate) first_byte: Instant,
    /// How far apart two may be.
    pub(crate) idle: Duration,
}

impl Patience {
    fn silence(&self) -> Instant {
        self.first_byte
            .max(Instant::now() + COMMENTS_HOLD * self.idle)
    }
}

/// The answer that a body of server-sent events holds.
pub(crate) fn answer<B, E>(
    body: B,
    origin: Origin,
    patience: Patience,
    mapping: Mapping,
) -> impl Stream<Item = Result<StreamEvent, ModelFailure>> + Send
where
    B: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: std::error::Error + Send + 'static,
{
    // The blank line that ends the last event, where the server forgot it.
    let end = stream::once(async { Ok(Bytes::from_static(b"\n\n")) });
    let bytes = limited(body, origin.clone(), patience).chain(end);
    let answer = Answer {
        events: Box::pin(SseStream::from_bytes_stream(bytes)),
        silent_until: patience.silence(),
        origin,
        patience,
        mapping,
        ready: VecDeque::new(),
        done: false,
    };
    stream::try_unfold(answer, |mut answer| async move {
        Ok(answer.next().await?.map(|event| (event, answer)))
    })
}

/// The bytes of a body, as text; broken off by a failure where it takes too long or is too much.
pub(crate) async fn text<B, E>(
    body: B,
    origin: Origin,
    patience: Patience,
) -> Result<String, ModelFailure>
where
    B: Stream<Item = Result<Bytes, E>> + Send,
    E: std::error::Error + 'static,
{
    let mut bytes = std::pin::pin!(limited(body, origin, patience));
    let mut all = Vec::new();
    while let Some(more) = bytes.next().await {
        all.extend_from_slice(&more?);
    }
    Ok(String::from_utf8_lossy(&all).into_owned())
}

struct Answer {
    events: Pin<Box<dyn Stream<Item = Result<Sse, sse_stream::Error>> + Send>>,
    /// When comments no longer count as a sign of life.
    silent_until: Instant,
    origin: Origin,
    patience: Patience,
    mapping: Mapping,
    /// What the last event's data told and nobody took yet.
    ready: VecDeque<StreamEvent>,
    done: bool,
}

impl Answer {
    async fn next(&mut self) -> Result<Option<StreamEvent>, ModelFailure> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if self.done {
                return Ok(None);
            }
            match self.data().await {
                Ok(Some(data)) => self.map(&data)?,
                Ok(None) => self.close(),
                Err(_) if self.mapping.is_stopped() => return Ok(None),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// The data of the next event that has any; `None` at the end.
    async fn data(&mut self) -> Result<Option<String>, ModelFailure> {
        loop {
            let next = timeout_at(self.silent_until, self.events.next()).await;
            let event = match next {
                Err(_) => return Err(self.origin.silent()),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(self.origin.unframed(error)),
                Ok(Some(Ok(event))) => event,
            };
            if let Some(data) = event.data {
                self.silent_until = self.patience.silence();
                return Ok(Some(data));
            }
        }
    }

    fn close(&mut self) {
        let mut told = Vec::new();
        self.mapping.closed(&mut told);
        self.ready.extend(told);
        self.done = true;
    }

    fn map(&mut self, data: &str) -> Result<(), ModelFailure> {
        if data.len() > MAX_EVENT {
            let message = "sent an event of more than 4 MiB";
            return Err(self.origin.failure(ModelFailureKind::Protocol, message));
        }
        let mut told = Vec::new();
        self.done = self.mapping.data(data, &mut told)? == Flow::Done;
        self.ready.extend(told);
        Ok(())
    }
}

/// The bytes of a body, for as long as it keeps within its limits. Ends behind a failure.
fn limited<B, E>(
    body: B,
    origin: Origin,
    patience: Patience,
) -> impl Stream<Item = Result<Bytes, ModelFailure>> + Send
where
    B: Stream<Item = Result<Bytes, E>> + Send,
    E: std::error::Error + 'static,
{
    let state = (Box::pin(body), patience.first_byte, 0);
    stream::try_unfold(state, move |(mut body, deadline, before)| {
        let origin = origin.clone();
        async move {
            let chunk = match timeout_at(deadline, body.next()).await {
                Err(_) => return Err(origin.silent()),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(origin.broken("broke off", &error)),
                Ok(Some(Ok(chunk))) => chunk,
            };
            let taken = before + chunk.len();
            if taken > MAX_RESPONSE {
                let message = "sent an answer of more than 8 MiB";
                return Err(origin.failure(ModelFailureKind::Protocol, message));
            }
            Ok(Some((chunk, (body, Instant::now() + patience.idle, taken))))
        }
    })
}

impl Origin {
    fn silent(&self) -> ModelFailure {
        self.failure(ModelFailureKind::Unavailable, "fell silent")
    }

    fn unframed(&self, error: sse_stream::Error) -> ModelFailure {
        match error {
            // Only the failures of `limited` come this way.
            sse_stream::Error::Body(error) => match error.downcast::<ModelFailure>() {
                Ok(failure) => *failure,
                Err(error) => self.broken("broke off", error.as_ref()),
            },
            error => {
                let message = format!("sent a broken event stream: {error}");
                self.failure(ModelFailureKind::Protocol, &message)
            }
        }
    }

    /// The connection failed. What lies beneath is named, the address is not.
    pub(crate) fn broken(
        &self,
        what: &str,
        error: &(dyn std::error::Error + 'static),
    ) -> ModelFailure {
        let causes = std::iter::successors(error.source(), |cause| cause.source());
        let cause = causes
            .last()
            .map_or_else(|| error.to_string(), ToString::to_string);
        let message = format!("{what}: {cause}");
        self.failure(ModelFailureKind::Unavailable, &message)
    }
}

#[cfg(test)]
mod tests;
