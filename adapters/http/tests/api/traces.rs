//! Requests as they are told to whoever traces them.

use std::sync::{Arc, Mutex};

use hango_application::use_cases::Tracing;
use hango_domain::{Sampling, SpanId, TraceId};
use hango_ports::Telemetry;
use hango_ports::telemetry::{Observation, RequestServed, RequestTrace, Wants};
use http::{Method, StatusCode};
use serde_json::json;

use super::support::Server;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

/// Keeps the requests that it is told of.
#[derive(Default)]
struct Requests(Mutex<Vec<RequestServed>>);

impl Telemetry for Requests {
    fn observe(&self, what: Observation) {
        if let Observation::RequestServed(request) = what {
            self.0.lock().unwrap().push(*request);
        }
    }

    fn wants(&self) -> Wants {
        Wants {
            facts: true,
            content: false,
        }
    }
}

impl Requests {
    fn last(&self) -> RequestServed {
        self.0.lock().unwrap().last().cloned().unwrap()
    }
}

async fn traced(requests: bool, sampling: Sampling) -> (Server, Arc<Requests>) {
    let told = Arc::new(Requests::default());
    let tracing = Tracing { sampling, requests };
    let telemetry = Arc::clone(&told);
    let server = Server::observed(|it| it.observed_by(telemetry, tracing)).await;
    (server, told)
}

#[tokio::test]
async fn a_request_is_within_its_callers_trace_and_what_it_creates_links_to_it() {
    let (server, told) = traced(true, Sampling::default()).await;
    server.agent(&server.owner, "bot").await;
    let session = json!({"agent": "bot"});
    let session = server.post(&server.owner, "/v1/sessions", session).await;
    let path = format!("/v1/sessions/{}/runs", session.body["id"].as_str().unwrap());

    let call = server.call(Method::POST, &path).key(&server.owner);
    let call = call.header("traceparent", &format!("00-{TRACE}-{SPAN}-01"));
    let answer = call.json(&json!({"input": "hello"})).send().await;

    assert_eq!(answer.status, StatusCode::ACCEPTED);
    let request = told.last();
    let expected = RequestTrace {
        trace_id: TRACE.parse().unwrap(),
        span_id: SpanId([0xcd; 8]),
        parent: SPAN.parse().ok(),
        sampled: true,
    };
    assert_eq!(request.trace, Some(expected));
    assert_eq!(request.method, Some("POST"));
    assert_eq!(
        request.route.as_deref(),
        Some("/v1/sessions/{session}/runs")
    );
    assert_eq!(request.status, Some(202));
    let run = answer.body["id"].as_str().unwrap().parse().unwrap();
    let story = server.stores.runs.story(hango_domain::RunId(run)).await;
    let trace = story.unwrap().unwrap().run.trace;
    let link = format!("00-{TRACE}-cdcdcdcdcdcdcdcd-01");
    assert_eq!(trace.created_by_traceparent, Some(link));
    assert_ne!(trace.trace_id, expected.trace_id);
}

#[tokio::test]
async fn a_request_of_nobodys_trace_begins_one_which_is_recorded_by_its_share() {
    let (server, told) = traced(true, Sampling::share(0.0)).await;

    server.get(&server.owner, "/v1/me").await;

    let trace = told.last().trace.unwrap();
    assert_eq!(trace.trace_id, TraceId([0xab; 16]));
    assert_eq!((trace.parent, trace.sampled), (None, false));
}

#[tokio::test]
async fn a_caller_that_does_not_record_its_trace_is_followed() {
    let (server, told) = traced(true, Sampling::default()).await;

    let call = server.call(Method::GET, "/v1/me").key(&server.owner);
    let call = call.header("traceparent", &format!("00-{TRACE}-{SPAN}-00"));
    call.send().await;

    assert!(!told.last().trace.unwrap().sampled);
}

#[tokio::test]
async fn probes_have_no_spans_and_no_request_has_one_where_nothing_is_exported() {
    let (server, told) = traced(true, Sampling::default()).await;
    server.call(Method::GET, "/healthz").send().await;
    assert_eq!(told.last().trace, None);
    server.call(Method::GET, "/nowhere").send().await;
    assert_eq!((told.last().route, told.last().status), (None, Some(404)));

    let (server, told) = traced(false, Sampling::default()).await;
    server.get(&server.owner, "/v1/me").await;
    assert_eq!(told.last().trace, None);
}
