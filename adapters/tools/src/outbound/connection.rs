//! A connection to one of the addresses that were checked, and to nobody else.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// How many addresses of a host are tried.
const MAX_TRIED: usize = 3;

/// A connection, encrypted or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Connects to the first of `addresses` that answers; each has its share of the time that is left.
pub(super) async fn connect(
    addresses: &[IpAddr],
    port: u16,
    deadline: Instant,
) -> io::Result<TcpStream> {
    let tried = &addresses[..addresses.len().min(MAX_TRIED)];
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for (address, left) in tried.iter().zip((1..=tried.len()).rev()) {
        let address = SocketAddr::new(address.to_canonical(), port);
        let time = deadline.saturating_duration_since(Instant::now());
        let share = time / u32::try_from(left).unwrap_or(u32::MAX);
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) if stream.peer_addr()? == address => return Ok(stream),
            // What is not where it should be is not spoken to.
            Ok(Ok(_)) => last = io::Error::from(io::ErrorKind::AddrNotAvailable),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::from(io::ErrorKind::TimedOut),
        }
    }
    Err(last)
}

/// How many more bytes may be read of a connection.
#[derive(Clone)]
pub(super) struct Budget(Arc<AtomicUsize>);

impl Budget {
    /// No bound from now on.
    pub(super) fn lift(&self) {
        self.0.store(usize::MAX, Ordering::Relaxed);
    }

    /// Whether nothing more may be read.
    pub(super) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// A connection of which only so much is read.
pub(super) struct Metered<S> {
    stream: S,
    budget: Budget,
}

impl<S> Metered<S> {
    /// A connection of which `bytes` are read, and its budget.
    pub(super) fn new(stream: S, bytes: usize) -> (Self, Budget) {
        let budget = Budget(Arc::new(AtomicUsize::new(bytes)));
        let metered = Self {
            stream,
            budget: budget.clone(),
        };
        (metered, budget)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = self.budget.0.load(Ordering::Relaxed);
        if left == 0 {
            return Poll::Ready(Err(io::ErrorKind::FileTooLarge.into()));
        }
        let room = left.min(buffer.remaining());
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(room));
        let polled = Pin::new(&mut self.stream).poll_read(cx, &mut part);
        let read = part.filled().len();
        buffer.advance(read);
        self.budget.0.fetch_sub(read, Ordering::Relaxed);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
