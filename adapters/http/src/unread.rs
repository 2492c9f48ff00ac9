//! Whether a request's body was read to its end.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

/// Whether it was; the one who answers asks, while whoever reads may be gone already.
#[derive(Clone, Debug)]
pub(crate) struct Unread(Arc<AtomicBool>);

/// A body that is watched.
#[derive(Debug)]
pub(crate) struct Watched {
    body: Incoming,
    unread: Unread,
}

impl Unread {
    /// Watches a body.
    pub(crate) fn watch(body: Incoming) -> (Watched, Self) {
        let unread = Self(Arc::new(AtomicBool::new(!body.is_end_stream())));
        let watched = Watched {
            body,
            unread: unread.clone(),
        };
        (watched, unread)
    }

    /// Whether there is more of it, as far as anybody knows.
    pub(crate) fn is_left(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(frame, Poll::Ready(None)) || self.body.is_end_stream() {
            self.unread.0.store(false, Ordering::Relaxed);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
