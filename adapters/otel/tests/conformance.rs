//! A sink of spans, and one of metrics, does what every sink must, a collector that answers nobody included.

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

mod counting {
    use std::sync::Arc;

    use hango_otel::{Metrics, MetricsSettings};
    use hango_ports::Telemetry;
    use hango_ports::telemetry::MetricsPage;

    /// With a page that is read at the end.
    async fn metrics() -> (Arc<dyn Telemetry>, Reader) {
        let metrics = Metrics::new(MetricsSettings {
            tenants: true,
            ..MetricsSettings::default()
        });
        let metrics = Arc::new(metrics.expect("nothing is missing"));
        let reader = Reader(Arc::clone(&metrics));
        (metrics, reader)
    }

    /// Reads the page at the end: whatever was told can be shown.
    struct Reader(Arc<Metrics>);

    impl Drop for Reader {
        fn drop(&mut self) {
            let page = self.0.page().expect("it can be written");
            let ends = "gen_ai_invoke_agent_duration_seconds_count";
            assert!(page.contains(ends), "what was told is counted: {page}");
        }
    }

    hango_conformance::telemetry_tests!(metrics);
}
