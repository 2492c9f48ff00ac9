//! A span before it is made: what it is called, where it belongs, and all that is on it.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use hango_domain::{SpanId, Timestamp, TraceId};
use hango_ports::telemetry::{ErrorType, Interval, RunFacts};
use opentelemetry::trace::{
    Event, Link, Span, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt, TraceFlags,
    TraceState, Tracer,
};
use opentelemetry::{Array, Context, KeyValue, StringValue, Value, trace};
use opentelemetry_sdk::trace::SdkTracer;

use super::ids::{Chosen, choosing};
use crate::names::key;

/// A span that is over.
pub(super) struct Draft {
    pub(super) name: Cow<'static, str>,
    pub(super) kind: SpanKind,
    pub(super) trace: TraceId,
    /// Its id, where that is chosen.
    pub(super) span: Option<SpanId>,
    pub(super) parent: Option<Parent>,
    pub(super) took: Interval,
    pub(super) attributes: Vec<KeyValue>,
    pub(super) events: Vec<Event>,
    pub(super) link: Option<Link>,
    pub(super) error: Option<ErrorType>,
}

/// The span that a span is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parent {
    pub(super) span: SpanId,
    /// Whether another process told of it, or will.
    pub(super) remote: bool,
}

impl Draft {
    /// A span of a run, which says whose run it is.
    pub(super) fn of_run(
        about: &RunFacts,
        name: impl Into<Cow<'static, str>>,
        took: Interval,
    ) -> Self {
        Self {
            name: name.into(),
            kind: SpanKind::Internal,
            trace: about.trace.trace_id,
            span: None,
            parent: None,
            took,
            attributes: attributes_of(about),
            events: Vec::new(),
            link: None,
            error: None,
        }
    }

    /// The same within another of the run's spans.
    pub(super) fn within(self, span: SpanId) -> Self {
        let remote = false;
        Self {
            parent: Some(Parent { span, remote }),
            ..self
        }
    }

    /// The same with one more attribute.
    pub(super) fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.attributes.push(KeyValue::new(key, value));
        self
    }

    /// The same with one more attribute, if there is a value.
    pub(super) fn with_some(self, key: &'static str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// The same as what consumers take it for.
    pub(super) fn taken_for(self, observation: &'static str, openinference: &'static str) -> Self {
        self.with(key::OBSERVATION_TYPE, observation)
            .with(key::OPENINFERENCE_KIND, openinference)
    }

    /// The same, failed if there is an error. Its description is its class alone.
    pub(super) fn failed(self, error: Option<ErrorType>) -> Self {
        Self { error, ..self }
    }

    /// Makes the span and lets it go.
    pub(super) fn tell(self, tracer: &SdkTracer) {
        let mut attributes = self.attributes;
        let status = self.error.map(|error| {
            let class = error.into_text();
            attributes.push(KeyValue::new(key::ERROR_TYPE, class.clone()));
            Status::error(class)
        });
        let (begun, ended) = (self.took.begun, self.took.ended.max(self.took.begun));
        let builder = SpanBuilder::from_name(self.name)
            .with_kind(self.kind)
            .with_start_time(time(begun))
            .with_attributes(attributes)
            .with_events(self.events)
            .with_links(self.link.into_iter().collect());
        let context = match self.parent {
            Some(parent) => Context::new().with_remote_span_context(SpanContext::new(
                trace_id(self.trace),
                span_id(parent.span),
                TraceFlags::SAMPLED,
                parent.remote,
                TraceState::NONE,
            )),
            None => Context::new(),
        };
        let chosen = Chosen {
            trace: Some(trace_id(self.trace)),
            span: self.span.map(span_id),
        };
        let mut span = choosing(chosen, || tracer.build_with_context(builder, &context));
        if let Some(status) = status {
            span.set_status(status);
        }
        span.end_with_timestamp(time(ended));
    }
}

/// What every span of a run says.
fn attributes_of(about: &RunFacts) -> Vec<KeyValue> {
    let [run, tenant, agent, session, user] = [
        about.run.to_string(),
        about.tenant.to_string(),
        about.agent.to_string(),
        about.session.to_string(),
        about.created_by.to_string(),
    ];
    // Room for what a span says besides.
    let mut attributes = Vec::with_capacity(40);
    attributes.extend([
        KeyValue::new(key::TRACE_NAME, about.agent_name.clone()),
        KeyValue::new(key::TRACE_TAGS, texts([&about.agent_slug, &about.lane])),
        KeyValue::new(key::LANE, about.lane.clone()),
        KeyValue::new(key::TRACE_RUN_ID, run.clone()),
        KeyValue::new(key::RUN_ID, run),
        KeyValue::new(key::TRACE_TENANT_ID, tenant.clone()),
        KeyValue::new(key::TENANT_ID, tenant),
        KeyValue::new(key::TRACE_AGENT_ID, agent.clone()),
        KeyValue::new(key::AGENT_ID, agent),
        KeyValue::new(key::TRACE_SESSION_ID, session.clone()),
        KeyValue::new(key::GENERAL_SESSION_ID, session.clone()),
        KeyValue::new(key::SESSION_ID, session),
        KeyValue::new(key::TRACE_USER_ID, user.clone()),
        KeyValue::new(key::GENERAL_USER_ID, user),
    ]);
    attributes
}

/// A list of texts.
pub(super) fn texts(texts: impl IntoIterator<Item = impl AsRef<str>>) -> Value {
    let texts = texts
        .into_iter()
        .map(|text| StringValue::from(text.as_ref().to_owned()));
    Value::Array(Array::String(texts.collect()))
}

/// A number as attributes have them.
pub(super) fn number(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// A moment as spans have it. Before the epoch there was nothing.
pub(super) fn time(at: Timestamp) -> SystemTime {
    let micros = u64::try_from(at.as_micros()).unwrap_or(0);
    let since = SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(micros));
    since.unwrap_or(SystemTime::UNIX_EPOCH)
}

pub(super) const fn trace_id(id: TraceId) -> trace::TraceId {
    trace::TraceId::from_bytes(id.0)
}

pub(super) const fn span_id(id: SpanId) -> trace::SpanId {
    trace::SpanId::from_bytes(id.0)
}
