//! A collector: what arrives of spans by OTLP over HTTP is kept, and the requests that bring metrics.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::TcpListener;

/// The collector; clones are the same one.
#[derive(Clone)]
pub(crate) struct Collector {
    endpoint: String,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    spans: Vec<Told>,
    headers: Vec<HeaderMap>,
    metrics: Vec<Bytes>,
}

/// A span that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// Its name.
    pub(crate) name: String,
    /// Its trace, as hexadecimal digits.
    pub(crate) trace: String,
    /// Its id, likewise.
    pub(crate) id: String,
    /// Its parent's; empty for a root.
    pub(crate) parent: String,
    /// Its attributes as text.
    pub(crate) attributes: BTreeMap<String, String>,
    /// The ids of the spans that it links to.
    pub(crate) links: Vec<String>,
    /// The names of its events.
    pub(crate) events: Vec<String>,
    /// Which process told it.
    pub(crate) instance: String,
}

impl Collector {
    /// Starts to listen.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let collector = Self {
            endpoint: format!("http://{address}"),
            kept: Arc::default(),
        };
        let routes = Router::new()
            .route("/v1/traces", post(take))
            .route("/v1/metrics", post(take_metrics))
            .with_state(collector.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        collector
    }

    /// What `OTEL_EXPORTER_OTLP_ENDPOINT` has to be.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// What arrived so far.
    pub(crate) fn spans(&self) -> Vec<Told> {
        self.lock().spans.clone()
    }

    /// What arrived of that trace.
    pub(crate) fn trace(&self, trace: &str) -> Vec<Told> {
        let mut spans = self.spans();
        spans.retain(|span| span.trace == trace);
        spans
    }

    /// The bodies that brought metrics.
    pub(crate) fn metrics(&self) -> Vec<Bytes> {
        self.lock().metrics.clone()
    }

    /// The values of a header, one for each request.
    pub(crate) fn header(&self, name: &str) -> Vec<String> {
        let kept = self.lock();
        let values = kept.headers.iter().filter_map(|headers| headers.get(name));
        values
            .filter_map(|value| Some(value.to_str().ok()?.to_owned()))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    /// An attribute; empty if it is not there.
    pub(crate) fn attribute(&self, key: &str) -> &str {
        self.attributes.get(key).map_or("", String::as_str)
    }
}

async fn take(State(collector): State<Collector>, headers: HeaderMap, body: Bytes) {
    let request = ExportTraceServiceRequest::decode(body).expect("it is OTLP");
    let mut kept = collector.lock();
    kept.headers.push(headers);
    for process in request.resource_spans {
        let resource = process.resource.unwrap_or_default().attributes;
        let instance = texts(&resource).remove("service.instance.id");
        let instance = instance.expect("a process says who it is");
        let spans = process.scope_spans.into_iter().flat_map(|it| it.spans);
        kept.spans.extend(spans.map(|span| told(&span, &instance)));
    }
}

async fn take_metrics(State(collector): State<Collector>, body: Bytes) {
    collector.lock().metrics.push(body);
}

fn told(span: &Span, instance: &str) -> Told {
    Told {
        name: span.name.clone(),
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        attributes: texts(&span.attributes),
        links: span.links.iter().map(|link| hex(&link.span_id)).collect(),
        events: span.events.iter().map(|event| event.name.clone()).collect(),
        instance: instance.to_owned(),
    }
}

fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |attribute: &KeyValue| {
        let value = attribute.value.clone().and_then(|it| it.value);
        let value = match value {
            Some(Value::StringValue(text)) => text,
            Some(Value::IntValue(number)) => number.to_string(),
            Some(Value::BoolValue(is)) => is.to_string(),
            other => format!("{other:?}"),
        };
        (attribute.key.clone(), value)
    };
    attributes.iter().map(text).collect()
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits = digits.filter_map(|digit| char::from_digit(digit.into(), 16));
    digits.collect()
}
