//! Rows about redirects: each is a new URL with a new decision.

use hango_domain::tool::ToolResult;

use super::support::{Names, Reply, Server, fetch, ip, tool};

/// What a model is told when `good.example`, which is on the loopback, answers so, and how many connections
/// were made to this machine. `{port}` stands for the server's port.
async fn followed(script: impl Fn(usize) -> String + Send + Sync + 'static) -> (ToolResult, usize) {
    let names = Names::new(|name, _| match name {
        "good.example" => vec![ip("127.0.0.1")],
        "other.example" => vec![ip("10.0.0.1")],
        _ => Vec::new(),
    });
    let server = Server::start(move |head, time| {
        let host = head.lines().find_map(|line| line.strip_prefix("host: "));
        let port = host.and_then(|host| host.rsplit_once(':'));
        let (_, port) = port.expect("a port");
        Reply::text(script(time).replace("{port}", port))
    })
    .await;
    let port = server.port();
    let hosts = [
        format!("good.example:{port}"),
        format!("other.example:{port}"),
    ];
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();

    let result = fetch(&tool(&hosts, &names), &format!("http://{}/start", hosts[0])).await;

    (result, server.sockets())
}

fn found(location: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\n\r\n")
}

/// What a model is told of a redirect to `location`, behind which there is a page.
async fn redirected(location: &str) -> (ToolResult, usize) {
    let redirect = found(location);
    followed(move |time| match time {
        1 => redirect.clone(),
        _ => "HTTP/1.1 200 OK\r\n\r\npage".to_owned(),
    })
    .await
}

fn page() -> ToolResult {
    ToolResult::ok("HTTP/1.1 200 OK\n\npage")
}

#[tokio::test]
async fn s51_to_an_address_that_is_not_public() {
    for location in [
        "http://169.254.169.254/",
        "http://[::1]:{port}/",
        "http://[::ffff:10.0.0.1]/",
        "//2852039166/",
    ] {
        let expected = (ToolResult::error("blocked_address"), 1);
        assert_eq!(redirected(location).await, expected, "{location}");
    }
}

#[tokio::test]
async fn s52_to_another_scheme() {
    for location in [
        "file:///etc/passwd",
        "ftp://good.example/",
        "gopher://good.example/",
        "data:text/plain,x",
        "javascript:alert(1)",
    ] {
        let expected = (ToolResult::error("invalid_url"), 1);
        assert_eq!(redirected(location).await, expected, "{location}");
    }
}

#[tokio::test]
async fn s54_to_a_listed_host_that_points_inward() {
    let expected = (ToolResult::error("blocked_address"), 1);

    assert_eq!(redirected("http://other.example:{port}/").await, expected);
}

#[tokio::test]
async fn s54_to_a_host_that_is_not_listed() {
    let expected = (ToolResult::error("blocked_host"), 1);

    assert_eq!(redirected("http://evil.example/").await, expected);
    // On a port that is not listed either.
    assert_eq!(redirected("http://good.example/").await, expected);
}

#[tokio::test]
async fn s55_a_location_is_read_as_every_url_is() {
    for location in [
        "/page",
        "page?a=b#c",
        "?q",
        "",
        "//good.example:{port}/page",
        "HTTP://GOOD%2eexample:{port}/",
        "\\\\good.example:{port}\\",
    ] {
        assert_eq!(redirected(location).await, (page(), 2), "{location}");
    }
    for location in [
        "http://user:pw@good.example:{port}/",
        "//user@good.example:{port}/",
        "http://good.example:99999/",
        "http://go\tod.example:{port}/",
    ] {
        let expected = (ToolResult::error("invalid_url"), 1);
        assert_eq!(redirected(location).await, expected, "{location:?}");
    }
}

#[tokio::test]
async fn s55_a_location_that_is_two_or_none_is_no_answer() {
    for head in [
        "HTTP/1.1 302 Found\r\nlocation: /a\r\nlocation: /b\r\n\r\n",
        "HTTP/1.1 302 Found\r\nlocation: /a\r\nLocation: /a\r\n\r\n",
        "HTTP/1.1 302 Found\r\nlocation: /a\rset-cookie: b\r\n\r\n",
    ] {
        let expected = (ToolResult::error("bad_response"), 1);
        assert_eq!(
            followed(move |_| head.to_owned()).await,
            expected,
            "{head:?}"
        );
    }
}

#[tokio::test]
async fn s56_three_redirects_are_followed_and_no_fourth() {
    let three = followed(|time| match time {
        1..=3 => found(&format!("/{time}")),
        _ => "HTTP/1.1 200 OK\r\n\r\npage".to_owned(),
    });
    let round = followed(|_| found("/start"));

    assert_eq!(three.await, (page(), 4));
    assert_eq!(round.await, (ToolResult::error("too_many_redirects"), 4));
}

#[tokio::test]
async fn s56_the_redirects_of_http_are_followed_with_a_get() {
    for status in [301, 302, 303, 307, 308] {
        let names = Names::all(&["127.0.0.1"]);
        let server = Server::start(move |_, time| match time {
            1 => Reply::text(format!("HTTP/1.1 {status} X\r\nlocation: /page\r\n\r\n")),
            _ => Reply::ok("page"),
        })
        .await;
        let host = format!("good.example:{}", server.port());

        let result = fetch(&tool(&[&host], &names), &format!("http://{host}/")).await;

        assert_eq!(result, page(), "{status}");
        let second = &server.heads()[1];
        assert!(second.starts_with("GET /page HTTP/1.1\r\n"), "{second}");
    }
}

#[tokio::test]
async fn s56_whatever_else_says_where_to_go_is_not_followed() {
    for head in [
        "300 Multiple Choices\r\nlocation: /page",
        "304 Not Modified\r\nlocation: /page",
        "305 Use Proxy\r\nlocation: http://127.0.0.1/",
        "302 Found\r\nx-location: /page",
        "200 OK\r\nlocation: /page",
        "200 OK\r\nrefresh: 0; url=/page",
        "200 OK\r\nlink: </page>; rel=preload",
        "200 OK\r\nalt-svc: h2=\"127.0.0.1:443\"",
    ] {
        let answer = format!("HTTP/1.1 {head}\r\n\r\n");
        let (result, sockets) = followed(move |_| answer.clone()).await;

        assert!(!result.is_error, "{head}: {result:?}");
        assert_eq!(sockets, 1, "{head}");
    }
    let meta = "<meta http-equiv=refresh content='0; url=/page'>";
    let (result, sockets) = followed(move |_| format!("HTTP/1.1 200 OK\r\n\r\n{meta}")).await;
    assert_eq!(result, ToolResult::ok(format!("HTTP/1.1 200 OK\n\n{meta}")));
    assert_eq!(sockets, 1);
}

#[tokio::test]
async fn a_request_has_these_headers_and_no_others_whatever_was_answered_before() {
    let names = Names::all(&["127.0.0.1"]);
    let server = Server::start(|_, time| match time {
        1 => Reply::text(
            "HTTP/1.1 302 Found\r\nset-cookie: a=b\r\nwww-authenticate: Basic\r\nlocation: /b?c#d\r\n\r\n",
        ),
        _ => Reply::ok("page"),
    })
    .await;
    let host = format!("good.example:{}", server.port());

    fetch(&tool(&[&host], &names), &format!("http://{host}/a")).await;

    let agent = concat!("hango/", env!("CARGO_PKG_VERSION"));
    let expected = ["/a", "/b?c"].map(|path| {
        format!(
            "GET {path} HTTP/1.1\r\nhost: {host}\r\nuser-agent: {agent}\r\naccept: */*\r\n\
             accept-encoding: identity\r\nconnection: close\r\n\r\n"
        )
    });
    assert_eq!(server.heads(), expected);
}
