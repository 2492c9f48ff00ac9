//! What operators count: the page of metrics of the real process, as Prometheus reads it, and what is on
//! none of their ways out.

use std::collections::BTreeSet;
use std::net::TcpListener;

use serde_json::{Value, json};

use super::support::api::{Api, list, text};
use super::support::collector::Collector;
use super::support::gate::Gate;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::store::{Kind, on_both_stores};
use super::support::tools::Response;
use super::support::until::{until, until_true};
use super::support::world::Plan;

on_both_stores! {
    what_happens_is_counted_on_the_page
}

/// What nobody may find where operators look.
const SECRET: &str = "canary-5e1f";

/// The dashboard, and the rules by which operators are woken.
const DASHBOARD: &str = include_str!("../../docs/dashboards/hango.json");
const RULES: &str = include_str!("../../docs/dashboards/hango.rules.yml");

/// The page as it is now.
async fn page(api: &Api) -> String {
    let answer = api.with_key(None).get("/metrics").await;
    assert!(
        answer.content_type.starts_with("text/plain"),
        "{}",
        answer.content_type
    );
    text(&answer.expect(200))
}

/// The value of a series, whose labels are all of those and maybe more; the sum where there are several.
fn value(page: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let mut found = page
        .lines()
        .filter(|line| line.split(['{', ' ']).next() == Some(name))
        .filter(|line| labels.iter().all(|label| line.contains(label)))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .peekable();
    found.peek()?;
    Some(found.sum())
}

async fn what_happens_is_counted_on_the_page(kind: Kind) {
    let model = |ask: &Ask| match (&*ask.run, ask.turn) {
        ("fails", _) => Reply::busy_for(0),
        (_, 1) => Reply::calls([
            ("safe", json!({"n": 1})),
            ("made_up_by_a_model", json!({})),
            ("write_todos", json!({"todos": 7})),
        ]),
        (_, 2 | 3) => Reply::calls([("safe", json!({"n": 1}))]),
        _ => Reply::text("all done"),
    };
    let settings = [("HANGO_PROVIDER_MAX_RETRIES", "0")];
    let world = Plan::on(kind, &settings).await.start(model).await;
    let api = &world.api;
    begins_at_zero(&page(api).await);
    let succeeds = world.start_run("succeeds").await;
    assert_eq!(api.ended(&succeeds.id).await["state"], "succeeded");
    let fails = world.start_run("fails").await;
    assert_eq!(api.ended(&fails.id).await["state"], "failed");

    let page = until("both ends are counted", async || {
        let page = page(api).await;
        let ends = value(&page, "gen_ai_invoke_agent_duration_seconds_count", &[]);
        (ends == Some(2.0)).then_some(page)
    })
    .await;
    let tool = |name: &str| format!("gen_ai_tool_name=\"{name}\"");
    let error = |name: &str| format!("error_type=\"{name}\"");
    let labelled = |name: &str, labels: &[String]| {
        let labels: Vec<_> = labels.iter().map(String::as_str).collect();
        value(&page, name, &labels)
    };
    for (name, labels, expected) in [
        (
            "hango_run_claims_total",
            vec!["outcome=\"won\"".to_owned()],
            2.0,
        ),
        (
            "gen_ai_invoke_agent_duration_seconds_count",
            vec![error("provider_unavailable")],
            1.0,
        ),
        ("gen_ai_invoke_agent_inference_calls_sum", vec![], 5.0),
        ("gen_ai_invoke_agent_tool_calls_sum", vec![], 5.0),
        ("hango_run_iterations_count", vec![], 2.0),
        ("hango_run_queue_wait_duration_seconds_count", vec![], 2.0),
        (
            "gen_ai_client_operation_duration_seconds_count",
            vec![],
            5.0,
        ),
        (
            "gen_ai_client_operation_duration_seconds_count",
            vec![error("429")],
            1.0,
        ),
        ("gen_ai_execute_tool_duration_seconds_count", vec![], 5.0),
        (
            "hango_tool_errors_total",
            vec![tool("_OTHER"), error("unknown_tool")],
            1.0,
        ),
        (
            "hango_tool_errors_total",
            vec![tool("write_todos"), error("invalid_args")],
            1.0,
        ),
        (
            "hango_tool_errors_total",
            vec![tool("safe"), error("repeat_blocked")],
            1.0,
        ),
        (
            "hango_middleware_repeat_blocked_total",
            vec![tool("safe")],
            1.0,
        ),
        (
            "http_server_request_duration_seconds_count",
            vec![
                "http_route=\"/v1/sessions/{session}/runs\"".to_owned(),
                "http_response_status_code=\"202\"".to_owned(),
            ],
            2.0,
        ),
    ] {
        assert_eq!(
            labelled(name, &labels),
            Some(expected),
            "{name} {labels:?}: {page}"
        );
    }
    assert!(!page.contains("made_up_by_a_model"), "{page}");
    for id in [&succeeds.id, &succeeds.session] {
        assert!(!page.contains(&**id), "{page}");
    }
    dashboards_ask_for_what_is_there(&page);
}

/// What is known beforehand is there before it happens.
fn begins_at_zero(page: &str) {
    for (name, labels) in [
        ("hango_run_claims_total", ["outcome=\"lost\""]),
        ("hango_run_reclaimed_total", ["hango_lane=\"main\""]),
        ("hango_telemetry_dropped_total", ["reason=\"queue_full\""]),
        ("hango_tool_errors_total", ["gen_ai_tool_name=\"safe\""]),
        (
            "hango_middleware_repeat_blocked_total",
            ["gen_ai_tool_name=\"safe\""],
        ),
    ] {
        assert_eq!(value(page, name, &labels), Some(0.0), "{name}: {page}");
    }
}

/// Whatever the dashboard and the rules name is on the page.
fn dashboards_ask_for_what_is_there(page: &str) {
    let on_page: BTreeSet<_> = page
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'))
        .collect();
    let words = [DASHBOARD, RULES].into_iter().flat_map(|text| {
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter(|word| {
                ["hango_", "gen_ai_", "http_"]
                    .iter()
                    .any(|it| word.starts_with(it))
                    && !word.starts_with("http_fetch")
            })
    });
    let words: BTreeSet<_> = words.collect();
    assert!(words.len() > 30, "{words:?}");
    let absent: Vec<_> = words.difference(&on_page).collect();
    assert!(absent.is_empty(), "{absent:?} on {page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_taken_from_a_dead_process_is_counted_by_the_next() {
    let gate = Gate::closed();
    let held = gate.clone();
    let mut world = Plan::on(Kind::Sqlite, &[])
        .await
        .start(move |ask| match ask.time {
            1 => Reply::text("never whole").held_after(1, &held),
            _ => Reply::text("all done"),
        })
        .await;
    let run = world.start_run("one").await;
    until_true("the model is asked", || !world.provider.asked().is_empty()).await;
    let busy = until("the census is taken", async || {
        let page = page(&world.api).await;
        let running = value(&page, "hango_runs_by_state", &["state=\"running\""]);
        (running == Some(1.0)).then_some(page)
    });
    let busy = busy.await;
    assert_eq!(value(&busy, "hango_run_queue_depth", &[]), Some(0.0));
    assert_eq!(value(&busy, "hango_run_workers_busy", &[]), Some(1.0));

    world.kill();
    world.restart().await;

    let api = &world.api;
    assert_eq!(api.ended(&run.id).await["attempt"], 2);
    let page = until("the end is counted", async || {
        let page = page(api).await;
        let ends = value(&page, "gen_ai_invoke_agent_duration_seconds_count", &[]);
        (ends == Some(1.0)).then_some(page)
    });
    let page = page.await;
    assert_eq!(value(&page, "hango_run_reclaimed_total", &[]), Some(1.0));
    let won = value(&page, "hango_run_claims_total", &["outcome=\"won\""]);
    assert_eq!(won, Some(1.0));
    // It waited once, and that was counted then.
    let waited = value(&page, "hango_run_queue_wait_duration_seconds_count", &[]);
    assert!(waited.is_none_or(|it| it < 0.5), "{waited:?}");
    drop(gate);
}

#[tokio::test(flavor = "multi_thread")]
async fn d44_the_page_has_a_listener_of_its_own_where_an_operator_says_so() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = free.local_addr().expect("it is bound").to_string();
    drop(free);
    let settings = [("HANGO_METRICS_LISTEN", &*address)];
    let idle = |_: &Ask| Reply::text("done");
    let world = Plan::on(Kind::Sqlite, &settings).await.start(idle).await;

    assert!(
        page(&Api::of(&address))
            .await
            .contains("hango_run_claims_total")
    );
    world.api.get("/metrics").await.expect(404);
    for path in ["/v1/me", "/healthz", "/"] {
        Api::of(&address).get(path).await.expect(404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn d30_d32_what_people_and_models_say_is_on_no_way_out() {
    let collector = Collector::start().await;
    let settings = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint()),
        ("OTEL_BSP_SCHEDULE_DELAY", "50"),
        ("HANGO_LOG", "trace"),
        ("OPENAI_API_KEY", SECRET),
    ];
    let model = |ask: &Ask| match ask.turn {
        1 => Reply::calls([("safe", json!({"n": SECRET}))]),
        _ => Reply::text(SECRET),
    };
    let mut world = Plan::on(Kind::Sqlite, &settings)
        .await
        .with_tools(model, |_| Response::text(SECRET))
        .await;
    let api = world.api.clone();
    let told = json!({"system_prompt": SECRET, "description": SECRET});
    api.patch("/v1/agents/agent", &told).await.expect(200);
    let run = world.start_run(SECRET).await;
    let ended = api.ended(&run.id).await;
    assert_eq!(ended["state"], "succeeded", "{ended:#}");
    let refused = json!({"slug": "agent", "provider": "openai", "model": SECRET});
    api.post("/v1/agents", &refused).await.expect(409);
    until("the root arrives", async || {
        let spans = collector.trace(&text(&ended["trace_id"]));
        spans.iter().any(|it| it.parent.is_empty()).then_some(())
    })
    .await;
    let page = page(&api).await;
    let trail = api.get("/v1/audit-events?limit=200").await.expect(200);
    assert!(list(&trail).len() > 3);
    assert!(
        api.messages(&run.session).await.len() > 3,
        "that is where it is"
    );
    world.hango().term();
    world.hango().ended().await;

    let logged = world.hango().logged();
    let sent = collector.metrics();
    assert!(
        logged.contains("\"level\":\"DEBUG\""),
        "it says all it has to say"
    );
    assert!(!sent.is_empty(), "metrics are sent at the end");
    let contains = |bytes: &[u8]| {
        bytes
            .windows(SECRET.len())
            .any(|it| it == SECRET.as_bytes())
    };
    let spans = collector.spans();
    assert!(!contains(format!("{spans:?}").as_bytes()), "{spans:#?}");
    assert!(!contains(page.as_bytes()), "{page}");
    assert!(!contains(trail.to_string().as_bytes()), "{trail:#}");
    assert!(!sent.iter().any(|it| contains(it)));
    let lines: Vec<Value> = logged
        .lines()
        .filter(|line| contains(line.as_bytes()))
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    assert!(lines.is_empty(), "{lines:#?}");
}
