//! The team's server, whole: a run over HTTP, executed with the team's provider, tool and sink.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hango_application::engine::EngineSettings;
use hango_application::telemetry::LogLines;
use hango_application::use_cases::{ApiSettings, KeyText};
use hango_conformance::{FakeServer, ManualClock, OtherSide, Reply};
use hango_domain::agent::RunLimits;
use hango_domain::retry::RetryPolicy;
use hango_domain::{SpanId, TraceId};
use hango_memory::MemoryStore;
use hango_ports::{Clock, Ids};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::counts::Counts;
use super::gateway::Gateway;
use super::orders::LookUpOrder;
use super::server::{self, Own, Settings};

const KEY: &str = "hk_teamteamteam_0123456789abcdef0123456789abcdef";

// region: whole
#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_executed_with_adapters_of_our_own() {
    let gateway = FakeServer::start([
        lines(&[
            json!({"text": "Let me look."}),
            json!({"call": {"id": "c1", "name": "look_up_order", "input": {"order_number": "1234567"}}}),
            json!({"done": {"reason": "tools", "input_tokens": 20, "output_tokens": 9}}),
        ]),
        lines(&[
            json!({"text": "It is in the harbour."}),
            json!({"done": {"reason": "end", "input_tokens": 40, "output_tokens": 6}}),
        ]),
    ])
    .await;
    let find = |number: &str| (number == "1234567").then(|| "in the harbour".to_owned());
    let counts = Arc::new(Counts::before(Arc::new(LogLines)));
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
    let own = Own {
        stores: Arc::new(MemoryStore::new(Arc::clone(&clock))).stores(),
        providers: BTreeMap::from([("gateway".to_owned(), Arc::new(provider(&gateway)) as _)]),
        tools: vec![Arc::new(LookUpOrder::new(Arc::new(find)))],
        telemetry: Arc::clone(&counts) as _,
        clock,
        ids: Arc::new(Numbers::default()),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let api = Client::of(&listener);
    let stop = CancellationToken::new();
    let stopped = stop.clone().cancelled_owned();
    let server = tokio::spawn(server::serve(own, settings(), listener, stopped));

    let agent = json!({"slug": "support", "provider": "gateway", "model": "house-1"});
    api.post("/v1/agents", agent).await;
    let session = api.post("/v1/sessions", json!({"agent": "support"})).await;
    let runs = format!("/v1/sessions/{}/runs", id(&session));
    let run = api
        .post(&runs, json!({"input": "Where is order 1234567?"}))
        .await;
    let run = api
        .get(&format!("/v1/runs/{}?wait_ms=20000", id(&run)))
        .await;

    assert_eq!(run["state"], "succeeded", "{run}");
    assert_eq!(run["usage"]["input_tokens"], 60);
    let messages = format!("/v1/sessions/{}/messages", id(&session));
    let messages = api.get(&messages).await;
    let answer = &messages["data"][3]["content"][0]["text"];
    assert_eq!(answer, "It is in the harbour.");
    // The gateway was told what the tool had said.
    assert!(gateway.heard()[1].contains("in the harbour"));

    stop.cancel();
    let ended = server.await.expect("no panic");
    ended.expect("it ends well");
    let page = counts.to_string();
    for line in [
        "team_hango_claims_total 1",
        "team_hango_model_calls_total 2",
        "team_hango_tool_calls_total 1",
        "team_hango_tool_errors_total 0",
        "team_hango_runs_ended_total 1",
    ] {
        assert!(
            page.lines().any(|it| it == line),
            "{line} is not in\n{page}"
        );
    }
}
// endregion: whole

fn provider(gateway: &FakeServer) -> Gateway {
    // reqwest comes without a cryptography provider; only the first test of a process installs it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = format!("http://{}/complete", gateway.address());
    Gateway::new(url, "key".to_owned(), Duration::from_mins(1)).expect("a provider")
}

/// An answer of the gateway.
fn lines(lines: &[Value]) -> Reply {
    let lines = lines.iter().map(|line| format!("{line}\n"));
    let body = lines.collect::<String>();
    Reply::Whole(format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}").into_bytes())
}

fn settings() -> Settings {
    let limits = RunLimits {
        max_iterations: 20,
        tool_timeout: Duration::from_secs(30),
        deadline: Duration::from_mins(30),
    };
    Settings {
        engine: EngineSettings {
            workers: 256,
            lease_ttl: Duration::from_secs(90),
            heartbeat: Duration::from_secs(30),
            reclaim_interval: Duration::from_secs(30),
            poll_interval: Duration::from_secs(1),
            max_stalled: 5,
            running_per_tenant: 0,
            limits,
            tool_concurrency: 4,
            tool_output_max_bytes: 262_144,
            repeat_call_threshold: 3,
            retry: RetryPolicy {
                max_retries: 4,
                inline_wait: Duration::from_secs(10),
            },
            retention: None,
            exclusive: true,
        },
        api: ApiSettings {
            max_queued_runs_per_session: 16,
            running_per_tenant: 0,
            limits,
            repeat_call_threshold: 3,
        },
        max_body_bytes: 1 << 20,
        bootstrap_api_key: KeyText::parse(KEY).expect("a key"),
        drain_timeout: Duration::from_secs(20),
    }
}

/// A caller of the API with the bootstrap key.
struct Client {
    http: reqwest::Client,
    base: String,
}

impl Client {
    /// Whoever connects before the server accepts waits for it.
    fn of(listener: &TcpListener) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let address = listener.local_addr().expect("a bound address");
        Self {
            http: reqwest::Client::new(),
            base: format!("http://{address}"),
        }
    }

    async fn get(&self, path: &str) -> Value {
        self.send(self.http.get(format!("{}{path}", self.base)))
            .await
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let request = self.http.post(format!("{}{path}", self.base));
        self.send(request.json(&body)).await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Value {
        let response = request.bearer_auth(KEY).send().await.expect("an answer");
        let status = response.status();
        let body = response.json().await.expect("JSON");
        assert!(status.is_success(), "{status}: {body}");
        body
    }
}

fn id(body: &Value) -> &str {
    body["id"].as_str().expect("an id")
}

/// Identities in a row.
#[derive(Default)]
struct Numbers(AtomicU64);

impl Ids for Numbers {
    fn uuid(&self) -> Uuid {
        Uuid::from_u128(1 + u128::from(self.0.fetch_add(1, Ordering::SeqCst)))
    }

    fn secret(&self) -> [u8; 32] {
        [7; 32]
    }

    fn trace_id(&self) -> TraceId {
        TraceId([7; 16])
    }

    fn span_id(&self) -> SpanId {
        SpanId([7; 8])
    }
}
