//! Live events inside this process: one channel from whoever makes them to whoever watches.
//!
//! A watcher who is too slow misses events and is told so; it never slows a run. What matters is
//! stored, so whoever missed something reads it there.

use hango_domain::RunId;
use hango_domain::event::Event;
use hango_ports::EventSink;
use hango_ports::event_sink::LiveEvent;
use tokio::sync::broadcast;

/// How many events a watcher may lag behind.
const CAPACITY: usize = 4096;

/// Hands live events to the watchers of this process.
#[derive(Debug)]
pub struct LiveEvents {
    sender: broadcast::Sender<LiveEvent>,
}

impl Default for LiveEvents {
    fn default() -> Self {
        Self {
            sender: broadcast::Sender::new(CAPACITY),
        }
    }
}

impl EventSink for LiveEvents {
    fn emit(&self, event: LiveEvent) {
        // An error says that nobody watches.
        drop(self.sender.send(event));
    }
}

impl LiveEvents {
    /// Watches one run from now on.
    #[must_use]
    pub fn watch(&self, run: RunId) -> Watch {
        Watch {
            run,
            receiver: self.sender.subscribe(),
        }
    }
}

/// Tells `sink` of stored events, of one run or of several.
pub(crate) fn tell(sink: &dyn EventSink, events: &[Event]) {
    for of_one_run in events.chunk_by(|one, next| one.run_id == next.run_id) {
        sink.emit(LiveEvent::Durable(of_one_run.to_vec()));
    }
}

/// One run's live events.
#[derive(Debug)]
pub struct Watch {
    run: RunId,
    receiver: broadcast::Receiver<LiveEvent>,
}

/// What a watcher is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Watched {
    /// Something happened.
    Event(LiveEvent),
    /// Something may have been missed: what was stored is in the store.
    Missed,
}

impl Watch {
    /// Waits for the next event of the run. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Watched {
        loop {
            match self.receiver.recv().await {
                Ok(event) if concerns(&event, self.run) => return Watched::Event(event),
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(_)) => return Watched::Missed,
                // Nobody is left who could tell anything.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

fn concerns(event: &LiveEvent, run: RunId) -> bool {
    match event {
        LiveEvent::Delta(delta) => delta.run == run,
        LiveEvent::Durable(events) => events.first().is_some_and(|event| event.run_id == run),
    }
}
