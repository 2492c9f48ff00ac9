//! The root of a run's trace, told once, by whoever ended the run.

use hango_domain::Timestamp;
use hango_domain::conversation::StopReason;
use hango_domain::layers::RepeatCall;
use hango_domain::note::Note;
use hango_domain::run::{RunErrorCode, RunStatus};
use hango_domain::tool::told_name;
use hango_ports::telemetry::{Life, RunEnd};
use opentelemetry::KeyValue;
use opentelemetry::trace::{Event, Link, SpanContext, TraceFlags, TraceState};

use super::content;
use super::draft::{Draft, number, span_id, texts, time, trace_id};
use super::turn::written;
use crate::names::{event, key, span, value};

/// It starts with the first claim: how long the run waited is an attribute.
pub(super) fn draft(end: &RunEnd) -> Draft {
    let about = &*end.about;
    let name = format!("{} {}", span::INVOKE_AGENT, about.agent_name);
    let error = match end.status {
        RunStatus::Failed => {
            let error = end.error.clone();
            Some(error.unwrap_or_else(|| RunErrorCode::Internal.into()))
        }
        RunStatus::Queued | RunStatus::Running | RunStatus::Succeeded | RunStatus::Cancelled => {
            None
        }
    };
    let content = end.content.as_ref();
    let draft = Draft::of_run(about, name, end.took())
        .with(key::OPERATION_NAME, span::INVOKE_AGENT)
        .with(key::AGENT_NAME, about.agent_name.clone())
        .with(key::GEN_AI_AGENT_ID, about.agent.to_string())
        .with(key::CONVERSATION_ID, about.session.to_string())
        .with_some(key::PROVIDER_NAME, about.provider.clone())
        .taken_for("agent", "AGENT")
        .with(key::RUN_STATE, end.status.as_str())
        .with_some(
            key::RUN_STOP_REASON,
            end.stop_reason.map(StopReason::as_str),
        )
        .with(key::RUN_ITERATIONS, i64::from(end.iterations))
        .with(key::RUN_ATTEMPTS, i64::from(end.attempts))
        .with(key::RUN_INPUT_TOKENS, number(end.usage.input_tokens))
        .with(key::RUN_OUTPUT_TOKENS, number(end.usage.output_tokens))
        .with(key::RUN_QUEUE_WAIT_MS, number(end.waited().as_millis()))
        .with_some(key::TODOS_TOTAL, end.todos.map(|it| number(it.total)))
        .with_some(key::TODOS_DONE, end.todos.map(|it| number(it.completed)))
        .with_some(
            key::INPUT_MESSAGES,
            content.map(|it| content::said("user", &it.input)),
        )
        .with_some(
            key::OUTPUT_MESSAGES,
            content.map(|it| content::answer(&it.answer, end.stop_reason)),
        )
        .failed(error);
    Draft {
        span: Some(about.trace.span_id),
        events: end.life.iter().map(lived).collect(),
        link: about.trace.created_by_traceparent.as_deref().and_then(link),
        ..draft
    }
}

/// The link to the span of the request that created the run.
fn link(traceparent: &str) -> Option<Link> {
    let mut parts = traceparent.split('-').skip(1);
    let (trace, span) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    let context = SpanContext::new(
        trace_id(trace),
        span_id(span),
        TraceFlags::new(flags),
        true,
        TraceState::NONE,
    );
    let kind = KeyValue::new(key::LINK_KIND, value::CREATED_BY);
    Some(Link::new(context, vec![kind], 0))
}

fn lived((at, life): &(Timestamp, Life)) -> Event {
    let (name, attributes) = match life {
        Life::Claimed {
            owner,
            lease_expires_at,
            attempt,
        } => {
            let mut attributes = vec![KeyValue::new(key::ATTEMPT, i64::from(*attempt))];
            let owner = owner.map(|it| KeyValue::new(key::OWNER_ID, it.to_string()));
            let until =
                lease_expires_at.map(|it| KeyValue::new(key::LEASE_EXPIRES_AT, written(it)));
            attributes.extend(owner.into_iter().chain(until));
            (event::RUN_CLAIMED, attributes)
        }
        Life::Reclaimed {
            previous_owner,
            resume_turn,
            attempt,
        } => {
            let mut attributes = vec![
                KeyValue::new(key::RESUME_TURN, i64::from(*resume_turn)),
                KeyValue::new(key::ATTEMPT, i64::from(*attempt)),
            ];
            let owner = previous_owner.map(|it| it.to_string());
            attributes.extend(owner.map(|it| KeyValue::new(key::PREVIOUS_OWNER_ID, it)));
            (event::RUN_RECLAIMED, attributes)
        }
        Life::Layers(names) => {
            let names = KeyValue::new(key::MIDDLEWARE_NAMES, texts(names));
            (event::MIDDLEWARE_STACK, vec![names])
        }
        Life::Noted(note) => return noted(*at, note),
    };
    Event::new(name, time(*at), attributes, 0)
}

/// What a layer reported, as an event.
pub(super) fn noted(at: Timestamp, note: &Note) -> Event {
    let layer = |name: &'static str| KeyValue::new(key::MIDDLEWARE_NAME, name);
    let reason = |reason: &'static str| KeyValue::new(key::REASON, reason);
    let tool = |tool: &String| KeyValue::new(key::TOOL_NAME, told_name(tool).to_owned());
    let (name, attributes) = match note {
        Note::RequestRewritten {
            layer: by,
            reason: why,
        } => (event::REQUEST_REWRITTEN, vec![layer(by), reason(why)]),
        Note::ShortCircuited {
            layer: by,
            reason: why,
        } => (event::SHORT_CIRCUITED, vec![layer(by), reason(why)]),
        Note::Retried {
            layer: by,
            reason: why,
        } => (event::RETRIED, vec![layer(by), reason(why)]),
        Note::RepeatCallBlocked { tool: of } => (
            event::REPEAT_CALL_BLOCKED,
            vec![
                layer(RepeatCall::NAME),
                reason("the run had made the call too often"),
                tool(of),
            ],
        ),
        Note::TodosUpdated {
            pending,
            in_progress,
            completed,
        } => (
            event::TODOS_UPDATED,
            vec![
                KeyValue::new(key::TODOS_PENDING, number(*pending)),
                KeyValue::new(key::TODOS_IN_PROGRESS, number(*in_progress)),
                KeyValue::new(key::TODOS_COMPLETED, number(*completed)),
            ],
        ),
        Note::StateMissing { layer: of } => (
            event::STATE_MISSING,
            vec![
                layer(of),
                reason("what it had stored is not in the run's memory"),
            ],
        ),
        Note::HistoryRepaired { .. } => (
            event::REQUEST_REWRITTEN,
            vec![
                layer("repair_tool_calls"),
                reason("the conversation was not legal"),
            ],
        ),
        Note::ToolRefused {
            layer: by,
            tool: of,
        } => (
            event::SHORT_CIRCUITED,
            vec![
                layer(by),
                reason("the agent may not call the tool"),
                tool(of),
            ],
        ),
    };
    Event::new(name, time(at), attributes, 0)
}
