//! A connection, as HTTP is read from it and written to it: heads that are whole and can be read in one way
//! only, clients that read their answers, and an end at which nobody is cut off in the middle of one.
//!
//! hyper answers what it cannot read by itself, with a status and nothing else, and forgives more than it
//! should. So it never sees such a head: it is given a request that says so in its place, and the answer comes
//! from where all answers come from.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::head::{self, Framing, Lines, Refusal};

/// How long a client that was answered before it had sent all may go on sending: to close before that would
/// take the answer from him.
const LINGER: Duration = Duration::from_secs(5);

/// What hyper is given in the place of a head that is refused.
const REFUSED: &[u8] = b"GET / HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n\r\n";

/// How much is read at once.
const CHUNK: usize = 8 * 1024;

/// Why the last request of a connection was refused, once it was.
pub(crate) type Refused = Arc<OnceLock<Refusal>>;

/// A connection.
pub(crate) struct Wire<S> {
    stream: S,
    /// What came and was not handed on yet.
    buffer: BytesMut,
    /// How many bytes of that may be handed on.
    ready: usize,
    /// How many bytes of a head were looked at.
    seen: usize,
    next: Next,
    refused: Refused,
    /// How long a client may read nothing of what is written.
    patience: Duration,
    /// Since when he does.
    stuck: Option<Pin<Box<Sleep>>>,
    /// When the end is.
    end: Option<Pin<Box<Sleep>>>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Next {
    /// A request.
    Head,
    /// So many bytes of a body.
    Body(u64),
    /// The chunks of a body, and nothing behind them: such a request is the connection's last.
    Chunks,
    /// Nothing that would be read.
    Nothing,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// A connection that was just made; whoever answers asks `refused` before.
    pub(crate) fn new(stream: S, patience: Duration, refused: Refused) -> Self {
        Self {
            stream,
            buffer: BytesMut::new(),
            ready: 0,
            seen: 0,
            next: Next::Head,
            refused,
            patience,
            stuck: None,
            end: None,
        }
    }

    /// Reads more into the buffer; false at the end.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut bytes = [0; CHUNK];
        let mut read = ReadBuf::new(&mut bytes);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut read))?;
        self.buffer.extend_from_slice(read.filled());
        Poll::Ready(Ok(!read.filled().is_empty()))
    }

    /// Looks for a head in the buffer, and releases it if it is whole.
    fn look_for_head(&mut self) {
        let found = match head::lines(&self.buffer, self.seen) {
            Ok(Lines::Open) => {
                self.seen = self.buffer.len();
                return;
            }
            Ok(Lines::Empty) => {
                self.buffer.advance(b"\r\n".len());
                self.seen = 0;
                return;
            }
            Ok(Lines::Whole(length)) => {
                head::framing(&self.buffer[..length]).map(|it| (length, it))
            }
            Err(refusal) => Err(refusal),
        };
        self.seen = 0;
        match found {
            Ok((length, framing)) => {
                self.ready = length;
                self.next = match framing {
                    Framing::Length(0) => Next::Head,
                    Framing::Length(length) => Next::Body(length),
                    Framing::Chunked => Next::Chunks,
                };
            }
            Err(refusal) => {
                // Only the first is set: it is the connection's last request.
                let _ = self.refused.set(refusal);
                self.buffer = BytesMut::from(REFUSED);
                self.ready = REFUSED.len();
                self.next = Next::Nothing;
            }
        }
    }

    /// Releases what the buffer has of a body.
    fn release(&mut self) {
        match &mut self.next {
            Next::Body(rest) => {
                self.ready = usize::try_from(*rest)
                    .map_or(self.buffer.len(), |it| it.min(self.buffer.len()));
                *rest -= self.ready as u64;
                if *rest == 0 {
                    self.next = Next::Head;
                }
            }
            Next::Chunks => self.ready = self.buffer.len(),
            Next::Head | Next::Nothing => {}
        }
    }

    /// Gives up a client who reads nothing.
    fn in_time<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let patience = self.patience;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(stuck.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if self.ready > 0 {
                let length = self.ready.min(buf.remaining());
                buf.put_slice(&self.buffer[..length]);
                self.buffer.advance(length);
                self.ready -= length;
                if self.buffer.is_empty() {
                    // A connection that is idle holds no memory.
                    self.buffer = BytesMut::new();
                }
                return Poll::Ready(Ok(()));
            }
            match self.next {
                // Not the end: with that hyper would drop the answer that is under way.
                Next::Nothing => return Poll::Pending,
                Next::Head => {
                    let before = self.buffer.len();
                    if self.seen < before {
                        self.look_for_head();
                        if self.ready > 0 || self.buffer.len() < before {
                            continue;
                        }
                    }
                    if !ready!(self.poll_more(cx))? {
                        return Poll::Ready(Ok(()));
                    }
                }
                Next::Body(_) | Next::Chunks => {
                    if self.buffer.is_empty() && !ready!(self.poll_more(cx))? {
                        return Poll::Ready(Ok(()));
                    }
                    self.release();
                }
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.in_time(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.in_time(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.in_time(cx, flushed)
    }

    /// Says that no more will be written, and lets a client who is still sending end.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.end.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            if self.next == Next::Head && self.buffer.is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.end = Some(Box::pin(sleep(LINGER)));
        }
        loop {
            self.buffer.clear();
            let end = self.end.get_or_insert_with(|| Box::pin(sleep(LINGER)));
            if end.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            if !ready!(self.poll_more(cx)).unwrap_or(false) {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
