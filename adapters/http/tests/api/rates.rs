//! How often callers may come.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hango_http::{Api, Limits, RateLimits, Rates, router, serve};
use hango_ports::audit_store::AuditFilter;
use hango_ports::page::PageRequest;
use http::Method;
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::{Answer, Server};

/// A server with limits.
async fn limited(per_key: u32, per_tenant: u32) -> Server {
    let limits = RateLimits {
        per_key,
        per_tenant,
    };
    let server = Server::start().await.starting(|api| {
        router(Api {
            rates: Arc::new(Rates::new(limits)),
            ..api
        })
    });
    server.readiness.start();
    server
}

/// How many of so many calls are let in.
async fn let_in(server: &Server, key: &str, calls: usize) -> usize {
    let mut count = 0;
    for _ in 0..calls {
        let answer = server.get(key, "/v1/me").await;
        if answer.status == 200 {
            count += 1;
        } else {
            is_too_fast(&answer);
        }
    }
    count
}

#[track_caller]
fn is_too_fast(answer: &Answer) {
    answer.is_problem(429, "rate_limited");
    assert_eq!(answer.header("retry-after"), "1");
}

#[tokio::test(start_paused = true)]
async fn d33_a_key_that_comes_too_often_is_told_when_to_come_again() {
    let server = limited(5, 0).await;

    assert_eq!(let_in(&server, &server.owner, 20).await, 5);
    assert_eq!(let_in(&server, &server.member, 5).await, 5, "another key");

    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(let_in(&server, &server.owner, 20).await, 5);
    // Whether the process lives is asked without a key.
    for _ in 0..20 {
        assert_eq!(
            server.call(Method::GET, "/healthz").send().await.status,
            200
        );
    }
}

#[tokio::test(start_paused = true)]
async fn d33_a_tenants_keys_share_what_it_may() {
    let server = limited(0, 6).await;

    assert_eq!(let_in(&server, &server.owner, 4).await, 4);
    assert_eq!(let_in(&server, &server.member, 4).await, 2);
    assert_eq!(
        let_in(&server, &server.stranger, 6).await,
        6,
        "another tenant"
    );
}

#[tokio::test(start_paused = true)]
async fn d33_a_key_that_is_too_fast_leaves_its_tenant_to_the_others() {
    let server = limited(2, 6).await;

    assert_eq!(let_in(&server, &server.owner, 100).await, 2);

    assert_eq!(let_in(&server, &server.member, 2).await, 2);
}

#[tokio::test(start_paused = true)]
async fn d33_a_flood_of_refused_calls_leaves_one_row_a_second() {
    let server = limited(1, 0).await;
    server.agent(&server.owner, "helper").await;
    let flood = async || {
        for _ in 0..50 {
            let body = json!({"agent": "helper"});
            is_too_fast(&server.post(&server.owner, "/v1/sessions", body).await);
        }
    };
    flood().await;
    tokio::time::advance(Duration::from_secs(1)).await;
    let made = server
        .post(&server.owner, "/v1/sessions", json!({"agent": "helper"}))
        .await;
    assert_eq!(made.status, 201);
    flood().await;

    let page = PageRequest {
        limit: 100,
        after: None,
    };
    let filter = AuditFilter {
        action: Some("session.create".to_owned()),
        ..AuditFilter::default()
    };
    let rows = server
        .stores
        .audit
        .list(server.tenant, filter, page)
        .await
        .unwrap();
    let statuses: Vec<_> = rows.items.iter().map(|row| row.status).collect();
    assert_eq!(statuses.len(), 3, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 2);
}

#[tokio::test]
async fn d08_a_key_that_opens_nothing_is_refused_later_the_oftener_it_is_tried() {
    let server = Server::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = server.router.clone();
    tokio::spawn(serve(
        listener,
        routes,
        std::future::pending(),
        Limits::default(),
    ));
    let unknown = format!("hk_AAAAAAAAAAAA_{}", "x".repeat(43));
    let mut bodies = Vec::new();
    let begin = Instant::now();
    for n in 0..15 {
        // Who is behind a proxy is what its headers say, and those anybody can write.
        let answer = ask(address, "/v1/me", &unknown, &format!("192.0.2.{n}")).await;
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        bodies.push(answer.split_once("\r\n\r\n").unwrap().1.to_owned());
        if n == 9 {
            assert!(
                begin.elapsed() < Duration::from_millis(300),
                "{:?}",
                begin.elapsed()
            );
        }
    }
    assert!(
        begin.elapsed() > Duration::from_millis(400),
        "{:?}",
        begin.elapsed()
    );
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");

    let begin = Instant::now();
    let good = ask(address, "/v1/me", &server.owner, "192.0.2.1").await;
    assert!(good.starts_with("HTTP/1.1 200 "), "{good}");
    assert!(
        begin.elapsed() < Duration::from_millis(100),
        "{:?}",
        begin.elapsed()
    );
}

/// The answer to a `GET` with that key, from this machine.
pub(crate) async fn ask(address: SocketAddr, path: &str, key: &str, forwarded: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-request-id: same\r\n\
         x-forwarded-for: {forwarded}\r\nauthorization: Bearer {key}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
