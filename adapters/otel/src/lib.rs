//! What operators see of hango, by OpenTelemetry: spans and metrics for any backend that speaks OTLP, and
//! metrics for Prometheus.
//!
//! | module | what it has |
//! | --- | --- |
//! | `names` | every name that leaves this crate |
//! | `metrics` | numbers, out of the same; the page that Prometheus reads |
//! | `traces` | spans, out of what the engine and the API tell |
//! | `export` | the way out: bounded, counted, and never waited for |
//! | `settings` | what OpenTelemetry's variables say |
//!
//! Rules: the API of OpenTelemetry is used directly, with explicit parents and chosen ids; a span is made
//! when it is over, so nothing is held for what has only begun; no content unless it is asked for; whatever
//! becomes of a collector, no run notices.

mod export;
mod metrics;
pub mod names;
mod settings;
mod traces;

pub use export::{DropReason, Dropped, ExportError, Pipeline};
pub use metrics::{Metrics, MetricsError, MetricsSettings};
pub use settings::{Headers, OtlpSettings, ResourceAttributes, Service, SettingsError, sampling};
pub use traces::Traces;
