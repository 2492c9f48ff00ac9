//! Hints from those who change runs to those who execute them: inside the process at once, to other
//! processes through the wake-up port. All of them only make faster what the poll finds anyway.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hango_domain::RunId;
use hango_domain::run::Lease;
use hango_ports::WakeUp;
use hango_ports::wake_up::Hint;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Where hints are given and taken.
pub struct Signals {
    peers: Arc<dyn WakeUp>,
    queued: Notify,
    /// The runs that this process executes, with what ends each. By attempt too: a process that gave a
    /// run back may claim it again before the former execution is quite over.
    executing: Mutex<BTreeMap<(RunId, u32), CancellationToken>>,
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
        let executing = self.executing();
        let here = executing.range((run, 0)..=(run, u32::MAX));
        here.inspect(|(_, token)| token.cancel()).count() > 0
    }

    /// Notes that this process executes a run; the token is cancelled when its end is asked for.
    pub(crate) fn begin(&self, lease: Lease) -> CancellationToken {
        let token = CancellationToken::new();
        let key = (lease.run, lease.attempt);
        self.executing().insert(key, token.clone());
        token
    }

    /// Notes that this process does not execute a run under that claim any more.
    pub(crate) fn end(&self, lease: Lease) {
        self.executing().remove(&(lease.run, lease.attempt));
    }

    fn executing(&self) -> MutexGuard<'_, BTreeMap<(RunId, u32), CancellationToken>> {
        let executing = self.executing.lock();
        executing.unwrap_or_else(PoisonError::into_inner)
    }
}
