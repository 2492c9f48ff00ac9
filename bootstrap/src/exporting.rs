//! What is told to the outside: by OTLP, where a collector is configured.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use hango_domain::OwnerId;
use hango_otel::Pipeline;
use hango_ports::Telemetry;
use hango_ports::telemetry::Both;

use crate::config::Settings;

/// How long the end of the process waits for a collector.
const LAST_EXPORT: Duration = Duration::from_secs(3);

/// The exporter, while it takes something.
pub(crate) struct Exporting {
    pipeline: Pipeline,
}

impl Exporting {
    /// Starts to export what the process `owner` does, if that is configured.
    pub(crate) fn start(settings: &Settings, owner: OwnerId) -> anyhow::Result<Option<Self>> {
        let Some(otlp) = settings.otlp(owner.to_string()) else {
            return Ok(None);
        };
        let pipeline = Pipeline::otlp(&otlp).context("OTEL_EXPORTER_OTLP_ENDPOINT")?;
        Ok(Some(Self { pipeline }))
    }

    /// Tells `log` and the collector alike.
    pub(crate) fn beside(
        &self,
        log: Arc<dyn Telemetry>,
        settings: &Settings,
    ) -> Arc<dyn Telemetry> {
        let traces = self.pipeline.traces(settings.trace_llm_content);
        Arc::new(Both(log, traces))
    }

    /// Sends what waits, and gives up when that takes too long. It blocks a thread of its own, so that a
    /// runtime which has only one goes on.
    pub(crate) async fn stop(self) {
        let stopping = tokio::task::spawn_blocking(move || self.pipeline.shut_down(LAST_EXPORT));
        // The exporter keeps to its time; this is in case it does not.
        let stopped = tokio::time::timeout(LAST_EXPORT + Duration::from_secs(1), stopping).await;
        if !matches!(stopped, Ok(Ok(()))) {
            tracing::warn!("the exporter did not stop in time");
        }
    }
}
