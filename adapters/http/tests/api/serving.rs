//! The accept loop, over real connections.

use std::time::Duration;

use hango_http::{Limits, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::Server;

/// A server that listens, and what stops it.
async fn listening(limits: Limits) -> (std::net::SocketAddr, CancellationToken, JoinHandle<()>) {
    let server = Server::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let stopped = stop.clone().cancelled_owned();
    let task = tokio::spawn(serve(listener, server.router, stopped, limits));
    (address, stop, task)
}

async fn ask(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 64 * 1024];
    let length = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

#[tokio::test]
async fn requests_are_answered_one_after_the_other_on_one_connection() {
    let (address, _stop, _task) = listening(Limits::default()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    for _ in 0..2 {
        let answer = ask(&mut stream, "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.contains("x-request-id: "), "{answer}");
    }
}

#[tokio::test]
async fn half_a_request_does_not_hold_its_connection() {
    let limits = Limits {
        header_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let (address, _stop, _task) = listening(limits).await;
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nhost:")
        .await
        .unwrap();

    let mut rest = Vec::new();
    silent.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty());
    slow.read_to_end(&mut rest).await.unwrap();
    assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
}

#[tokio::test]
async fn connections_beyond_the_cap_wait_for_room() {
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let (address, _stop, _task) = listening(limits).await;
    // Connections are accepted in the order in which they came.
    let first = TcpStream::connect(address).await.unwrap();
    let mut second = TcpStream::connect(address).await.unwrap();
    let answer = ask(&mut second, "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
    let mut answer = std::pin::pin!(answer);
    let waiting = tokio::time::timeout(Duration::from_millis(100), &mut answer).await;
    assert!(waiting.is_err());

    drop(first);

    assert!(answer.await.starts_with("HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn a_stopped_server_lets_idle_connections_go_and_takes_no_more() {
    let (address, stop, task) = listening(Limits::default()).await;
    let mut idle = TcpStream::connect(address).await.unwrap();
    let answer = ask(&mut idle, "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"));

    stop.cancel();

    tokio::time::timeout(Duration::from_secs(5), task)
        .await
        .unwrap()
        .unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}
