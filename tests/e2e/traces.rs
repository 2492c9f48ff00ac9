//! Traces as a collector gets them from the real process, killed or not; and collectors that are none.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::time::Duration;

use serde_json::json;

use super::support::api::text;
use super::support::collector::{Collector, Told};
use super::support::gate::Gate;
use super::support::provider::Ask;
use super::support::reply::Reply;
use super::support::store::{Kind, on_both_stores};
use super::support::tools::Response;
use super::support::until::{until, until_true};
use super::support::world::{Plan, World};

on_both_stores! {
    a_run_whose_process_is_killed_is_one_trace_with_one_root
}

/// Spans are sent at once, so that a test need not wait for them.
const AT_ONCE: (&str, &str) = ("OTEL_BSP_SCHEDULE_DELAY", "50");

/// One call of the tool `safe`, then an answer.
fn one_call(ask: &Ask) -> Reply {
    if ask.turn == 1 {
        Reply::calls([("safe", json!({"n": 1}))])
    } else {
        Reply::text("all done")
    }
}

/// The trace of a run, once its root is there.
async fn whole(collector: &Collector, trace: &str) -> Vec<Told> {
    until("the root arrives", async || {
        let spans = collector.trace(trace);
        let is_whole = spans.iter().any(|span| span.parent.is_empty());
        is_whole.then_some(spans)
    })
    .await
}

fn named<'a>(spans: &'a [Told], name: &str) -> Vec<&'a Told> {
    spans.iter().filter(|span| span.name == name).collect()
}

async fn a_run_whose_process_is_killed_is_one_trace_with_one_root(kind: Kind) {
    let collector = Collector::start().await;
    let settings = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-scope=tests%201"),
        AT_ONCE,
    ];
    let gate = Gate::closed();
    let held = gate.clone();
    let mut world = Plan::on(kind, &settings)
        .await
        .with_tools(one_call, move |called| match called.time {
            1 => Response::text("first").held(&held),
            _ => Response::text("again"),
        })
        .await;
    let accepted = world.start_run("a prompt that is nobody's business").await;
    let trace = text(&world.api.run(&accepted.id).await["trace_id"]);
    until_true("the tool works and the model call is told of", || {
        world.tools.calls().len() == 1 && !named(&collector.trace(&trace), "chat test").is_empty()
    })
    .await;

    world.kill();
    world.restart().await;
    let run = world.api.ended(&accepted.id).await;
    let spans = whole(&collector, &trace).await;

    assert_eq!(run["state"], "succeeded");
    let roots: Vec<_> = spans.iter().filter(|it| it.parent.is_empty()).collect();
    assert_eq!(roots.len(), 1, "{spans:#?}");
    let root = roots[0];
    assert_eq!(root.id, text(&run["span_id"]));
    assert_eq!(root.name, "invoke_agent agent");
    assert_eq!(root.attribute("hango.run.attempts"), "2");
    let events: Vec<_> = root.events.iter().map(String::as_str).collect();
    let life = [
        "run.claimed",
        "run.reclaimed",
        "run.claimed",
        "agent.middleware_stack",
    ];
    assert_eq!(events, life);

    let turns: Vec<_> = named(&spans, "chain turn");
    let told: BTreeSet<_> = turns
        .iter()
        .map(|turn| {
            let keys = ["hango.turn", "hango.attempt", "error.type"];
            keys.map(|key| turn.attribute(key))
        })
        .collect();
    let expected = [["1", "1", "worker_lost"], ["1", "2", ""], ["2", "2", ""]];
    assert_eq!(told, BTreeSet::from(expected));
    assert_eq!(turns.len(), 3);

    // Everything has its parent, whichever process told it.
    let ids: BTreeSet<_> = spans.iter().map(|span| span.id.as_str()).collect();
    assert_eq!(ids.len(), spans.len());
    let orphans = spans.iter().filter(|it| !it.parent.is_empty());
    let orphans: Vec<_> = orphans.filter(|it| !ids.contains(&*it.parent)).collect();
    assert!(orphans.is_empty(), "{orphans:#?}");
    let processes: BTreeSet<_> = spans.iter().map(|span| span.instance.as_str()).collect();
    assert_eq!(processes.len(), 2);
    for span in &spans {
        assert_eq!(span.attribute("hango.run.id"), accepted.id);
    }

    // It links to the request that created it, which is a trace of its own.
    let created = "POST /v1/sessions/{session}/runs";
    let request = until("the request is told of", async || {
        named(&collector.spans(), created)
            .first()
            .map(|it| (*it).clone())
    })
    .await;
    assert_eq!(root.links, [request.id.as_str()]);
    assert_ne!(request.trace, trace);
    assert_eq!(request.attribute("http.response.status_code"), "202");

    assert!(!format!("{:?}", collector.spans()).contains("nobody's business"));
    let scopes = collector.header("x-scope");
    assert!(scopes.iter().all(|it| it == "tests 1") && !scopes.is_empty());
    drop(gate);
}

#[tokio::test]
async fn a_run_that_is_cancelled_before_anybody_claims_it_has_its_root() {
    let collector = Collector::start().await;
    let settings = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint()),
        AT_ONCE,
    ];
    let gate = Gate::closed();
    let model = {
        let gate = gate.clone();
        move |_: &Ask| Reply::text("done").held_before_end(&gate)
    };
    let world = World::start(&settings, model).await;
    let first = world.start_run("first").await;
    let waiting = world.start_run_in(&first.session, "second").await;

    let cancelled = world.api.cancel(&waiting.id).await;
    gate.open();
    world.api.ended(&first.id).await;

    let trace = text(&cancelled["trace_id"]);
    let spans = whole(&collector, &trace).await;
    assert_eq!(spans.len(), 1, "{spans:#?}");
    assert_eq!(spans[0].attribute("hango.run.state"), "cancelled");
    assert_eq!(spans[0].attribute("hango.run.attempts"), "0");
    assert_eq!(spans[0].attribute("error.type"), "");
    assert_eq!(spans[0].links.len(), 1);
}

#[tokio::test]
async fn a_collector_that_is_not_there_or_answers_nobody_changes_nothing() {
    let hole = TcpListener::bind("127.0.0.1:0").expect("a port");
    let hole_url = format!("http://{}", hole.local_addr().expect("it is bound"));
    // Nobody listens on the reserved port.
    for endpoint in [hole_url.as_str(), "http://127.0.0.1:1"] {
        let settings = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint), AT_ONCE];
        let mut world = World::start(&settings, one_call).await;
        let run = world.start_run("hello").await;
        assert_eq!(world.api.ended(&run.id).await["state"], "succeeded");

        world.hango().term();
        let (status, took) = world.hango().ended().await;

        assert!(status.success(), "{endpoint}");
        assert!(took < Duration::from_secs(5), "{endpoint}: {took:?}");
    }
    drop(hole);
}
