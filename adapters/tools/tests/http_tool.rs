//! HTTP tools against a real server on the loopback.

use std::time::Duration;

use hango_domain::RunId;
use hango_domain::tool::{Idempotency, Invocation, Tool, ToolFailure, ToolResult};
use hango_tools::{HttpTool, HttpToolError, HttpToolSettings};
use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use url::Url;
use uuid::Uuid;

fn settings(url: &Url) -> HttpToolSettings {
    // Only the first test of a process installs it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    HttpToolSettings {
        name: "create_ticket".to_owned(),
        description: "Opens a ticket.".to_owned(),
        url: url.clone(),
        idempotency: Idempotency::Keyed,
        timeout: Duration::from_secs(10),
        headers: HeaderMap::from_iter([(
            http::header::AUTHORIZATION,
            HeaderValue::from_static("Bearer secret"),
        )]),
        parameters: json!({
            "type": "object",
            "required": ["title"],
            "properties": {"title": {"type": "string"}},
        }),
        max_output_bytes: 1024,
    }
}

fn tool(url: &Url) -> HttpTool {
    HttpTool::new(settings(url)).expect("a tool")
}

fn invocation(input: Value) -> Invocation {
    let Value::Object(input) = input else {
        panic!("an object");
    };
    Invocation {
        input,
        run: RunId(Uuid::nil()),
        tool_use_id: "call é\n1".to_owned(),
        idempotency_key: "key-1".to_owned(),
        traceparent: "00-01-01-01".to_owned(),
    }
}

fn ticket() -> Invocation {
    invocation(json!({"title": "printer on fire"}))
}

/// A server that answers one request with these bytes and tells what it was asked.
async fn server(answer: impl Into<Vec<u8>>) -> (Url, JoinHandle<String>) {
    let answer = answer.into();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let served = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a client");
        let request = request(&mut socket).await;
        socket
            .write_all(&answer)
            .await
            .expect("a client that reads");
        request
    });
    (
        Url::parse(&format!("http://{address}/hook")).expect("a URL"),
        served,
    )
}

async fn request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().expect("a number")) {
                return text.into_owned();
            }
        }
        assert_ne!(socket.read_buf(&mut bytes).await.expect("a request"), 0);
    }
}

fn response(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

async fn answered(status: &str, body: &str) -> ToolResult {
    let (url, _served) = server(response(status, body)).await;
    tool(&url).execute(ticket()).await
}

#[tokio::test]
async fn a_call_posts_the_arguments_and_says_who_asks() {
    let (url, served) = server(response("200 OK", "ticket 7")).await;

    let result = tool(&url).execute(ticket()).await;

    assert_eq!(result, ToolResult::ok("ticket 7"));
    let request = served.await.expect("a request");
    let (head, body) = request.split_once("\r\n\r\n").expect("a body");
    assert!(head.starts_with("POST /hook HTTP/1.1\r\n"));
    for line in [
        "content-type: application/json",
        "authorization: Bearer secret",
        "idempotency-key: key-1",
        "x-hango-run-id: 00000000-0000-0000-0000-000000000000",
        "x-hango-tool-call-id: call%20%C3%A9%0A1",
        "traceparent: 00-01-01-01",
    ] {
        assert!(head.lines().any(|sent| sent == line), "{line} in {head}");
    }
    assert_eq!(body, r#"{"title":"printer on fire"}"#);
}

#[tokio::test]
async fn a_body_with_for_llm_is_taken_by_its_fields() {
    let body = json!({"for_llm": "7", "for_user": "Ticket 7 is open.", "is_error": true});

    let expected = ToolResult {
        for_llm: "7".to_owned(),
        for_user: Some("Ticket 7 is open.".to_owned()),
        is_error: true,
        failure: Some(ToolFailure::ToolError),
    };
    assert_eq!(answered("200 OK", &body.to_string()).await, expected);
    let short = r#"{"for_llm":"7"}"#;
    assert_eq!(answered("201 Created", short).await, ToolResult::ok("7"));
}

#[tokio::test]
async fn half_a_surrogate_pair_does_not_hide_the_fields() {
    let body = r#"{"for_llm":"a \ud83d b"}"#;

    assert_eq!(
        answered("200 OK", body).await,
        ToolResult::ok("a \u{fffd} b")
    );
}

#[tokio::test]
async fn any_other_body_is_the_result() {
    for body in [
        "",
        "[1]",
        r#"{"id":7}"#,
        r#"{"for_llm":7}"#,
        r#"{"for_llm":"7""#,
    ] {
        assert_eq!(answered("200 OK", body).await, ToolResult::ok(body));
    }
}

#[tokio::test]
async fn a_status_that_is_no_success_is_an_error_with_the_bodys_beginning() {
    let result = answered("422 Unprocessable Entity", &"é".repeat(2000)).await;

    let text = "the tool's service answered 422 Unprocessable Entity\n";
    assert_eq!(
        result,
        ToolResult::error(format!("{text}{}", "é".repeat(1024)))
    );
}

#[tokio::test]
async fn a_redirect_is_an_error() {
    let (url, served) = server("HTTP/1.1 307 Temporary Redirect\r\nlocation: /\r\n\r\n").await;

    let result = tool(&url).execute(ticket()).await;

    let text = "the tool's service answered 307 Temporary Redirect";
    assert_eq!(result, ToolResult::error(text));
    served.await.expect("one request");
}

#[tokio::test]
async fn a_long_answer_is_cut_off_with_a_note() {
    let result = answered("200 OK", &"é".repeat(1000)).await;

    let note = "\n[cut off: the answer has more than 1024 bytes]";
    assert!(result.for_llm.ends_with(note));
    assert!(result.for_llm.starts_with("éé"));
    assert!((1000..=1024).contains(&result.for_llm.len()));
}

#[tokio::test]
async fn arguments_that_do_not_match_are_never_sent() {
    let url = Url::parse("http://127.0.0.1:1/").expect("a URL");

    let result = tool(&url).execute(invocation(json!({"title": 7}))).await;

    let text = "the arguments do not match the tool's parameters:\n\
                - /title: 7 is not of type \"string\"";
    assert_eq!(result, ToolResult::failed(ToolFailure::InvalidArgs, text));
}

#[tokio::test]
async fn a_service_that_is_not_there_is_an_error_without_its_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let url = Url::parse(&format!("http://127.0.0.1:{port}/secret-path")).expect("a URL");

    let result = tool(&url).execute(ticket()).await;

    let text = "the tool's service could not be reached";
    assert_eq!(result, ToolResult::error(text));
}

#[tokio::test]
async fn a_service_that_does_not_answer_in_time_is_an_error() {
    let (url, served) = server("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let silent = listener.local_addr().expect("an address");
    let silent = Url::parse(&format!("http://{silent}/")).expect("a URL");
    let settings = HttpToolSettings {
        timeout: Duration::from_millis(50),
        ..settings(&silent)
    };

    let broken = tool(&url).execute(ticket()).await;
    let result = HttpTool::new(settings)
        .expect("a tool")
        .execute(ticket())
        .await;

    let text = "the tool's service answered 200 OK, and its answer broke off";
    assert_eq!(broken, ToolResult::error(text));
    let text = "the tool's service did not answer within 50ms; \
                whether it did its work is unknown";
    assert_eq!(result, ToolResult::failed(ToolFailure::Timeout, text));
    served.await.expect("a request");
}

#[tokio::test]
async fn dropping_the_call_closes_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let tool = tool(&Url::parse(&format!("http://{address}/")).expect("a URL"));

    let call = tokio::spawn(async move { tool.execute(ticket()).await });
    let (mut socket, _) = listener.accept().await.expect("a client");
    request(&mut socket).await;
    call.abort();

    assert_eq!(socket.read(&mut [0; 8]).await.expect("the end"), 0);
}

#[test]
fn settings_that_make_no_tool_are_refused() {
    let good = || settings(&Url::parse("http://localhost/").expect("a URL"));
    let named = HttpToolSettings {
        name: "create ticket".to_owned(),
        ..good()
    };
    let elsewhere = HttpToolSettings {
        url: Url::parse("ftp://localhost/").expect("a URL"),
        ..good()
    };
    let shapeless = HttpToolSettings {
        parameters: Value::Object(Map::new()),
        ..good()
    };

    assert!(matches!(
        HttpTool::new(named),
        Err(HttpToolError::Name { .. })
    ));
    assert!(matches!(
        HttpTool::new(elsewhere),
        Err(HttpToolError::Url { .. })
    ));
    assert!(matches!(
        HttpTool::new(shapeless),
        Err(HttpToolError::Parameters { .. })
    ));
}

#[tokio::test]
async fn a_tools_settings_are_told_without_its_headers_values() {
    let tool = tool(&Url::parse("http://localhost/").expect("a URL"));

    assert_eq!(tool.idempotency(), Idempotency::Keyed);
    assert_eq!(tool.definition().name, "create_ticket");
    assert!(!format!("{tool:?}").contains("secret"));
}
