//! What every sink of live events must do, as `ports/src/event_sink.rs` says it.

use std::sync::Arc;

use hango_domain::event::{Event, EventKind};
use hango_domain::{RunId, Timestamp};
use hango_ports::EventSink;
use hango_ports::event_sink::{Delta, DeltaKind, LiveEvent};
use uuid::Uuid;

use crate::told;

/// The run of the check. A sink is registered with watchers of it that never look.
pub const WATCHED: RunId = RunId(Uuid::from_u128(9));

fn every_kind() -> Vec<LiveEvent> {
    let delta = |run, kind, text: &str| {
        LiveEvent::Delta(Delta {
            run,
            turn: u32::MAX,
            attempt: 0,
            index: u32::MAX,
            kind,
            text: text.to_owned(),
        })
    };
    let event = |n, kind| Event {
        run_id: WATCHED,
        n,
        turn: 0,
        attempt: 0,
        at: Timestamp::from_micros(i64::MAX),
        kind,
    };
    vec![
        delta(WATCHED, DeltaKind::Text, &"t".repeat(4096)),
        delta(WATCHED, DeltaKind::Thinking, ""),
        delta(RunId(Uuid::nil()), DeltaKind::Text, "\u{0}\u{1f600}"),
        LiveEvent::Durable(vec![event(1, EventKind::RunQueued)]),
        LiveEvent::Durable(vec![
            event(u64::MAX, EventKind::RunSucceeded),
            event(
                2,
                EventKind::RunStarted {
                    owner: None,
                    lease_expires_at: None,
                },
            ),
        ]),
        LiveEvent::Durable(Vec::new()),
    ]
}

/// An end before a beginning, the same twice, nothing at all: a sink passes on and judges nothing.
pub async fn it_bears_any_order<G>(sink: impl AsyncFn() -> (Arc<dyn EventSink>, G)) {
    let (sink, _guard) = sink().await;

    told::bears_any_order(&every_kind(), move |event| sink.emit(event));
}

/// A watcher who never looks holds up nobody.
pub async fn it_never_waits<G>(sink: impl AsyncFn() -> (Arc<dyn EventSink>, G)) {
    let (sink, _guard) = sink().await;

    told::never_waits(&every_kind(), move |event| sink.emit(event));
}

/// Runs are executed on many threads, and no port promises a runtime.
pub async fn it_is_told_from_any_number_of_threads<G>(
    sink: impl AsyncFn() -> (Arc<dyn EventSink>, G),
) {
    let (sink, _guard) = sink().await;

    told::bears_threads(&every_kind(), move |event| sink.emit(event));
}
