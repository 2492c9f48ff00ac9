//! Turns, and the hooks before a run.

use chrono::{DateTime, SecondsFormat};
use hango_domain::{SpanId, Timestamp};
use hango_ports::telemetry::{HooksRan, TurnEnd};
use opentelemetry::trace;

use super::draft::{Draft, Parent};
use super::run::noted;
use crate::names::{key, span};

/// A turn, in the run's root.
pub(super) fn draft(turn: TurnEnd) -> Draft {
    let about = &*turn.about;
    let events = turn.notes.iter();
    let draft = Draft::of_run(about, span::TURN, turn.took)
        .with(key::TURN, i64::from(turn.turn))
        .with(key::ATTEMPT, i64::from(turn.attempt))
        .taken_for("chain", "CHAIN")
        .failed(turn.error);
    Draft {
        span: Some(SpanId::of_turn(about.run, turn.attempt, turn.turn)),
        parent: Some(root_of(about.trace.span_id)),
        events: events.map(|(at, note)| noted(*at, note)).collect(),
        ..draft
    }
}

/// The hooks before a run, and each of them within.
pub(super) fn hooks(ran: &HooksRan) -> Vec<Draft> {
    let about = &*ran.about;
    let id = random();
    let all = Draft {
        span: Some(id),
        parent: Some(root_of(about.trace.span_id)),
        ..Draft::of_run(about, span::BEFORE_RUN, ran.took)
    };
    let each = ran.hooks.iter().map(|(layer, took)| {
        let name = format!("{} {layer}", span::HOOK);
        Draft::of_run(about, name, *took)
            .within(id)
            .with(key::MIDDLEWARE_NAME, *layer)
    });
    std::iter::once(all).chain(each).collect()
}

/// The root is told by whoever ends the run, which may be another process.
const fn root_of(span: SpanId) -> Parent {
    Parent { span, remote: true }
}

fn random() -> SpanId {
    use opentelemetry_sdk::trace::IdGenerator;
    let id: trace::SpanId = opentelemetry_sdk::trace::RandomIdGenerator::default().new_span_id();
    SpanId(id.to_bytes())
}

/// A moment for people.
pub(super) fn written(at: Timestamp) -> String {
    let at = DateTime::from_timestamp_micros(at.as_micros()).unwrap_or_default();
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}
