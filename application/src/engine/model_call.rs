//! The innermost model call: stream from the provider, show deltas sideways, hand the onion one whole
//! answer.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use hango_domain::accumulator::Accumulator;
use hango_domain::conversation::{Block, Usage};
use hango_domain::middleware::ModelHandler;
use hango_domain::model::{CallContext, ModelCall, ModelFailure, ModelReply, StreamEvent};
use hango_ports::event_sink::{Delta, DeltaKind, LiveEvent};
use hango_ports::{EventSink, Provider};
use tokio::sync::watch;
use tokio::time::Instant;

use super::account::{Account, Asking};

/// Deltas of a block are shown at most once in this time.
const COALESCE: Duration = Duration::from_millis(50);

/// Streams from one provider.
pub(super) struct StreamedModel {
    provider: Arc<dyn Provider>,
    sink: Arc<dyn EventSink>,
    account: Option<Arc<Account>>,
    /// What has arrived of the call in flight. It outlives the call's future, so that what arrived is
    /// kept when the call is broken off.
    arriving: Mutex<Option<Arriving>>,
    /// Whether something of that call has arrived.
    begun: watch::Sender<bool>,
}

struct Arriving {
    answer: Accumulator,
    usage: Usage,
}

/// What a broken-off call leaves.
pub(super) struct Partial {
    pub(super) content: Vec<Block>,
    pub(super) usage: Usage,
}

impl StreamedModel {
    pub(super) fn new(provider: Arc<dyn Provider>, sink: Arc<dyn EventSink>) -> Self {
        Self {
            provider,
            sink,
            account: None,
            arriving: Mutex::default(),
            begun: watch::Sender::new(false),
        }
    }

    /// The same, told of in an account.
    pub(super) fn told(self, account: Option<Arc<Account>>) -> Self {
        Self { account, ..self }
    }

    /// What had arrived of a call whose future was dropped; empty if there is none.
    pub(super) fn take_partial(&self) -> Partial {
        let arriving = self.arriving().take();
        Partial {
            usage: arriving.as_ref().map(|it| it.usage).unwrap_or_default(),
            content: arriving.map(|it| it.answer.partial()).unwrap_or_default(),
        }
    }

    /// Performs `call`, which asks this model, and calls `begins` when its answer begins to arrive.
    pub(super) async fn noting_its_beginning<T>(
        &self,
        call: impl Future<Output = T>,
        begins: impl FnOnce(),
    ) -> T {
        let mut call = pin!(call);
        self.begun.send_replace(false);
        let mut begun = self.begun.subscribe();
        tokio::select! {
            biased;
            done = &mut call => return done,
            // The sender is this model's own, so it is there.
            _ = begun.wait_for(|begun| *begun) => begins(),
        }
        call.await
    }

    fn arriving(&self) -> MutexGuard<'_, Option<Arriving>> {
        self.arriving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to the answer that is arriving.
    fn push(&self, event: StreamEvent) -> Result<(), ModelFailure> {
        let mut arriving = self.arriving();
        let Some(arriving) = arriving.as_mut() else {
            return Ok(());
        };
        if let StreamEvent::Usage(usage) = &event {
            arriving.usage = *usage;
        }
        arriving.answer.push(event)
    }
}

#[async_trait]
impl ModelHandler for StreamedModel {
    async fn call(&self, call: ModelCall) -> Result<ModelReply, ModelFailure> {
        let context = Arc::clone(&call.context);
        let sent = call.text_bytes();
        *self.arriving() = Some(Arriving {
            answer: Accumulator::new(call_prefix(&context)),
            usage: Usage::default(),
        });
        let mut shown = Shown::new(&*self.sink, &context);
        let account = self.account.as_ref();
        let mut asking = account.map(|account| account.asking(&call, &*self.provider));
        let received = self.receive(call, &mut shown, &mut asking).await;
        shown.flush();
        let arriving = self.arriving().take();
        let outcome = match (received, arriving) {
            (Ok(()), Some(arriving)) => {
                arriving.answer.finish().map(|reply| reply.with_usage(sent))
            }
            (Err(failure), Some(arriving)) => Err(ModelFailure {
                partial: arriving.answer.partial(),
                usage: arriving.usage,
                ..failure
            }),
            (Err(failure), None) => Err(failure),
            (Ok(()), None) => Accumulator::new("call").finish(),
        };
        if let Some(asking) = asking {
            asking.over(&outcome);
        }
        outcome.map_err(|failure| ModelFailure {
            shown: shown.any,
            ..failure
        })
    }
}

impl StreamedModel {
    async fn receive(
        &self,
        call: ModelCall,
        shown: &mut Shown<'_>,
        asking: &mut Option<Asking>,
    ) -> Result<(), ModelFailure> {
        let mut stream = self.provider.stream(call).await?;
        loop {
            let next = tokio::select! {
                biased;
                next = stream.next() => next,
                () = until(shown.due()) => {
                    shown.flush();
                    continue;
                }
            };
            let Some(event) = next.transpose()? else {
                return Ok(());
            };
            // A name is no beginning of an answer yet.
            if !matches!(event, StreamEvent::Named(_)) {
                self.begun
                    .send_if_modified(|begun| !std::mem::replace(begun, true));
            }
            if let Some(asking) = asking {
                asking.see(&event);
            }
            shown.see(&event);
            self.push(event)?;
        }
    }
}

/// What ids begin with that are made for calls without one: short, and another in every turn of a
/// session.
fn call_prefix(context: &CallContext) -> String {
    let id = context.run.0.simple().to_string();
    // The last digits are random.
    let run = &id[24..];
    format!("call_{run}_{}", context.turn)
}

/// Waits for that moment; for ever if there is none.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Shows deltas, coalesced: a block's text is held until its time is over or another block begins.
struct Shown<'a> {
    sink: &'a dyn EventSink,
    context: &'a CallContext,
    held: Option<Delta>,
    last: Option<Instant>,
    any: bool,
}

impl<'a> Shown<'a> {
    fn new(sink: &'a dyn EventSink, context: &'a CallContext) -> Self {
        Self {
            sink,
            context,
            held: None,
            last: None,
            any: false,
        }
    }

    fn see(&mut self, event: &StreamEvent) {
        let (index, kind, text) = match event {
            StreamEvent::Text { index, text } => (*index, DeltaKind::Text, text),
            StreamEvent::Thinking { index, text } => (*index, DeltaKind::Thinking, text),
            StreamEvent::Signature { .. }
            | StreamEvent::RedactedThinking { .. }
            | StreamEvent::ToolUse { .. }
            | StreamEvent::ToolInput { .. }
            | StreamEvent::Provider { .. }
            | StreamEvent::Attach { .. }
            | StreamEvent::Named(_)
            | StreamEvent::Usage(_)
            | StreamEvent::Stop(_) => return,
        };
        match &mut self.held {
            Some(held) if held.index == index && held.kind == kind => held.text.push_str(text),
            Some(_) | None => {
                self.flush();
                self.held = Some(Delta {
                    run: self.context.run,
                    turn: self.context.turn,
                    attempt: self.context.attempt,
                    index,
                    kind,
                    text: text.clone(),
                });
            }
        }
        if self.last.is_none_or(|last| last.elapsed() >= COALESCE) {
            self.flush();
        }
    }

    /// When what is held is shown although nothing follows it; `None` if nothing is held.
    fn due(&self) -> Option<Instant> {
        self.held.as_ref()?;
        self.last.map(|last| last + COALESCE)
    }

    fn flush(&mut self) {
        if let Some(delta) = self.held.take().filter(|delta| !delta.text.is_empty()) {
            self.sink.emit(LiveEvent::Delta(delta));
            self.last = Some(Instant::now());
            self.any = true;
        }
    }
}
