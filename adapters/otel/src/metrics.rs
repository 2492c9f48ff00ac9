//! Numbers, out of what the engine and the API tell: counted where they happen, and read by whoever asks for
//! the page or by a collector.
//!
//! * Whatever a series is told apart by comes from a closed list or from what operators configured, or is one
//!   of the first names of its kind; all others, and what a model makes up, are `_OTHER`. No run, session, user
//!   or call is on a metric.
//! * A series that is known beforehand is there from the start, with 0: who alarms on it can tell "never"
//!   from "not measured".
//! * Gauges tell what was told last; what asks for them asks nobody else.

mod few;
mod gauges;
mod instruments;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use hango_domain::conversation::Usage;
use hango_domain::layers::{self, RepeatCall};
use hango_domain::note::Note;
use hango_domain::run::MAIN_LANE;
use hango_domain::tool::ToolFailure;
use hango_ports::Telemetry;
use hango_ports::store::StoreHealth;
use hango_ports::telemetry::{
    ErrorType, HooksRan, Interval, MetricsPage, MetricsUnavailable, ModelTry, Observation,
    RequestServed, RunEnd, RunFacts, ToolFacts, Wants,
};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Meter, MeterProvider as _};
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Registry, TextEncoder};
use thiserror::Error;

use crate::export::{Dropped, ExportError, collector};
use crate::names::{key, value};
use crate::settings::{OtlpSettings, Service};
use few::Few;
use gauges::Gauges;
use instruments::Instruments;

/// The most tokens that are believed of one call: a provider may say anything, and sums must not run over.
const MOST_TOKENS: u64 = u32::MAX as u64;

/// Counts.
pub struct Metrics {
    provider: SdkMeterProvider,
    meter: Meter,
    registry: Registry,
    instruments: Instruments,
    gauges: Arc<Gauges>,
    /// The tools that operators and layers registered.
    tools: BTreeSet<String>,
    /// Agents, which tenants name.
    agents: Few,
    /// Models, which they name too.
    models: Few,
}

/// What metrics are told apart by, beside what happens.
#[derive(Clone, Debug, Default)]
pub struct MetricsSettings {
    /// The tools that operators and layers registered.
    pub tools: Vec<String>,
    /// Whether the gauges of runs name their tenants.
    pub tenants: bool,
    /// Whose metrics they are.
    pub service: Service,
    /// The collector that is told too, now and then; `None` for none.
    pub collector: Option<OtlpSettings>,
    /// What was dropped of spans; `None` where there are none.
    pub dropped: Option<Arc<Dropped>>,
}

/// Why nothing can be counted.
#[derive(Debug, Error)]
pub enum MetricsError {
    /// The page cannot be set up.
    #[error("the page of metrics cannot be set up")]
    Page(#[from] OTelSdkError),
    /// The collector cannot be told.
    #[error("metrics cannot be sent")]
    Export(#[from] ExportError),
}

impl Metrics {
    /// Nothing has happened yet.
    ///
    /// # Errors
    ///
    /// [`MetricsError`]; whether a collector is there shows later, and hurts nobody.
    pub fn new(settings: MetricsSettings) -> Result<Self, MetricsError> {
        let registry = Registry::new();
        let page = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .scope_info_enabled(false)
            .build()?;
        let mut provider = SdkMeterProvider::builder()
            .with_resource(settings.service.resource())
            .with_reader(page);
        if let Some(otlp) = &settings.collector {
            provider = provider.with_reader(collector(otlp)?);
        }
        let provider = provider.build();
        let meter = provider.meter(value::SCOPE);
        let gauges = Arc::new(Gauges::new(settings.tenants));
        let dropped = settings.dropped.unwrap_or_default();
        gauges::register(&meter, &gauges, vec![(value::TRACES, dropped)]);
        let metrics = Self {
            instruments: Instruments::new(&meter),
            meter,
            provider,
            registry,
            gauges,
            tools: settings.tools.into_iter().collect(),
            agents: Few::default(),
            models: Few::default(),
        };
        metrics.begin_at_zero();
        Ok(metrics)
    }

    /// Makes the series that are known.
    fn begin_at_zero(&self) {
        let it = &self.instruments;
        for outcome in [value::WON, value::LOST] {
            it.claims.add(0, &[KeyValue::new(key::OUTCOME, outcome)]);
        }
        it.reclaimed.add(0, &[lane()]);
        for tool in self.tools.iter().map(String::as_str).chain([value::OTHER]) {
            let tool = KeyValue::new(key::TOOL_NAME, tool.to_owned());
            it.repeat_blocked.add(0, std::slice::from_ref(&tool));
            for failure in ToolFailure::ALL {
                let error = ErrorType::from(failure);
                it.tool_errors.add(0, &[tool.clone(), error_type(&error)]);
            }
        }
        for layer in layers::NAMES {
            let layer = KeyValue::new(key::MIDDLEWARE_NAME, layer);
            it.tool_short_circuits.add(0, &[layer]);
        }
    }

    /// Tells how much of a store's connections is in use from now on.
    pub fn watch(&self, store: &Arc<dyn StoreHealth>) {
        gauges::watch(&self.meter, store);
    }

    /// Sends what a collector was not told yet, and ends. Blocks for about `within`; with a collector that
    /// answers nobody, for some seconds.
    pub fn shut_down(&self, within: std::time::Duration) {
        if let Err(error) = self.provider.shutdown_with_timeout(within) {
            tracing::debug!(%error, "the last metrics were not sent");
        }
    }

    /// A tool's name; one that nobody registered a model made up.
    fn tool(&self, name: &str) -> KeyValue {
        let known = self.tools.get(name).map_or(value::OTHER, String::as_str);
        KeyValue::new(key::TOOL_NAME, known.to_owned())
    }

    fn agent(&self, about: &RunFacts) -> KeyValue {
        KeyValue::new(key::AGENT_NAME, self.agents.name(&about.agent_name))
    }

    fn model(&self, key: &'static str, model: &str) -> KeyValue {
        KeyValue::new(key, self.models.name(model))
    }

    fn run_ended(&self, end: &RunEnd) {
        let it = &self.instruments;
        let agent = [self.agent(&end.about)];
        let mut attributes = agent.to_vec();
        if let Some(model) = &end.about.model {
            attributes.push(self.model(key::REQUEST_MODEL, model));
        }
        attributes.extend(end.error.as_ref().map(error_type));
        it.run_duration.record(seconds(end.took()), &attributes);
        it.inference_calls
            .record(end.inference_calls.into(), &agent);
        it.tool_calls.record(end.tool_calls.into(), &agent);
        it.iterations.record(end.iterations.into(), &agent);
    }

    fn model_tried(&self, made: &ModelTry) {
        let it = &self.instruments;
        let mut attributes = vec![
            KeyValue::new(key::OPERATION_NAME, value::CHAT),
            KeyValue::new(key::PROVIDER_NAME, made.provider),
            self.model(key::REQUEST_MODEL, &made.model),
        ];
        if let Some(model) = &made.names.model {
            attributes.push(self.model(key::RESPONSE_MODEL, model));
        }
        if let Some(server) = &made.server {
            attributes.push(KeyValue::new(key::SERVER_ADDRESS, server.host.clone()));
            attributes.push(KeyValue::new(key::SERVER_PORT, i64::from(server.port)));
        }
        if let Some(begun) = made.first_chunk {
            let waited = Interval {
                ended: begun,
                ..made.took
            };
            it.first_chunk.record(seconds(waited), &attributes);
        }
        let Usage {
            input_tokens,
            output_tokens,
            ..
        } = made.usage;
        for (kind, tokens) in [(value::INPUT, input_tokens), (value::OUTPUT, output_tokens)] {
            if tokens > 0 {
                let mut attributes = attributes.clone();
                attributes.push(KeyValue::new(key::TOKEN_TYPE, kind));
                it.tokens.record(tokens.min(MOST_TOKENS), &attributes);
            }
        }
        attributes.extend(made.error.as_ref().map(error_type));
        it.operation_duration
            .record(seconds(made.took), &attributes);
    }

    fn tool_called(&self, call: &ToolFacts) {
        let it = &self.instruments;
        let tool = self.tool(&call.tool);
        let mut attributes = vec![
            tool.clone(),
            KeyValue::new(key::TOOL_TYPE, value::FUNCTION),
            self.agent(&call.about),
        ];
        if let Some(failure) = call.failure {
            let error = error_type(&ErrorType::from(failure));
            attributes.push(error.clone());
            it.tool_errors.add(1, &[tool, error]);
        }
        it.tool_duration.record(seconds(call.took), &attributes);
    }

    fn hooks_ran(&self, ran: &HooksRan) {
        for (layer, took) in &ran.hooks {
            let layer = [KeyValue::new(key::MIDDLEWARE_NAME, *layer)];
            let duration = &self.instruments.before_run_duration;
            duration.record(seconds(*took), &layer);
        }
    }

    fn noted(&self, note: &Note) {
        let it = &self.instruments;
        match note {
            Note::RepeatCallBlocked { tool } => {
                it.repeat_blocked.add(1, &[self.tool(tool)]);
                let layer = KeyValue::new(key::MIDDLEWARE_NAME, RepeatCall::NAME);
                it.tool_short_circuits.add(1, &[layer]);
            }
            Note::ShortCircuited { layer, .. } | Note::ToolRefused { layer, .. } => {
                let layer = KeyValue::new(key::MIDDLEWARE_NAME, *layer);
                it.tool_short_circuits.add(1, &[layer]);
            }
            _ => {}
        }
    }

    fn request_served(&self, request: &RequestServed) {
        let method = request.method.unwrap_or(value::OTHER_METHOD);
        let mut attributes = vec![KeyValue::new(key::HTTP_METHOD, method)];
        if let Some(route) = &request.route {
            attributes.push(KeyValue::new(key::HTTP_ROUTE, route.clone()));
        }
        if let Some(status) = request.status {
            attributes.push(KeyValue::new(key::HTTP_STATUS, i64::from(status)));
        }
        let duration = &self.instruments.request_duration;
        duration.record(seconds(request.took), &attributes);
    }
}

impl Telemetry for Metrics {
    fn observe(&self, what: Observation) {
        let it = &self.instruments;
        match what {
            Observation::ClaimWon { lease, waited } => {
                it.claims.add(1, &[KeyValue::new(key::OUTCOME, value::WON)]);
                if lease.attempt == 1 {
                    it.queue_wait.record(waited.as_secs_f64(), &[lane()]);
                }
            }
            Observation::ClaimLost { .. } => {
                it.claims
                    .add(1, &[KeyValue::new(key::OUTCOME, value::LOST)]);
            }
            Observation::Reclaimed { .. } => it.reclaimed.add(1, &[lane()]),
            Observation::HooksRan(ran) => self.hooks_ran(&ran),
            Observation::Noted { note, .. } => self.noted(&note),
            Observation::ModelTried(made) => self.model_tried(&made),
            Observation::ToolCalled {
                facts: Some(call), ..
            }
            | Observation::ToolSettled(call) => self.tool_called(&call),
            Observation::RunEnded { end: Some(end), .. } => self.run_ended(&end),
            Observation::RequestServed(request) => self.request_served(&request),
            Observation::Census(census) => self.gauges.count(census),
            Observation::Workers { busy, limit } => self.gauges.workers(busy, limit),
            // Told in other words too, or nothing that is counted.
            Observation::LeaseLost { .. }
            | Observation::ModelCalled { .. }
            | Observation::ToolCalled { .. }
            | Observation::TurnEnded(_)
            | Observation::RunEnded { .. } => {}
        }
    }

    fn wants(&self) -> Wants {
        Wants {
            facts: true,
            content: false,
        }
    }
}

impl MetricsPage for Metrics {
    fn page(&self) -> Result<String, MetricsUnavailable> {
        let families = self.registry.gather();
        TextEncoder::new()
            .encode_to_string(&families)
            .map_err(|error| MetricsUnavailable(Box::new(error)))
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

fn lane() -> KeyValue {
    KeyValue::new(key::LANE, MAIN_LANE)
}

fn error_type(error: &ErrorType) -> KeyValue {
    KeyValue::new(key::ERROR_TYPE, error.as_str().to_owned())
}

fn seconds(took: Interval) -> f64 {
    took.ended.since(took.begun).as_secs_f64()
}
