//! What operators are told beside the log: spans by OTLP, where a collector is configured, and metrics, where
//! somebody can read them.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use futures::future::join_all;
use hango_domain::OwnerId;
use hango_otel::{Metrics, MetricsSettings, Pipeline};
use hango_ports::Telemetry;
use hango_ports::store::StoreHealth;
use hango_ports::telemetry::{Both, MetricsPage};
use tokio::sync::oneshot;

use crate::config::Settings;

/// How long the end of the process waits for a collector.
const LAST_EXPORT: Duration = Duration::from_secs(3);

/// The ways out.
pub(crate) struct Exporting {
    pipeline: Option<Pipeline>,
    metrics: Option<Arc<Metrics>>,
}

impl Exporting {
    /// Starts to export what the process `owner` does, as far as that is configured. Its tools are known by
    /// these names.
    pub(crate) fn start(
        settings: &Settings,
        owner: OwnerId,
        tools: Vec<String>,
    ) -> anyhow::Result<Self> {
        let otlp = settings.otlp(owner.to_string());
        let pipeline = otlp.as_ref().map(Pipeline::otlp).transpose();
        let pipeline = pipeline.context("OTEL_EXPORTER_OTLP_ENDPOINT")?;
        let is_read = settings.metrics_listen.is_some() || settings.shows_metrics();
        let metrics = if is_read || otlp.is_some() {
            let metrics = Metrics::new(MetricsSettings {
                tools,
                tenants: settings.metrics_tenant_label,
                service: settings.service(owner.to_string()),
                collector: otlp,
                dropped: pipeline.as_ref().map(Pipeline::dropped),
            });
            Some(Arc::new(metrics.context("start to count")?))
        } else {
            None
        };
        Ok(Self { pipeline, metrics })
    }

    /// Tells `log` and all ways out alike.
    pub(crate) fn beside(
        &self,
        log: Arc<dyn Telemetry>,
        settings: &Settings,
    ) -> Arc<dyn Telemetry> {
        let mut telemetry = log;
        if let Some(metrics) = &self.metrics {
            telemetry = Arc::new(Both(telemetry, Arc::clone(metrics)));
        }
        // Last, so that what people and models said is handed on and not copied.
        if let Some(pipeline) = &self.pipeline {
            let traces = pipeline.traces(settings.trace_llm_content);
            telemetry = Arc::new(Both(telemetry, traces));
        }
        telemetry
    }

    /// Tells of a store's connections from now on.
    pub(crate) fn watch(&self, store: &Arc<dyn StoreHealth>) {
        if let Some(metrics) = &self.metrics {
            metrics.watch(store);
        }
    }

    /// Whether spans go anywhere.
    pub(crate) const fn traces(&self) -> bool {
        self.pipeline.is_some()
    }

    /// The page of metrics.
    pub(crate) fn page(&self) -> Option<Arc<dyn MetricsPage>> {
        self.metrics.clone().map(|metrics| metrics as _)
    }

    /// Sends what waits, and gives up when that takes too long. Each blocks a thread of its own, which the end
    /// of the process does not wait for.
    pub(crate) async fn stop(mut self) {
        let spans = self
            .pipeline
            .take()
            .map(|it| ending(move || it.shut_down(LAST_EXPORT)));
        let metrics = self
            .metrics
            .take()
            .map(|it| ending(move || it.shut_down(LAST_EXPORT)));
        let ended = join_all(spans.into_iter().chain(metrics));
        // They keep to their time; this is in case they do not.
        if tokio::time::timeout(LAST_EXPORT, ended).await.is_err() {
            tracing::warn!("what operators are told was not sent in time");
        }
    }
}

impl Drop for Exporting {
    /// A start that fails waits for no collector: what is dropped here ends beside it.
    fn drop(&mut self) {
        let (pipeline, metrics) = (self.pipeline.take(), self.metrics.take());
        if pipeline.is_some() || metrics.is_some() {
            drop(ending(move || drop((pipeline, metrics))));
        }
    }
}

/// Does `work` beside the runtime. It is over when the sender is gone, however the work ended.
fn ending(work: impl FnOnce() + Send + 'static) -> oneshot::Receiver<()> {
    let (over, ended) = oneshot::channel();
    let thread = thread::Builder::new().name("last-export".to_owned());
    let begun = thread.spawn(move || {
        let _over = over;
        work();
    });
    if let Err(error) = begun {
        tracing::warn!(%error, "what operators are told cannot be sent");
    }
    ended
}
