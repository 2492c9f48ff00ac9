//! Turns a response's bytes into server-sent events and those into the answer's stream, within limits.
//!
//! * The first byte has a time of its own; after it, no two may be further apart than the idle timeout.
//!   Comments are bytes too, but keep a stream without data alive for three idle timeouts at most.
//! * An event is refused unread unless it fits into 1856 KiB with all that came of the answer before it; a
//!   body that is no stream has as many. A stream has at most 64, in at most half a million events.
//! * So nothing that a server sends takes more than 8 MiB of memory: an answer that has arrived may be
//!   there twice while it grows, and an event four times while it is read: its text, a string of it, and
//!   the parser's buffer, which doubles.
//! * An event that lacks its blank line at the end of the file counts.
//! * Once the stop is known, a stream that breaks, falls silent or is cut off within an event has merely
//!   ended.
//! * Dropping the stream drops the response, which closes its connection.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use hango_domain::accumulator::MAX_ANSWER_BYTES;
use hango_domain::model::{FailureCause, ModelFailure, ModelFailureKind, StreamEvent};
use hango_domain::text::mend_json;
use tokio::time::{Instant, timeout_at};

use crate::failure::Origin;
use crate::sse::{Corrupt, Decoder, Event};

/// The most bytes that a stream may have. A server may need hundreds of them for each token.
const MAX_STREAM: usize = 64 << 20;

/// The most bytes that an event may have together with all that was told before it; an answer at its limit
/// and what is around it. A body that is no stream may have as many.
pub(crate) const MAX_EVENT: usize = MAX_ANSWER_BYTES + (64 << 10);

/// The most memory that may be taken by what is read of one event, its text included.
pub(crate) const MAX_READ: usize = MAX_EVENT + (128 << 10);

/// The most bytes of a refusal that are read.
pub(crate) const MAX_REFUSAL: usize = 64 << 10;

/// The most events that a stream may have.
const MAX_EVENTS: u32 = 500_000;

/// How many idle timeouts a stream may pass with nothing but comments.
const COMMENTS_HOLD: u32 = 3;

/// How long the answer may keep one waiting.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// When the first byte must be there.
    pub first_byte: Instant,
    /// How far apart two may be.
    pub idle: Duration,
}

impl Patience {
    fn silence(&self) -> Instant {
        self.first_byte
            .max(Instant::now() + COMMENTS_HOLD * self.idle)
    }
}

/// How one protocol's events are read: a state machine that is given one after the other.
pub trait Dialect: Send + 'static {
    /// Takes in an event of the stream, and tells what it means.
    fn event(&mut self, event: &Event, out: &mut Vec<StreamEvent>) -> Result<Flow, ModelFailure>;

    /// Takes in a whole answer, which a server sent although a stream was asked for.
    fn whole(&mut self, body: &str, out: &mut Vec<StreamEvent>) -> Result<(), ModelFailure>;

    /// The server ended the stream without saying that this was all.
    fn closed(&mut self, out: &mut Vec<StreamEvent>);

    /// Whether the reason of the end is known, so that only usage may be missing.
    fn is_stopped(&self) -> bool;

    /// About how many bytes it holds back of what came: they were not told yet, and count all the same.
    fn held(&self) -> usize;
}

/// Whether a stream goes on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Flow {
    /// More may come.
    More,
    /// Nothing more comes.
    Done,
}

/// The answer that a body of server-sent events holds.
pub fn answer<B, E, D>(
    body: B,
    origin: Origin,
    patience: Patience,
    dialect: D,
) -> impl Stream<Item = Result<StreamEvent, ModelFailure>> + Send
where
    B: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: std::error::Error + Send + 'static,
    D: Dialect,
{
    let answer = Answer {
        bytes: Box::pin(limited(body, origin.clone(), patience, MAX_STREAM)),
        decoder: Decoder::new(MAX_EVENT),
        silent_until: patience.silence(),
        origin,
        patience,
        dialect,
        events: 0,
        told: 0,
        ready: VecDeque::new(),
        failure: None,
        ended: false,
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
    limit: usize,
) -> Result<String, ModelFailure>
where
    B: Stream<Item = Result<Bytes, E>> + Send,
    E: std::error::Error + 'static,
{
    let mut bytes = std::pin::pin!(limited(body, origin, patience, limit));
    let mut all = Vec::new();
    while let Some(more) = bytes.next().await {
        all.extend_from_slice(&more?);
    }
    all.shrink_to_fit();
    let text = String::from_utf8(all);
    Ok(mended(
        text.unwrap_or_else(|error| lossy(error.as_bytes(), limit)),
    ))
}

/// JSON text in which no half of a surrogate pair is left. It does not stay beside the one that had some.
fn mended(json: String) -> String {
    match mend_json(&json) {
        Cow::Borrowed(_) => json,
        Cow::Owned(mended) => mended,
    }
}

/// The beginning of a text that is not UTF-8; three times as long as its bytes, at worst.
fn lossy(bytes: &[u8], limit: usize) -> String {
    let beginning = &bytes[..bytes.len().min(limit / 4)];
    String::from_utf8_lossy(beginning).into_owned()
}

struct Answer<D> {
    bytes: Pin<Box<dyn Stream<Item = Result<Bytes, ModelFailure>> + Send>>,
    decoder: Decoder,
    /// When comments no longer count as a sign of life.
    silent_until: Instant,
    origin: Origin,
    patience: Patience,
    dialect: D,
    /// How many came.
    events: u32,
    /// How many bytes were told.
    told: usize,
    /// What the last event told and nobody took yet.
    ready: VecDeque<StreamEvent>,
    /// Why nothing follows what is ready: an event that fails may have told something before.
    failure: Option<ModelFailure>,
    /// Whether the bytes have ended.
    ended: bool,
    done: bool,
}

impl<D: Dialect> Answer<D> {
    async fn next(&mut self) -> Result<Option<StreamEvent>, ModelFailure> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if let Some(failure) = self.failure.take() {
                self.done = true;
                return Err(failure);
            }
            if self.done {
                return Ok(None);
            }
            if let Err(failure) = self.step().await {
                if self.ended && self.dialect.is_stopped() {
                    return Ok(None);
                }
                return Err(failure);
            }
        }
    }

    async fn step(&mut self) -> Result<(), ModelFailure> {
        let mut told = Vec::new();
        let flow = if let Some(mut event) = self.event().await? {
            event.data = mended(event.data);
            self.dialect.event(&event, &mut told)
        } else {
            self.dialect.closed(&mut told);
            Ok(Flow::Done)
        };
        match flow {
            Ok(flow) => self.done = flow == Flow::Done,
            // What is broken at the end, behind the stop, is not missed.
            Err(_) if self.ended && self.dialect.is_stopped() => self.done = true,
            Err(failure) => self.failure = Some(failure),
        }
        self.told += told.iter().map(StreamEvent::bytes).sum::<usize>();
        self.ready.extend(told);
        Ok(())
    }

    /// The next event; `None` at the end.
    async fn event(&mut self) -> Result<Option<Event>, ModelFailure> {
        let before = self.told.saturating_add(self.dialect.held());
        self.decoder.limit(MAX_EVENT.saturating_sub(before));
        loop {
            let event = self.decoder.event();
            if let Some(event) = event.map_err(|corrupt| self.origin.corrupt(&corrupt))? {
                self.count()?;
                return Ok(Some(event));
            }
            if self.ended {
                return Ok(None);
            }
            let piece = timeout_at(self.silent_until, self.bytes.next()).await;
            match piece.unwrap_or_else(|_| Some(Err(self.origin.silent()))) {
                Some(Ok(piece)) => self.decoder.push(piece),
                Some(Err(failure)) => {
                    self.ended = true;
                    return Err(failure);
                }
                None => {
                    self.ended = true;
                    return Ok(self.decoder.finish());
                }
            }
        }
    }

    fn count(&mut self) -> Result<(), ModelFailure> {
        self.silent_until = self.patience.silence();
        self.events += 1;
        if self.events > MAX_EVENTS {
            let message = format!("sent an answer of more than {MAX_EVENTS} events");
            return Err(self.origin.failure(ModelFailureKind::Protocol, &message));
        }
        Ok(())
    }
}

/// The bytes of a body, for as long as it keeps within its limits. Ends behind a failure.
fn limited<B, E>(
    body: B,
    origin: Origin,
    patience: Patience,
    limit: usize,
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
            if taken > limit {
                return Err(origin.too_long(limit));
            }
            Ok(Some((chunk, (body, Instant::now() + patience.idle, taken))))
        }
    })
}

/// A limit as people read it.
pub(crate) fn size(bytes: usize) -> String {
    if bytes.is_multiple_of(1 << 20) {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{} KiB", bytes >> 10)
    }
}

impl Origin {
    fn silent(&self) -> ModelFailure {
        let failure = self.failure(ModelFailureKind::Unavailable, "fell silent");
        failure.caused_by(FailureCause::Timeout)
    }

    fn corrupt(&self, corrupt: &Corrupt) -> ModelFailure {
        match corrupt {
            Corrupt::NoField(line) => self.garbled("a line that is no event stream's", line),
            Corrupt::TooLong(_) => self.too_long(MAX_EVENT),
            Corrupt::NotUtf8 => {
                self.failure(ModelFailureKind::Protocol, "sent a line that is not UTF-8")
            }
        }
    }

    fn too_long(&self, limit: usize) -> ModelFailure {
        let message = format!("sent an answer of more than {}", size(limit));
        self.failure(ModelFailureKind::Protocol, &message)
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
