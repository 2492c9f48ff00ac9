//! From an event to its line. What identifies a run is recorded on a span around it; every line within
//! has it at its top level, so that `grep` finds all of a run.

use std::error::Error;
use std::fmt::{self, Write};
use std::sync::Arc;

use hango_ports::Clock;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, Scope};

use super::queue::Queue;
use crate::system::written;

/// How lines look.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Style {
    /// An object with flat keys.
    Json,
    /// For eyes.
    Pretty {
        /// Whether the reader's terminal has colours.
        colours: bool,
    },
}

/// Makes lines and puts them into the queue.
pub(super) struct Lines {
    style: Style,
    clock: Arc<dyn Clock>,
    queue: Arc<Queue>,
}

impl Lines {
    pub(super) fn new(style: Style, clock: Arc<dyn Clock>, queue: Arc<Queue>) -> Self {
        Self {
            style,
            clock,
            queue,
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            fields.0.retain(|(name, _)| identifies(name));
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
            fields.0.retain(|(name, _)| identifies(name));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut own = Fields::default();
        event.record(&mut own);
        let mut line = Fields::default();
        line.set("timestamp", written(self.clock.now()).into());
        line.set("level", event.metadata().level().as_str().into());
        line.set("target", event.metadata().target().into());
        line.set("message", own.take("message").unwrap_or_else(|| "".into()));
        for span in context
            .event_scope(event)
            .into_iter()
            .flat_map(Scope::from_root)
        {
            if let Some(fields) = span.extensions().get::<Fields>() {
                line.set_all(fields.0.iter().cloned());
            }
        }
        let reserved = ["timestamp", "level", "target"];
        own.0.retain(|(name, _)| !reserved.contains(name));
        line.set_all(own.0);
        self.queue.push(match self.style {
            Style::Json => line.json(),
            Style::Pretty { colours } => line.pretty(colours, *event.metadata().level()),
        });
    }
}

/// Whether a span's field belongs onto every line within the span.
fn identifies(field: &str) -> bool {
    field.starts_with("hango.") || matches!(field, "trace_id" | "span_id" | "request_id")
}

/// Named values in the order in which they are written.
#[derive(Default)]
struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    fn set(&mut self, name: &'static str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }

    fn set_all(&mut self, fields: impl IntoIterator<Item = (&'static str, Value)>) {
        for (name, value) in fields {
            self.set(name, value);
        }
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(known, _)| *known == name)?;
        Some(self.0.remove(at).1)
    }

    fn json(&self) -> String {
        let pairs: Vec<String> = self
            .0
            .iter()
            .map(|(name, value)| format!("{}:{value}", Value::from(*name)))
            .collect();
        format!("{{{}}}\n", pairs.join(","))
    }

    fn pretty(&self, colours: bool, level: Level) -> String {
        let colour = match level {
            Level::ERROR => 31,
            Level::WARN => 33,
            Level::INFO => 32,
            Level::DEBUG => 34,
            Level::TRACE => 35,
        };
        let mut line = String::new();
        for (name, value) in &self.0 {
            let text = printable(value);
            // Writing to a string cannot fail.
            let _ = match *name {
                "timestamp" => write!(line, "{text}"),
                "level" if colours => write!(line, " \x1b[{colour}m{text:>5}\x1b[0m"),
                "level" => write!(line, " {text:>5}"),
                "target" => write!(line, " {text}:"),
                "message" => write!(line, " {text}"),
                name => write!(line, " {name}={text}"),
            };
        }
        line.push('\n');
        line
    }
}

/// A value's text, without anything that a terminal would obey.
fn printable(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.as_str(),
        other => return other.to_string(),
    };
    let mut printed = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' {
            printed.extend(c.escape_default());
        } else {
            printed.push(c);
        }
    }
    printed
}

impl Visit for Fields {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {error}");
            cause = error.source();
        }
        self.set(field.name(), text.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field.name(), format!("{value:?}").into());
    }
}
