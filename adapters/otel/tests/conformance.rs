//! A sink of spans does what every sink must, a collector that answers nobody included.

use std::sync::Arc;
use std::time::Duration;

use hango_otel::Pipeline;
use hango_ports::Telemetry;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

/// A collector that takes its time.
#[derive(Debug)]
struct Slow;

impl SpanExporter for Slow {
    async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
        std::thread::sleep(Duration::from_millis(200));
        Ok(())
    }
}

async fn traces() -> (Arc<dyn Telemetry>, Pipeline) {
    let pipeline = Pipeline::to(Slow, Resource::builder_empty().build());
    (Arc::new(pipeline.traces(true)), pipeline)
}

hango_conformance::telemetry_tests!(traces);
