//! Hints from those who change runs to those who execute them: inside the process at once, to other
//! processes through the wake-up port. All of them only make faster what the poll finds anyway.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use hango_domain::RunId;
use hango_domain::run::Lease;
use hango_ports::WakeUp;
use hango_ports::wake_up::Hint;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Where hints are given and taken.
///
/// A process that claims runs is told of its own first, and its peers only where it cannot claim itself:
/// otherwise each run would wake all of them, and all but one for nothing.
pub struct Signals {
    peers: Arc<dyn WakeUp>,
    /// How many schedulers claim here: one, or none.
    claimers: AtomicUsize,
    /// A run may be claimed, which only this process was told.
    news: Notify,
    /// A run may be claimed, which no peer has to be told.
    known: Notify,
    /// The end of a run here may have been asked for.
    cancels: Notify,
    /// The runs that this process executes, with what ends each. By attempt too: a process that gave a
    /// run back may claim it again before the former execution is quite over.
    executing: Mutex<BTreeMap<(RunId, u32), CancellationToken>>,
}

/// The word of a scheduler that it claims what is queued here. Dropping it leaves that to the peers.
pub(crate) struct Claiming<'a>(&'a Signals);

impl Drop for Claiming<'_> {
    fn drop(&mut self) {
        // First this: whoever gives a hint from now on tells the peers himself.
        self.0.claimers.fetch_sub(1, Ordering::SeqCst);
        self.0.peers.announce(Hint::Queued);
    }
}

impl Signals {
    /// Hints inside this process and to its peers.
    #[must_use]
    pub fn new(peers: Arc<dyn WakeUp>) -> Self {
        Self {
            peers,
            claimers: AtomicUsize::new(0),
            news: Notify::new(),
            known: Notify::new(),
            cancels: Notify::new(),
            executing: Mutex::default(),
        }
    }

    /// A run may be claimed now.
    pub fn queued(&self) {
        self.tell(&self.news);
    }

    /// A run is not executed here any more, and the session's next one may be claimed: no more than what
    /// there is a slot for here.
    pub(crate) fn executed(&self) {
        self.tell(&self.known);
    }

    /// Tells the scheduler, or the peers where there is none.
    fn tell(&self, scheduler: &Notify) {
        if self.claimers.load(Ordering::SeqCst) == 0 {
            self.peers.announce(Hint::Queued);
        } else {
            scheduler.notify_one();
        }
    }

    /// The end of a run was asked for.
    pub fn cancel_requested(&self, run: RunId) {
        if !self.cancel_here(run) {
            self.peers.announce(Hint::CancelRequested(run));
        }
    }

    /// From now on, and until the answer is dropped, this process claims what it is told of.
    pub(crate) fn claiming(&self) -> Claiming<'_> {
        self.claimers.fetch_add(1, Ordering::SeqCst);
        Claiming(self)
    }

    /// More may be queued than this process can claim: its peers are told.
    pub(crate) fn leave_to_peers(&self) {
        self.peers.announce(Hint::Queued);
    }

    /// Waits until a run may be claimed. A hint given before is kept.
    pub(crate) async fn next_queued(&self) {
        tokio::select! {
            biased;
            () = self.news.notified() => {}
            () = self.known.notified() => {}
        }
    }

    /// Before a claim, which answers every hint up to now: whether there was one that only this process
    /// knows.
    pub(crate) fn take_news(&self) -> bool {
        let [_, news] = [&self.known, &self.news].map(|hint| hint.notified().now_or_never());
        news.is_some()
    }

    /// While this process cannot claim: tells its peers what only it was told, for ever.
    pub(crate) async fn pass_on(&self) -> Infallible {
        loop {
            self.news.notified().await;
            self.leave_to_peers();
        }
    }

    /// Waits until the end of a run here may have been asked for by a hint that did not arrive.
    pub(crate) async fn cancels_missed(&self) {
        self.cancels.notified().await;
    }

    /// Takes the hints of other processes, for ever.
    pub(crate) async fn listen(&self) {
        loop {
            match self.peers.next().await {
                Hint::Queued => self.known.notify_one(),
                Hint::CancelRequested(run) => {
                    self.cancel_here(run);
                }
                Hint::Missed => {
                    self.known.notify_one();
                    self.cancels.notify_one();
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

    /// Whether this process executes `run`, so that what becomes of it is told here.
    pub(crate) fn executes(&self, run: RunId) -> bool {
        let executing = self.executing();
        executing.range((run, 0)..=(run, u32::MAX)).next().is_some()
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
