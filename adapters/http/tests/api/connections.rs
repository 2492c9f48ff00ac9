//! What clients do to their connections: requests that can be read in two ways, bodies that lie, answers that
//! nobody reads.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hango_http::{Limits, serve};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::support::{MAX_BODY, Server};

/// A server that listens until its test ends.
async fn listening(server: &Server, limits: Limits) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = server.router.clone();
    tokio::spawn(serve(listener, router, std::future::pending(), limits));
    address
}

/// All that comes back until the server closes; what it does not take does not matter.
async fn whole(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let (mut read, mut write) = stream.split();
    let mut answer = Vec::new();
    let sent = async {
        let _ = write.write_all(request).await;
    };
    let read = timeout(Duration::from_secs(20), read.read_to_end(&mut answer));
    let (read, ()) = tokio::join!(read, sent);
    read.expect("the server closes")
        .expect("it does so in order");
    String::from_utf8(answer).unwrap()
}

/// Checks that there is one answer, a problem of that status and code, and that it is the last.
#[track_caller]
fn is_refused(answer: &str, status: u16, code: &str) {
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    assert!(
        answer.starts_with(&format!("HTTP/1.1 {status} ")),
        "{answer}"
    );
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("\r\nconnection: close"), "{answer}");
    assert!(head.contains("\r\nx-request-id: "), "{answer}");
    assert!(
        head.contains("\r\ncontent-type: application/problem+json"),
        "{answer}"
    );
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["code"], code, "{answer}");
}

fn post(server: &Server, headers: &str, body: &str) -> Vec<u8> {
    let key = &server.owner;
    format!(
        "POST /v1/sessions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\n{headers}\r\n{body}"
    )
    .into_bytes()
}

const ANOTHER: &str = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";

#[tokio::test]
async fn d42_a_request_that_can_be_read_in_two_ways_is_refused_with_all_behind_it() {
    let server = Server::start().await;
    let address = listening(&server, Limits::default()).await;
    for headers in [
        "content-length: 4\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 4\r\n",
        "transfer-encoding: xchunked\r\n",
        "transfer-encoding: chunked, identity\r\n",
        "transfer-encoding:\x0bchunked\r\n",
        "transfer-encoding : chunked\r\n",
        "content-length: 4\r\ncontent-length: 5\r\n",
        "content-length: -1\r\n",
        "content-length: 18446744073709551615\r\n",
        "content-length: 99999999999999999999\r\n",
        "x: y\nz: w\r\n",
        "x: y\r z\r\n",
        " x: folded\r\n",
        "host: y\r\n",
    ] {
        let request = post(&server, headers, &format!("0\r\n\r\n{ANOTHER}"));
        is_refused(&whole(address, &request).await, 400, "malformed_request");
    }
    for request in [
        "GET /healthz HTTP/1.1\n\n",
        "GET /healthz HTTP/1.1\r\n\r\n",
        "GET /healthz HTTP/3.0\r\nhost: x\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "nonsense\r\n\r\n",
        "GET http://[ HTTP/1.1\r\nhost: x\r\n\r\n",
    ] {
        let request = format!("{request}{ANOTHER}");
        is_refused(
            &whole(address, request.as_bytes()).await,
            400,
            "malformed_request",
        );
    }
}

#[tokio::test]
async fn d42_what_came_before_nonsense_is_answered_and_what_comes_behind_is_not() {
    let server = Server::start().await;
    let address = listening(&server, Limits::default()).await;

    let answer = whole(
        address,
        format!("{ANOTHER}\r\n{ANOTHER}x\r\n\r\n{ANOTHER}").as_bytes(),
    )
    .await;

    let statuses: Vec<_> = answer
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|it| &it[..3])
        .collect();
    assert_eq!(statuses, ["200", "200", "400"], "{answer}");
}

#[tokio::test]
async fn d42_chunks_are_read_and_nothing_behind_them() {
    let server = Server::start().await;
    server.agent(&server.owner, "helper").await;
    let address = listening(&server, Limits::default()).await;
    let chunked = "transfer-encoding: chunked\r\n";
    let body = "9\r\n{\"agent\":\r\n9;x=y\r\n\"helper\"}\r\n0\r\nx: y\r\n\r\n";

    let answer = whole(
        address,
        &post(&server, chunked, &format!("{body}{ANOTHER}")),
    )
    .await;

    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    assert!(answer.contains("\r\nconnection: close"), "{answer}");
    let broken = whole(address, &post(&server, chunked, "9\r\n{\"agent\":zz\r\n")).await;
    assert!(broken.starts_with("HTTP/1.1 400 "), "{broken}");
}

#[tokio::test]
async fn d42_nobody_speaks_another_protocol_on_a_connection() {
    let server = Server::start().await;
    let address = listening(&server, Limits::default()).await;
    let upgrade = "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: upgrade, http2-settings\r\n\
                   upgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n";
    let close = "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

    let answer = whole(address, format!("{upgrade}{close}").as_bytes()).await;

    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 2, "{answer}");
    let connect = "CONNECT 127.0.0.1:22 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let answer = whole(address, connect.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 40"), "{answer}");
}

#[tokio::test]
async fn d19_heads_that_are_too_large_are_refused_in_the_apis_own_format() {
    let server = Server::start().await;
    let address = listening(&server, Limits::default()).await;
    let get = |target: &str, headers: &str| {
        format!("GET {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n")
            .into_bytes()
    };
    let padding = |size: usize| format!("x-padding: {}\r\n", "p".repeat(size));

    let fits = whole(address, &get("/healthz", &padding(32_000))).await;
    assert!(fits.starts_with("HTTP/1.1 200 "), "{fits}");
    for request in [
        get("/healthz", &padding(33 * 1024)),
        get("/healthz", &padding(2_000_000)),
        get(&format!("/{}", "p".repeat(100_000)), ""),
        get("/healthz", &"x: y\r\n".repeat(127)),
        get("/healthz", &"x: y\r\n".repeat(200_000)),
        vec![b'G'; 2_000_000],
    ] {
        is_refused(&whole(address, &request).await, 431, "headers_too_large");
    }
}

#[tokio::test]
async fn d19_a_head_that_comes_byte_by_byte_is_read_if_it_comes_in_time() {
    let server = Server::start().await;
    let limits = Limits {
        header_timeout: Duration::from_millis(300),
        ..Limits::default()
    };
    let address = listening(&server, limits).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for byte in ANOTHER.bytes() {
        stream.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut answer = [0; 15];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");

    // Then it comes too slowly, and the connection is the next one's.
    let begin = Instant::now();
    let slow = async {
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if stream.write_all(b"x").await.is_err() {
                break;
            }
        }
    };
    timeout(Duration::from_secs(10), slow).await.unwrap();
    assert!(
        begin.elapsed() >= Duration::from_millis(250),
        "{:?}",
        begin.elapsed()
    );
}

#[tokio::test]
async fn d18_a_body_that_is_too_large_is_refused_however_it_comes() {
    let server = Server::start().await;
    let address = listening(&server, Limits::default()).await;
    let large = "x".repeat(2 * 1024 * 1024 + 1);
    let announced = format!("content-length: {}\r\n", large.len());
    let chunk = format!("{:x}\r\n{large}\r\n", large.len());
    let chunked = "transfer-encoding: chunked\r\n";
    let endless = chunk.repeat(4);
    for request in [
        post(&server, &announced, &large),
        post(&server, &announced, ""),
        post(&server, "content-length: 9223372036854775807\r\n", ""),
        post(&server, chunked, &format!("{chunk}0\r\n\r\n")),
        post(&server, chunked, &endless),
        post(&server, chunked, &"1\r\nx\r\n".repeat(MAX_BODY + 1)),
    ] {
        let answer = whole(address, &request).await;
        // Who is not told that it is the last sends his next request into nothing.
        is_refused(&answer, 413, "body_too_large");
    }
}

#[tokio::test]
async fn d18_a_body_that_is_shorter_than_it_says_is_nobodys() {
    let server = Server::start().await;
    server.agent(&server.owner, "helper").await;
    let address = listening(&server, Limits::default()).await;
    let body = r#"{"agent": "helper"}"#;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let lies = format!("content-length: {}\r\n", body.len() + 1);
    stream.write_all(&post(&server, &lies, body)).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();

    assert!(!answer.contains(" 201 "), "{answer}");
    let sessions = server.get(&server.owner, "/v1/sessions").await;
    assert_eq!(sessions.body["data"], Value::Array(Vec::new()));
    // What is longer than it says is another request, and none.
    let lies = format!("content-length: {}\r\n", body.len() - 1);
    let answer = whole(address, &post(&server, &lies, &format!("{body}\r\n\r\n"))).await;
    let statuses: Vec<_> = answer
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|it| &it[..3])
        .collect();
    assert_eq!(statuses, ["400", "400"], "{answer}");
}

#[tokio::test]
async fn d18_a_body_is_not_decompressed() {
    let server = Server::start().await;
    let address = listening(&server, Limits::default()).await;
    for coding in ["gzip", "br", "deflate, gzip", "identity, gzip"] {
        let headers =
            format!("content-encoding: {coding}\r\ncontent-length: 2\r\nconnection: close\r\n");
        let answer = whole(address, &post(&server, &headers, "{}")).await;
        assert!(answer.starts_with("HTTP/1.1 415 "), "{coding}: {answer}");
    }
}

#[tokio::test]
async fn d19_a_client_that_reads_no_answers_is_given_up() {
    let server = Server::start().await;
    let limits = Limits {
        answer_timeout: Duration::from_millis(200),
        connections: 1,
        ..Limits::default()
    };
    let address = listening(&server, limits).await;
    let mut deaf = TcpStream::connect(address).await.unwrap();
    // As many answers as fill all buffers on the way.
    let asking = async {
        let requests = ANOTHER.repeat(1000);
        while deaf.write_all(requests.as_bytes()).await.is_ok() {}
    };

    timeout(Duration::from_mins(1), asking)
        .await
        .expect("it is cut off");

    let last = ANOTHER.replace("host: x", "host: x\r\nconnection: close");
    let answer = whole(address, last.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "there is room again");
}

#[tokio::test]
async fn d28_what_a_client_says_makes_no_header() {
    let server = Server::start().await;
    server.agent(&server.owner, "helper").await;
    let address = listening(&server, Limits::default()).await;
    for id in ["a\u{e9}", "a b", &"i".repeat(8 * 1024), "a\tb"] {
        let request = format!(
            "GET /nowhere%0d%0ax-made:%20up HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-request-id: {id}\r\n\r\n"
        );
        let answer = whole(address, request.as_bytes()).await;
        let head = answer.split_once("\r\n\r\n").unwrap().0;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
        let id = head
            .lines()
            .find_map(|line| line.strip_prefix("x-request-id: "));
        assert_eq!(id.map(str::len), Some(36), "{answer}");
        assert!(!head.contains("x-made"), "{answer}");
    }
    let body = r#"{"agent": "helper", "title": "a\r\nx-made: up"}"#;
    let headers = format!("content-length: {}\r\nconnection: close\r\n", body.len());
    let answer = whole(address, &post(&server, &headers, body)).await;
    let head = answer.split_once("\r\n\r\n").unwrap().0;
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    assert!(!head.contains("x-made"), "{answer}");
}

#[tokio::test]
async fn d43_no_link_is_made_of_the_host_that_a_client_names() {
    let server = Server::start().await;
    server.agent(&server.owner, "helper").await;
    let address = listening(&server, Limits::default()).await;
    let body = r#"{"agent": "helper"}"#;
    let request = format!(
        "POST /v1/sessions HTTP/1.1\r\nhost: evil.example\r\nx-forwarded-host: evil.example\r\n\
         x-forwarded-proto: https\r\nforwarded: host=evil.example\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        server.owner,
        body.len(),
    );

    let answer = whole(address, request.as_bytes()).await;

    assert!(answer.contains("\r\nlocation: /v1/sessions/"), "{answer}");
    assert!(!answer.contains("evil"), "{answer}");
}
