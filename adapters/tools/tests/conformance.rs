//! Each tool does what every tool must; the HTTP tool also what one must that reaches another process.

use std::sync::Arc;
use std::time::Duration;

use hango_conformance::tool::{RemoteTool, Sample, Service};
use hango_conformance::{FakeServer, ManualClock, Reply};
use hango_domain::tool::Idempotency;
use hango_tools::{GetTime, HttpTool, HttpToolSettings};
use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};
use url::Url;

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

mod get_time {
    use super::*;

    async fn tool() -> (Sample, ()) {
        let sample = Sample {
            tool: Arc::new(GetTime::new(Arc::new(ManualClock::default()))),
            good: object(json!({"timezone": "Europe/Berlin"})),
        };
        (sample, ())
    }

    hango_conformance::tool_tests!(tool);
}

mod http_tool {
    use super::*;

    const TOKEN: &str = "token-of-the-check";
    const MAX_OUTPUT: usize = 2048;

    async fn remote(service: Service, timeout: Duration) -> RemoteTool {
        let replies = std::iter::repeat_n(reply(&service), 200);
        before(FakeServer::start(replies.flatten()).await, timeout)
    }

    async fn tool() -> (Sample, RemoteTool) {
        let service = Service::Answers("done".to_owned());
        let remote = remote(service, Duration::from_mins(1)).await;
        (remote.sample.clone(), remote)
    }

    fn before(server: FakeServer, timeout: Duration) -> RemoteTool {
        // Only the first test of a process installs it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let address = server.address().to_string();
        let url = format!("http://{address}/hook-of-the-check");
        let authorization = HeaderValue::from_static(TOKEN);
        let tool = HttpTool::new(HttpToolSettings {
            name: "create_ticket".to_owned(),
            description: "Opens a ticket. Use it once per problem.".to_owned(),
            url: Url::parse(&url).expect("a URL"),
            idempotency: Idempotency::Keyed,
            timeout,
            headers: HeaderMap::from_iter([(http::header::AUTHORIZATION, authorization)]),
            parameters: json!({
                "type": "object",
                "required": ["title"],
                "properties": {
                    "title": {"type": "string"},
                    "severity": {"type": "integer", "minimum": 1, "maximum": 5},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "additionalProperties": false,
            }),
            max_output_bytes: MAX_OUTPUT,
        });
        RemoteTool {
            sample: Sample {
                tool: Arc::new(tool.expect("a tool")),
                good: object(json!({"title": "the printer is on fire", "severity": 1})),
            },
            other_side: Arc::new(server),
            secrets: vec![TOKEN.to_owned(), address, "hook-of-the-check".to_owned()],
            most_bytes: MAX_OUTPUT,
        }
    }

    /// What the service sends; `None` holds the call unanswered.
    fn reply(service: &Service) -> Option<Reply> {
        match service {
            Service::Answers(text) => Some(Reply::Whole(response("200 OK", text))),
            Service::Fails => Some(Reply::Whole(response("500 Internal Server Error", TOKEN))),
            Service::Hangs => None,
            Service::Endless => {
                let head = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
                Some(Reply::Endless(head.to_vec(), vec![b'x'; 4096]))
            }
        }
    }

    fn response(status: &str, body: &str) -> Vec<u8> {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
            .into_bytes()
    }

    hango_conformance::tool_tests!(tool);
    hango_conformance::remote_tool_tests!(remote);
}
