//! A gate that holds whoever comes to it until somebody opens it.

use tokio::sync::watch;

/// A gate; its clones are the same one.
#[derive(Clone, Debug)]
pub(crate) struct Gate(watch::Sender<bool>);

impl Gate {
    /// A closed one.
    pub(crate) fn closed() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Lets everybody through, now and later.
    pub(crate) fn open(&self) {
        self.0.send_replace(true);
    }

    /// Waits until it is open.
    pub(crate) async fn pass(&self) {
        let mut seen = self.0.subscribe();
        // The sender lives in `self`, so this ends only when the gate is open.
        let _ = seen.wait_for(|open| *open).await;
    }
}
