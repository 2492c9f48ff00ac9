//! The way out: spans wait in a queue of limited length and size, a thread of its own sends them in batches,
//! and whoever tells of something never waits for that.
//!
//! * What finds no room, cannot be delivered, or comes too late is dropped, and counted.
//! * A collector that is gone, or slow, is said in the log once, and once when it is back.
//! * The end waits for a collector as long as it is told to and no longer.

mod dropped;
mod gate;

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{
    MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::PeriodicReader;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider,
    SpanExporter as Exporter,
};
use reqwest::redirect::Policy;
use secrecy::ExposeSecret;
use thiserror::Error;

use crate::names::value;
use crate::settings::OtlpSettings;
use crate::traces::{ChosenIds, Traces};
pub use dropped::{DropReason, Dropped};
use gate::{Gate, Load, Noting};

/// How long a collector may take for one batch, its repeats included.
const EXPORT_TIME: Duration = Duration::from_secs(10);

/// How often metrics are sent.
const METRICS: Duration = Duration::from_secs(15);

/// How many spans wait at most.
const QUEUE: usize = 2048;

/// How many go at once.
const BATCH: usize = 512;

/// How many events a span has at most: a run is claimed often when its provider asks it to wait.
const EVENTS: u32 = 512;

/// Why nothing can be sent.
#[derive(Debug, Error)]
pub enum ExportError {
    /// There is no HTTP client.
    #[error("the HTTP client of the exporter cannot be built")]
    Client(#[source] reqwest::Error),
    /// There is no thread.
    #[error("the exporter's thread cannot be started")]
    Thread,
    /// There is no exporter.
    #[error("the exporter cannot be built")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
}

/// Where spans go.
pub struct Pipeline {
    provider: SdkTracerProvider,
    load: Arc<Load>,
    dropped: Arc<Dropped>,
}

impl Pipeline {
    /// To a collector, by OTLP over HTTP.
    ///
    /// # Errors
    ///
    /// [`ExportError`]; whether the collector is there shows later, and hurts nobody.
    pub fn otlp(settings: &OtlpSettings) -> Result<Self, ExportError> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_http_client(client()?)
            .with_headers(headers(settings))
            .with_endpoint(endpoint(settings, "traces"))
            .with_timeout(EXPORT_TIME)
            .build()?;
        Ok(Self::to(exporter, settings.service.resource()))
    }

    /// To an exporter.
    #[must_use]
    pub fn to(exporter: impl Exporter + 'static, resource: Resource) -> Self {
        let (load, dropped) = (Arc::new(Load::default()), Arc::new(Dropped::default()));
        let exporter = Noting::new(exporter, Arc::clone(&load), Arc::clone(&dropped));
        let config = BatchConfigBuilder::default()
            // Twice as long as it is let get, so that nothing is dropped behind the count.
            .with_max_queue_size(2 * QUEUE)
            .with_max_export_batch_size(BATCH)
            .build();
        let queue = BatchSpanProcessor::new(exporter, config);
        let gate = Gate::new(queue, QUEUE, Arc::clone(&load), Arc::clone(&dropped));
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            // What is not recorded was left out before.
            .with_sampler(Sampler::AlwaysOn)
            .with_id_generator(ChosenIds::default())
            .with_max_events_per_span(EVENTS)
            .with_span_processor(gate)
            .build();
        Self {
            provider,
            load,
            dropped,
        }
    }

    /// Makes spans for this way out; with what people and models said if `content`.
    #[must_use]
    pub fn traces(&self, content: bool) -> Traces {
        Traces::new(self.tracer(), content)
    }

    fn tracer(&self) -> SdkTracer {
        self.provider.tracer(value::SCOPE)
    }

    /// What was dropped so far.
    #[must_use]
    pub fn dropped(&self) -> Arc<Dropped> {
        Arc::clone(&self.dropped)
    }

    /// Sends what waits now. Blocks, but not for long.
    pub fn flush(&self) {
        // What was not sent is counted, or still waits.
        let _ = self.provider.force_flush();
    }

    /// Sends what waits, and nothing more after that. Blocks, but no longer than `within`: what is not sent
    /// by then is dropped.
    pub fn shut_down(&self, within: Duration) {
        // Its answer says no more than what is left does.
        let _ = self.provider.shutdown_with_timeout(within);
        let left = self.load.spans();
        if left > 0 {
            self.dropped.add(DropReason::Shutdown, left as u64);
            tracing::warn!(
                spans = left,
                "spans were not sent before the end, and are lost"
            );
        }
    }
}

/// What sends metrics to a collector, now and then.
pub(crate) type Collector = PeriodicReader<MetricExporter>;

/// To a collector, by OTLP over HTTP. What it does not take is told again with what comes next: sums are sent
/// as they stand.
pub(crate) fn collector(settings: &OtlpSettings) -> Result<Collector, ExportError> {
    let exporter = MetricExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_http_client(client()?)
        .with_headers(headers(settings))
        .with_endpoint(endpoint(settings, "metrics"))
        .with_timeout(EXPORT_TIME)
        .build()?;
    Ok(PeriodicReader::builder(exporter)
        .with_interval(METRICS)
        .build())
}

fn endpoint(settings: &OtlpSettings, signal: &str) -> String {
    let mut endpoint = settings.endpoint.clone();
    if let Ok(mut path) = endpoint.path_segments_mut() {
        path.pop_if_empty().extend(["v1", signal]);
    }
    endpoint.into()
}

fn headers(settings: &OtlpSettings) -> HashMap<String, String> {
    let headers = settings.headers.0.iter();
    headers
        .map(|(name, value)| (name.clone(), value.expose_secret().to_owned()))
        .collect()
}

/// A client that blocks: the exporter's thread has no runtime. It is built on a thread that has none either.
fn client() -> Result<reqwest::blocking::Client, ExportError> {
    let build = || {
        reqwest::blocking::Client::builder()
            .user_agent(concat!("hango/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .connect_timeout(EXPORT_TIME / 2)
            .timeout(EXPORT_TIME)
            .build()
    };
    let building = thread::Builder::new().spawn(build);
    let built = building.map_err(|_| ExportError::Thread)?.join();
    built
        .map_err(|_| ExportError::Thread)?
        .map_err(ExportError::Client)
}
