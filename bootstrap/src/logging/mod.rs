//! Logging: one line for each event on standard error, each of them findable by its run.
//!
//! `lines` makes the lines, `queue` writes them so that a reader who does not read delays nobody.

mod lines;
mod queue;

use std::backtrace::Backtrace;
use std::io::{self, IsTerminal};
use std::panic;
use std::sync::Arc;
use std::time::Duration;

use hango_ports::Clock;
use tracing::Metadata;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Registry;
use tracing_subscriber::filter::{FilterFn, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt};

use lines::{Lines, Style};
use queue::Queue;

/// Targets that repeat what was sent and received when they are asked for detail, with what they may say
/// at most: their detail may hold keys and conversations.
const CAPPED: [(&str, LevelFilter); 8] = [
    ("h2", LevelFilter::INFO),
    ("hyper", LevelFilter::INFO),
    ("hyper_util", LevelFilter::INFO),
    ("reqwest", LevelFilter::INFO),
    ("rustls", LevelFilter::INFO),
    ("tower", LevelFilter::INFO),
    ("tower_http", LevelFilter::INFO),
    ("sqlx", LevelFilter::WARN),
];

/// How long the end of the process waits for lines to be written.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How lines look.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LogFormat {
    /// An object with flat keys.
    Json,
    /// For eyes.
    Pretty,
}

/// Reads `HANGO_LOG_FORMAT`.
pub(crate) fn format(text: &str) -> Result<LogFormat, String> {
    match text {
        "json" => Ok(LogFormat::Json),
        "pretty" => Ok(LogFormat::Pretty),
        _ => Err("neither json nor pretty".to_owned()),
    }
}

/// Reads `HANGO_LOG`.
pub(crate) fn filter(text: &str) -> Result<Targets, String> {
    let malformed =
        || "neither a level such as info nor a list such as info,hango=debug".to_owned();
    // A word alone would name a target, all of it wanted; it is more likely a misspelt level.
    let is_level = |part: &str| part.trim().parse::<LevelFilter>().is_ok();
    if text
        .split(',')
        .all(|part| part.contains('=') || is_level(part))
    {
        text.parse().map_err(|_| malformed())
    } else {
        Err(malformed())
    }
}

/// Lets the lines that wait be written before the process ends.
#[must_use]
pub(crate) struct Logs(Arc<Queue>);

impl Drop for Logs {
    fn drop(&mut self) {
        self.0.flush(LAST_WORDS);
    }
}

/// Begins to log to standard error, panics included. Called once.
pub(crate) fn start(
    wanted: Targets,
    format: Option<LogFormat>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Logs> {
    let terminal = io::stderr().is_terminal();
    let style = match format {
        Some(LogFormat::Json) => Style::Json,
        None if !terminal => Style::Json,
        Some(LogFormat::Pretty) | None => Style::Pretty { colours: terminal },
    };
    let queue = Queue::start(io::stderr())?;
    let lines = Lines::new(style, clock, Arc::clone(&queue)).with_filter(written(wanted));
    tracing::subscriber::set_global_default(Registry::default().with(lines))?;
    panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("(no message)");
        let location = panic.location().map(ToString::to_string);
        let backtrace = Backtrace::force_capture();
        tracing::error!(location, %backtrace, "panicked: {message}");
    }));
    Ok(Logs(queue))
}

/// What is written: the events that are wanted, and the spans of hango at any level, because a warning
/// names its run even where nothing below a warning is wanted.
fn written(wanted: Targets) -> FilterFn<impl Fn(&Metadata<'_>) -> bool> {
    let levels = wanted.iter().map(|(_, level)| level);
    let most = levels
        .chain(wanted.default_level())
        .max()
        .unwrap_or(LevelFilter::OFF);
    let caps = Targets::new()
        .with_default(LevelFilter::TRACE)
        .with_targets(CAPPED);
    FilterFn::new(move |event: &Metadata<'_>| {
        if event.is_span() {
            return event.target().starts_with("hango");
        }
        let passes = |targets: &Targets| targets.would_enable(event.target(), event.level());
        passes(&wanted) && passes(&caps)
    })
    .with_max_level_hint(most.max(LevelFilter::INFO))
}

#[cfg(test)]
mod tests;
