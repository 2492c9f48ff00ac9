//! Rows about what names mean.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hango_domain::tool::ToolResult;
use hango_tools::HttpFetch;
use hango_tools::outbound::{Failure, Outbound, Resolver};

use super::support::{AMPLE, Names, Reply, Server, fetch, ip, outbound, policy, tool};

/// What a model is told of a name with these addresses, while the test's server hears nothing.
async fn refused(addresses: &[&str]) {
    let server = Server::saying(Reply::ok("canary")).await;
    let names = Names::all(addresses);
    let host = format!("good.example:{}", server.port());
    let tool = HttpFetch::new(outbound(&[&host], &[], &names));

    let result = fetch(&tool, &format!("http://{host}/")).await;

    assert_eq!(
        result,
        ToolResult::error("blocked_address"),
        "{addresses:?}"
    );
    assert_eq!(server.sockets(), 0, "{addresses:?}");
    assert_eq!(names.asked(), ["good.example"]);
}

#[tokio::test]
async fn s30_a_listed_name_of_this_machine_is_refused_by_its_address() {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let machine = machine.unwrap_or_else(|_| "machine".to_owned());
    let machine = machine.trim().to_ascii_lowercase();
    let names = Names::all(&["127.0.0.1", "::1"]);
    let hosts = ["localhost", "*.sub.localhost", "ip6-localhost", &machine];
    let tool = HttpFetch::new(outbound(&hosts, &[], &names));

    for host in [
        "localhost",
        "LOCALHOST.",
        "foo.sub.localhost",
        "ip6-localhost",
        &machine,
    ] {
        let result = fetch(&tool, &format!("http://{host}/")).await;

        assert_eq!(result, ToolResult::error("blocked_address"), "{host}");
    }
}

#[tokio::test]
async fn s31_a_name_that_holds_an_address_is_judged_by_what_it_means() {
    let names = Names::all(&["127.0.0.1"]);
    let tool = HttpFetch::new(outbound(&["*.nip.io"], &[], &names));

    let result = fetch(&tool, "http://127.0.0.1.nip.io/").await;

    assert_eq!(result, ToolResult::error("blocked_address"));
}

#[tokio::test]
async fn s48_the_list_holds_names_as_the_network_knows_them() {
    let policy = policy(&["faß.example"], &[]);

    assert!(policy.admit("http://xn--fa-hia.example/").is_ok());
    assert!(policy.admit("http://faß.example/").is_ok());
    let other = policy.admit("http://fass.example/");
    assert_eq!(other, Err(Failure::BlockedHost));
}

#[tokio::test]
async fn s57_a_name_is_asked_for_once_and_what_it_meant_then_is_connected_to() {
    let server = Server::saying(Reply::ok("page")).await;
    let names = Names::new(|_, time| match time {
        1 => vec![ip("127.0.0.1")],
        _ => vec![ip("169.254.169.254")],
    });
    let host = format!("good.example:{}", server.port());
    let tool = tool(&[&host], &names);

    let first = fetch(&tool, &format!("http://{host}/")).await;
    let second = fetch(&tool, &format!("http://{host}/")).await;

    assert_eq!(first, ToolResult::ok("HTTP/1.1 200 OK\n\npage"));
    assert_eq!(second, ToolResult::error("blocked_address"));
    assert_eq!(names.asked(), ["good.example", "good.example"]);
    assert_eq!(server.sockets(), 1);
}

#[tokio::test]
async fn s59_one_bad_address_of_several_refuses_all() {
    refused(&["93.184.215.14", "10.0.0.1"]).await;
    refused(&["93.184.215.14", "127.0.0.1"]).await;
    refused(&["93.184.215.14", "2606:2800:220:1::1", "::1"]).await;
    refused(&["93.184.215.14", "fd00::1"]).await;
}

#[tokio::test]
async fn s60_a_name_that_means_something_inward_is_refused() {
    for address in [
        "0.0.0.0",
        "127.0.0.1",
        "::1",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "169.254.169.254",
    ] {
        refused(&[address]).await;
    }
}

#[tokio::test]
async fn s61_no_connection_is_used_twice() {
    let server = Server::saying(Reply::ok("page")).await;
    let port = server.port();
    let names = Names::all(&["127.0.0.1"]);
    let (a, b) = (format!("a.example:{port}"), format!("b.example:{port}"));
    let tool = tool(&[&a, &b], &names);

    for host in [&a, &b, &a] {
        let result = fetch(&tool, &format!("http://{host}/")).await;
        assert!(!result.is_error, "{result:?}");
    }

    assert_eq!(server.sockets(), 3);
}

#[tokio::test]
async fn s62_a_dead_address_is_passed_over_for_another_that_was_checked() {
    let server = Server::on("127.0.0.1:0", |_, _| Reply::ok("page")).await;
    let names = Names::all(&["127.0.0.2", "127.0.0.1"]);
    let host = format!("good.example:{}", server.port());

    let result = fetch(&tool(&[&host], &names), &format!("http://{host}/")).await;

    assert_eq!(result, ToolResult::ok("HTTP/1.1 200 OK\n\npage"));
}

#[tokio::test]
async fn s63_a_single_label_is_reached_when_it_is_listed_itself() {
    let server = Server::saying(Reply::ok("page")).await;
    let names = Names::all(&["127.0.0.1"]);
    let host = format!("tickets:{}", server.port());

    let result = fetch(&tool(&[&host], &names), &format!("http://{host}/")).await;

    assert_eq!(result, ToolResult::ok("HTTP/1.1 200 OK\n\npage"));
    assert_eq!(names.asked(), ["tickets"]);
}

/// Answers nobody.
struct Silent;

#[async_trait]
impl Resolver for Silent {
    async fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn s64_a_name_server_that_is_silent_is_not_waited_for() {
    let outbound = Outbound::new(policy(&["good.example"], &[]), Duration::from_millis(50));
    let tool = HttpFetch::new(outbound.resolving_by(Arc::new(Silent)));

    let fetched = fetch(&tool, "http://good.example/");
    let result = tokio::time::timeout(AMPLE, fetched).await.expect("in time");

    assert_eq!(result, ToolResult::error("unreachable"));
}

#[tokio::test]
async fn s64_a_name_with_thousands_of_addresses_is_nobodys() {
    let server = Server::saying(Reply::ok("canary")).await;
    let names = Names::new(|_, _| vec![ip("127.0.0.1"); 10_000]);
    let host = format!("good.example:{}", server.port());

    let result = fetch(&tool(&[&host], &names), &format!("http://{host}/")).await;

    assert_eq!(result, ToolResult::error("unreachable"));
    assert_eq!(server.sockets(), 0);
}

#[tokio::test]
async fn s64_a_name_that_does_not_exist_is_unreachable() {
    let names = Names::all(&[]);

    let result = fetch(&tool(&["good.example"], &names), "http://good.example/").await;

    assert_eq!(result, ToolResult::error("unreachable"));
}

#[tokio::test]
async fn s81_of_a_name_that_points_inward_nobody_learns_which_ports_are_open() {
    let server = Server::saying(Reply::ok("canary")).await;
    let open = format!("good.example:{}", server.port());
    let names = Names::all(&["127.0.0.1"]);
    let tool = HttpFetch::new(outbound(&[&open, "good.example:1"], &[], &names));

    let result = fetch(&tool, &format!("http://{open}/")).await;
    let closed = fetch(&tool, "http://good.example:1/").await;

    assert_eq!(result, ToolResult::error("blocked_address"));
    assert_eq!(closed, result);
    assert_eq!(server.sockets(), 0);
}

#[tokio::test]
async fn s81_a_port_that_is_closed_reads_like_one_that_swallows_everything() {
    let names = Names::all(&["127.0.0.1"]);
    let closed = fetch(&tool(&["good.example:1"], &names), "http://good.example:1/").await;
    // A listener whose queue is full takes no more connections and refuses none.
    let full = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = full.local_addr().expect("it is bound");
    let mut waiting = Vec::new();
    let short = Duration::from_millis(200);
    while let Ok(socket) = std::net::TcpStream::connect_timeout(&address, short) {
        waiting.push(socket);
        assert!(waiting.len() < 10_000, "the queue has no end");
    }
    let host = format!("good.example:{}", address.port());
    let outbound = Outbound::new(policy(&[&host], &["127.0.0.0/8"]), short);
    let tool = HttpFetch::new(outbound.resolving_by(names));

    let swallowed = fetch(&tool, &format!("http://{host}/")).await;

    assert_eq!(closed, ToolResult::error("unreachable"));
    assert_eq!(swallowed, closed);
}
