//! The rows once more, where what is connected to is counted and not what is said: in a network of the
//! test's own, in which every address of the world leads back to the test.
//!
//! A check that is written and not called, or a second client that has none, shows here and nowhere else.

use std::process::Command;
use std::time::Duration;

use hango_domain::tool::ToolResult;
use hango_tools::HttpFetch;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::rows::{Outcome, ROWS};
use super::support::{Names, Reply, Server, fetch, outbound};

/// Every address is this machine's, and then the test named behind it.
const SCRIPT: &str = "ip link set lo up && ip route add local default dev lo \
    && { ip -6 route add local default dev lo || true; } \
    && exec \"$0\" --exact --ignored --nocapture everywhere::within_a_network_of_its_own";

#[test]
fn s84_no_row_that_is_refused_connects_to_anyone() {
    let unshare = |command: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--net"]);
        unshare.args(command);
        unshare
    };
    let possible = unshare(&["ip", "link", "set", "lo", "up"]).output();
    if !possible.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this machine gives nobody a network of his own (unshare, ip)");
        return;
    }
    let test = std::env::current_exe().expect("this test is a program");
    let mut within = unshare(&["sh", "-c", SCRIPT]);
    within.arg(test);
    // s65: a proxy would resolve names itself, and what was checked would mean nothing.
    for name in [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "all_proxy",
    ] {
        within.env(name, "http://198.51.100.7:80");
    }

    let output = within.output().expect("it was possible");

    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complained}");
    assert!(said.contains("1 passed"), "{said}{complained}");
}

#[tokio::test]
#[ignore = "is run by s84, in a network of its own"]
async fn within_a_network_of_its_own() {
    let world = Server::on("[::]:80", |_, _| Reply::ok("canary")).await;
    // Nobody has this address: who answers there is this test.
    let nobody = timeout(Duration::from_secs(5), TcpStream::connect("192.0.2.1:80"));
    let own = nobody.await.is_ok_and(|connected| connected.is_ok());
    assert!(own, "this is not a network of the test's own");
    assert_eq!(opened(), 1, "what is opened is counted");

    for row in ROWS {
        for url in row.urls {
            let names = Names::all(&["93.184.215.14"]);
            let tool = HttpFetch::new(outbound(&["good.example"], &[], &names));
            let (before, heard) = (opened(), world.heads().len());

            let result = fetch(&tool, url).await;

            let sockets = opened() - before;
            match row.outcome {
                Outcome::Refused(word) => {
                    assert_eq!(result, ToolResult::error(word), "{} {url:?}", row.name);
                    assert_eq!(sockets, 0, "{} {url:?}", row.name);
                }
                Outcome::Asked(path) => {
                    let page = ToolResult::ok("HTTP/1.1 200 OK\n\ncanary");
                    assert_eq!(result, page, "{} {url:?}", row.name);
                    assert_eq!(sockets, 1, "{} {url:?}", row.name);
                    let begin = format!("GET {path} HTTP/1.1\r\nhost: good.example\r\n");
                    let head = &world.heads()[heard];
                    assert!(head.starts_with(&begin), "{} {url:?}: {head}", row.name);
                }
            }
        }
    }
    for address in [
        "127.0.0.1",
        "169.254.169.254",
        "10.0.0.1",
        "::1",
        "fd00::1",
        "::ffff:10.0.0.1",
    ] {
        let names = Names::all(&["93.184.215.14", address]);
        let tool = HttpFetch::new(outbound(&["good.example"], &[], &names));
        let before = opened();

        let result = fetch(&tool, "http://good.example/").await;

        assert_eq!(result, ToolResult::error("blocked_address"), "{address}");
        assert_eq!(opened(), before, "{address}");
    }
}

/// How many connections were begun in this network, reachable or not, as its kernel counts them.
fn opened() -> u64 {
    let counters = std::fs::read_to_string("/proc/self/net/snmp").expect("counters");
    let mut lines = counters
        .lines()
        .filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let at = names.split(' ').position(|name| name == "ActiveOpens");
    let value = values.split(' ').nth(at.expect("the counter"));
    value.expect("its value").parse().expect("a number")
}
