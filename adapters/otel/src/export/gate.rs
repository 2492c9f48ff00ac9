//! Both ends of the queue: what comes in is let in while there is room, what goes out makes room, whether it
//! arrives or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use opentelemetry::trace::SpanContext;
use opentelemetry::{Array, Context, KeyValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanExporter, SpanProcessor};

use super::dropped::{DropReason, Dropped};

/// How much memory all that waits may take, about.
const MOST_BYTES: usize = 64 << 20;

/// What a span takes beside its texts.
const SPAN_BYTES: usize = 1024;

/// What is under way.
#[derive(Debug, Default)]
pub(super) struct Load {
    spans: AtomicUsize,
    bytes: AtomicUsize,
}

impl Load {
    pub(super) fn spans(&self) -> usize {
        self.spans.load(Ordering::Relaxed)
    }

    /// Takes room for one span, if there is some.
    fn take(&self, most: usize, bytes: usize) -> bool {
        let spans = self.spans.fetch_add(1, Ordering::Relaxed);
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = spans < most && before.saturating_add(bytes) <= MOST_BYTES;
        if !fits {
            self.leave(1, bytes);
        }
        fits
    }

    fn leave(&self, spans: usize, bytes: usize) {
        self.spans.fetch_sub(spans, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The way in.
#[derive(Debug)]
pub(super) struct Gate<P> {
    queue: P,
    most: usize,
    load: Arc<Load>,
    dropped: Arc<Dropped>,
    closed: AtomicBool,
}

impl<P> Gate<P> {
    pub(super) fn new(queue: P, most: usize, load: Arc<Load>, dropped: Arc<Dropped>) -> Self {
        Self {
            queue,
            most,
            load,
            dropped,
            closed: AtomicBool::new(false),
        }
    }
}

impl<P: SpanProcessor> SpanProcessor for Gate<P> {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.queue.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if self.closed.load(Ordering::Relaxed) {
            self.dropped.add(DropReason::Shutdown, 1);
        } else if self.load.take(self.most, weight(&span)) {
            self.queue.on_end(span);
        } else {
            self.dropped.add(DropReason::QueueFull, 1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.queue.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.closed.store(true, Ordering::Relaxed);
        self.queue.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.queue.set_resource(resource);
    }
}

/// The way out.
#[derive(Debug)]
pub(super) struct Noting<E> {
    exporter: E,
    load: Arc<Load>,
    dropped: Arc<Dropped>,
    failing: AtomicBool,
}

impl<E> Noting<E> {
    pub(super) const fn new(exporter: E, load: Arc<Load>, dropped: Arc<Dropped>) -> Self {
        Self {
            exporter,
            load,
            dropped,
            failing: AtomicBool::new(false),
        }
    }
}

impl<E: SpanExporter> SpanExporter for Noting<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let bytes = batch.iter().map(weight).sum();
        let exported = self.exporter.export(batch).await;
        self.load.leave(spans, bytes);
        match &exported {
            Ok(()) if self.failing.swap(false, Ordering::Relaxed) => {
                tracing::info!("the collector takes spans again");
            }
            Ok(()) => {}
            Err(error) => {
                self.dropped.add(DropReason::ExportFailed, spans as u64);
                if !self.failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, spans, "the collector takes no spans; they are dropped");
                }
            }
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// About how much memory a span takes.
fn weight(span: &SpanData) -> usize {
    let events = span.events.iter().map(|event| {
        let attributes = event.attributes.iter().map(weight_of).sum::<usize>();
        event.name.len() + attributes
    });
    let links = span.links.iter().count() * size_of::<SpanContext>();
    let attributes = span.attributes.iter().map(weight_of);
    SPAN_BYTES + span.name.len() + links + attributes.sum::<usize>() + events.sum::<usize>()
}

fn weight_of(attribute: &KeyValue) -> usize {
    let value = match &attribute.value {
        Value::String(text) => text.as_str().len(),
        Value::Array(Array::String(texts)) => {
            texts.iter().map(|text| text.as_str().len() + 24).sum()
        }
        _ => 8,
    };
    size_of::<KeyValue>() + value
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex, PoisonError};
    use std::time::Instant;

    use opentelemetry::trace::{Span as _, Tracer};
    use opentelemetry_sdk::error::OTelSdkError;
    use opentelemetry_sdk::trace::InMemorySpanExporter;

    use super::*;
    use crate::export::Pipeline;

    /// A collector that answers nobody until it is opened, and then everybody alike.
    #[derive(Clone, Debug, Default)]
    struct Hole {
        opened: Arc<(Mutex<Option<bool>>, Condvar)>,
    }

    impl Hole {
        fn open(&self, takes: bool) {
            let (opened, changed) = &*self.opened;
            *opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(takes);
            changed.notify_all();
        }
    }

    impl SpanExporter for Hole {
        async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
            let (opened, changed) = &*self.opened;
            let opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
            let opened = changed
                .wait_while(opened, |opened| opened.is_none())
                .unwrap_or_else(PoisonError::into_inner);
            match *opened {
                Some(true) => Ok(()),
                Some(false) | None => Err(OTelSdkError::InternalFailure("no".to_owned())),
            }
        }
    }

    fn pipeline(exporter: impl SpanExporter + 'static) -> Pipeline {
        Pipeline::to(exporter, Resource::builder_empty().build())
    }

    fn tell(pipeline: &Pipeline, spans: usize, text: &str) {
        for _ in 0..spans {
            let mut span = pipeline.tracer().start("span");
            span.set_attribute(KeyValue::new("text", text.to_owned()));
        }
    }

    #[test]
    fn what_a_black_hole_does_not_take_is_dropped_and_counted_and_nobody_waits() {
        let hole = Hole::default();
        let pipeline = pipeline(hole.clone());
        let begun = Instant::now();

        tell(&pipeline, 5000, "");
        pipeline.shut_down(Duration::from_millis(100));

        let took = begun.elapsed();
        assert!(took < Duration::from_secs(5), "{took:?}");
        let counts = DropReason::ALL.map(|reason| pipeline.dropped().count(reason));
        assert_eq!(counts, [5000 - 2048, 0, 2048]);
        hole.open(true);
    }

    #[test]
    fn what_waits_has_a_limit_in_bytes() {
        let hole = Hole::default();
        let pipeline = pipeline(hole.clone());

        tell(&pipeline, 100, &"t".repeat(1 << 20));

        let dropped = pipeline.dropped().count(DropReason::QueueFull);
        assert!((30..50).contains(&dropped), "{dropped}");
        hole.open(true);
        pipeline.shut_down(Duration::from_secs(10));
    }

    #[test]
    fn what_a_collector_refuses_is_counted_and_makes_room() {
        let hole = Hole::default();
        let pipeline = pipeline(hole.clone());
        hole.open(false);

        tell(&pipeline, 10, "");
        pipeline.shut_down(Duration::from_secs(10));
        tell(&pipeline, 1, "");

        let counts = DropReason::ALL.map(|reason| pipeline.dropped().count(reason));
        assert_eq!(counts, [0, 10, 0]);
        assert_eq!(pipeline.load.spans(), 0);
    }

    #[test]
    fn what_waits_at_the_end_is_sent() {
        let exporter = InMemorySpanExporter::default();
        let pipeline = pipeline(exporter.clone());
        let kept = exporter.clone();

        tell(&pipeline, 700, "");
        pipeline.provider.force_flush().expect("it is sent");

        assert_eq!(kept.get_finished_spans().map(|it| it.len()).ok(), Some(700));
        pipeline.shut_down(Duration::from_secs(10));
    }
}
