//! Hints from those who change runs to those who execute them: inside the process at once, to other
//! processes through the wake-up port. All of them only make faster what the poll finds anyway.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hango_domain::RunId;
use hango_ports::WakeUp;
use hango_ports::wake_up::Hint;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Where hints are given and taken.
pub struct Signals {
    peers: Arc<dyn WakeUp>,
    queued: Notify,
    /// The runs that this process executes, with what ends each.
    executing: Mutex<HashMap<RunId, CancellationToken>>,
}

impl Signals {
    /// Hints inside this process and to its peers.
    #[must_use]
    pub fn new(peers: Arc<dyn WakeUp>) -> Self {
        Self {
            peers,
            queued: Notify::new(),
            executing: Mutex::default(),
        }
    }

    /// A run may be claimed now.
    pub fn queued(&self) {
        self.queued.notify_one();
        self.peers.announce(Hint::Queued);
    }

    /// The end of a run was asked for.
    pub fn cancel_requested(&self, run: RunId) {
        if !self.cancel_here(run) {
            self.peers.announce(Hint::CancelRequested(run));
        }
    }

    /// Waits until a run may be claimed. A hint given before is kept.
    pub(crate) async fn next_queued(&self) {
        self.queued.notified().await;
    }

    /// Takes the hints of other processes, for ever.
    pub(crate) async fn listen(&self) {
        loop {
            match self.peers.next().await {
                Hint::Queued => self.queued.notify_one(),
                Hint::CancelRequested(run) => {
                    self.cancel_here(run);
                }
            }
        }
    }

    /// Ends the execution of `run` if it is here; whether it is.
    pub(crate) fn cancel_here(&self, run: RunId) -> bool {
        let executing = self
            .executing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        executing
            .get(&run)
            .inspect(|token| token.cancel())
            .is_some()
    }

    /// Notes that this process executes `run`; the token is cancelled when its end is asked for.
    pub(crate) fn begin(&self, run: RunId) -> CancellationToken {
        let token = CancellationToken::new();
        let mut executing = self
            .executing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        executing.insert(run, token.clone());
        token
    }

    /// Notes that this process does not execute `run` any more.
    pub(crate) fn end(&self, run: RunId) {
        let mut executing = self
            .executing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        executing.remove(&run);
    }
}
