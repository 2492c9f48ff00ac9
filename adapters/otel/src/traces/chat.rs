//! A model call, as often as its provider was asked.

use hango_domain::SpanId;
use hango_domain::conversation::Usage;
use hango_ports::telemetry::ModelTry;
use opentelemetry::trace::SpanKind;
use serde_json::{Map, Value, json};

use super::content;
use super::draft::{Draft, number, texts};
use super::turn::written;
use crate::names::{key, span};

/// It names no agent and no tool: consumers would take it for another kind of span.
pub(super) fn draft(made: ModelTry) -> Draft {
    let about = &*made.about;
    let context = &made.context;
    let name = format!("{} {}", span::CHAT, made.model);
    let begun = made.took.begun;
    let first = made.first_chunk;
    let answered = made.error.is_none();
    let reason = made.names.finish_reason.clone();
    let reason = reason.or_else(|| made.stop_reason.map(|it| it.as_str().to_owned()));
    let model = made.names.model.clone();
    // A server that does not say which model answered answered with the one that was asked for.
    let model = model.or_else(|| answered.then(|| made.model.clone()));
    let usage = made.usage;
    let some = |tokens: u64| (tokens > 0).then(|| number(tokens));
    let said = made.content.as_ref();
    let draft = Draft::of_run(about, name, made.took)
        .within(SpanId::of_turn(context.run, context.attempt, context.turn))
        .with(key::OPERATION_NAME, span::CHAT)
        .with(key::PROVIDER_NAME, made.provider)
        .with(key::REQUEST_MODEL, made.model.clone())
        .with(key::CONVERSATION_ID, about.session.to_string())
        .with(key::REQUEST_STREAM, true)
        .with_some(key::REQUEST_MAX_TOKENS, made.max_tokens.map(i64::from))
        .with_some(key::REQUEST_TEMPERATURE, made.temperature)
        .with_some(
            key::SERVER_ADDRESS,
            made.server.as_ref().map(|it| it.host.clone()),
        )
        .with_some(
            key::SERVER_PORT,
            made.server.as_ref().map(|it| i64::from(it.port)),
        )
        .with_some(key::RESPONSE_ID, made.names.id.clone())
        .with_some(key::RESPONSE_MODEL, model)
        .with_some(key::FINISH_REASONS, reason.map(|reason| texts([reason])))
        .with_some(
            key::TIME_TO_FIRST_CHUNK,
            first.map(|at| at.since(begun).as_secs_f64()),
        )
        .with_some(key::COMPLETION_START_TIME, first.map(written))
        .with(key::INPUT_TOKENS, number(usage.input_tokens))
        .with(key::OUTPUT_TOKENS, number(usage.output_tokens))
        .with_some(key::CACHE_READ_TOKENS, some(usage.cache_read_tokens))
        .with_some(key::CACHE_CREATION_TOKENS, some(usage.cache_write_tokens))
        .with_some(key::USAGE_DETAILS, answered.then(|| details(&usage)))
        .taken_for("generation", "LLM")
        .with_some(
            key::SYSTEM_INSTRUCTIONS,
            said.map(|it| content::system(&it.system)),
        )
        .with_some(
            key::INPUT_MESSAGES,
            said.map(|it| content::messages(&it.messages)),
        )
        .with_some(
            key::OUTPUT_MESSAGES,
            said.map(|it| content::answer(&it.answer, made.stop_reason)),
        )
        .with_some(
            key::TOOL_DEFINITIONS,
            said.map(|it| content::tools(&it.tools)),
        )
        .failed(made.error);
    Draft {
        kind: SpanKind::Client,
        ..draft
    }
}

/// What a call cost, in buckets that do not overlap: whoever adds them up counts no token twice.
fn details(usage: &Usage) -> String {
    let (read, written) = (usage.cache_read_tokens, usage.cache_write_tokens);
    let cached = read.saturating_add(written);
    let mut details = Map::from_iter([
        (
            "input".to_owned(),
            json!(usage.input_tokens.saturating_sub(cached)),
        ),
        ("output".to_owned(), json!(usage.output_tokens)),
    ]);
    for (bucket, tokens) in [
        ("input_cached_tokens", read),
        ("input_cache_creation", written),
    ] {
        if tokens > 0 {
            details.insert(bucket.to_owned(), json!(tokens));
        }
    }
    Value::Object(details).to_string()
}
