//! Each tool does what every tool must; those that reach another process also what one of these must.

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
            Service::Endless => Some(endless()),
        }
    }

    hango_conformance::tool_tests!(tool);
    hango_conformance::remote_tool_tests!(remote);
}

mod http_fetch {
    use std::io;
    use std::net::{IpAddr, Ipv4Addr};

    use async_trait::async_trait;
    use hango_tools::HttpFetch;
    use hango_tools::outbound::{Outbound, Resolver, UrlPolicy};

    use super::*;

    /// Says that every name is on this machine.
    struct Loopback;

    #[async_trait]
    impl Resolver for Loopback {
        async fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
            Ok(vec![Ipv4Addr::LOCALHOST.into()])
        }
    }

    async fn remote(service: Service, timeout: Duration) -> RemoteTool {
        let replies = std::iter::repeat_n(reply(&service), 200);
        let server = FakeServer::start(replies.flatten()).await;
        let host = format!("good.example:{}", server.address().port());
        let hosts = vec![host.parse().expect("a host")];
        let networks = vec!["127.0.0.0/8".parse().expect("a network")];
        let outbound = Outbound::new(UrlPolicy::new(hosts, networks), timeout);
        let tool = HttpFetch::new(outbound.resolving_by(Arc::new(Loopback)));
        RemoteTool {
            sample: Sample {
                tool: Arc::new(tool),
                good: object(json!({"url": format!("http://{host}/page"), "max_bytes": 2000})),
            },
            other_side: Arc::new(server),
            secrets: vec!["127.0.0.1".to_owned()],
            most_bytes: 2100,
        }
    }

    async fn tool() -> (Sample, RemoteTool) {
        let service = Service::Answers("done".to_owned());
        let remote = remote(service, Duration::from_mins(1)).await;
        (remote.sample.clone(), remote)
    }

    /// What the page's server sends; `None` holds the call unanswered. A status is no failure of a fetch.
    fn reply(service: &Service) -> Option<Reply> {
        match service {
            Service::Answers(text) => Some(Reply::Whole(response("200 OK", text))),
            Service::Fails => Some(Reply::Whole(b"127.0.0.1 is out of order\r\n\r\n".to_vec())),
            Service::Hangs => None,
            Service::Endless => Some(endless()),
        }
    }

    hango_conformance::tool_tests!(tool);
    hango_conformance::remote_tool_tests!(remote);
}

/// An answer whose body does not end.
fn endless() -> Reply {
    let head = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
    Reply::Endless(head.to_vec(), vec![b'x'; 4096])
}

fn response(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}
