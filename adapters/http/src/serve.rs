//! The accept loop. It is hango's own because a stock one sets no timer, and without a timer a client
//! that sends half a request holds its connection for ever.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::{HeaderValue, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower::ServiceExt as _;

use crate::head::MAX_HEADERS;
use crate::rates::Peer;
use crate::unread::Unread;
use crate::wire::{Refused, Wire};

/// How long to wait when the process has no room for a connection.
const NO_ROOM: Duration = Duration::from_millis(100);

/// What bounds the connections of a listener.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The most connections at a time; more wait to be accepted.
    pub connections: usize,
    /// How long a connection may take to bring a request's headers, its idle time before included.
    pub header_timeout: Duration,
    /// How long a client may read nothing of its answer.
    pub answer_timeout: Duration,
    /// How long requests may take to end once the shutdown began.
    pub last_requests: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            header_timeout: Duration::from_secs(30),
            answer_timeout: Duration::from_secs(30),
            last_requests: Duration::from_secs(10),
        }
    }
}

/// Serves `router` on `listener` until `shutdown`; then takes no more connections and requests, and
/// returns when those that were begun have ended, or their time is over.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()>,
    limits: Limits,
) {
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = async {
            let permit = room.clone().acquire_owned().await;
            (accept(&listener).await, permit)
        };
        let ((stream, peer), permit) = tokio::select! {
            accepted = accepted => accepted,
            () = &mut shutdown => break,
        };
        let connection = graceful.watch(connection(stream, peer.ip(), router.clone(), limits));
        connections.spawn(async move {
            let _permit = permit;
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection broke");
            }
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    if timeout(limits.last_requests, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("requests that did not end in time are cut off");
    }
    connections.shutdown().await;
}

/// The next connection. What goes wrong with one, or for want of room, does not end the server.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "no connection could be accepted");
                sleep(NO_ROOM).await;
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}

fn connection(
    stream: TcpStream,
    peer: IpAddr,
    router: Router,
    limits: Limits,
) -> http1::Connection<
    TokioIo<Wire<TcpStream>>,
    impl hyper::service::HttpService<
        Incoming,
        ResBody = axum::body::Body,
        Error = Infallible,
        Future: Send,
    >,
> {
    // Answers are small and wanted at once.
    let _ = stream.set_nodelay(true);
    let refused = Refused::default();
    let wire = Wire::new(stream, limits.answer_timeout, refused.clone());
    let service = service_fn(move |request: http::Request<Incoming>| {
        // What comes behind chunks is not looked at: where they end is hyper's to say alone.
        let is_chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
        let (head, body) = request.into_parts();
        let (body, unread) = Unread::watch(body);
        let mut request = http::Request::from_parts(head, axum::body::Body::new(body));
        request.extensions_mut().insert(Peer(peer));
        if let Some(refusal) = refused.get() {
            request.extensions_mut().insert(refusal.clone());
        }
        let answer = router.clone().oneshot(request);
        async move {
            let mut response = answer.await?;
            // hyper gives up a connection whose body nobody read; a client that is not told sends his next
            // request into it.
            if is_chunked || unread.is_left() {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            Ok(response)
        }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(wire), service)
}
