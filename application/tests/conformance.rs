//! What the application puts behind ports of its own does what every adapter of them must.

use std::sync::Arc;

use hango_application::live::LiveEvents;
use hango_application::telemetry::LogLines;
use hango_conformance::event_sink::WATCHED;
use hango_ports::{EventSink, Telemetry};

/// Into a log that writes every line: one that nobody reads is not even put together.
async fn log_lines() -> (Arc<dyn Telemetry>, ()) {
    let log = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
    // Only the first test of a process installs it.
    let _ = log.with_writer(std::io::sink).try_init();
    (Arc::new(LogLines), ())
}

/// With a watcher who never looks.
async fn live_events() -> (Arc<dyn EventSink>, impl Sized) {
    let live = Arc::new(LiveEvents::default());
    let watch = live.watch(WATCHED);
    (live, watch)
}

hango_conformance::telemetry_tests!(log_lines);
hango_conformance::event_sink_tests!(live_events);
