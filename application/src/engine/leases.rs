//! The claims that this process holds, and until when it may believe so.
//!
//! A lease is counted on the monotonic clock from the moment *before* the claim or renewal was sent,
//! so that this process always thinks it ends no later than the store does; and with a margin it
//! stops before it begins anything it might not finish as the holder.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hango_domain::run::Lease;
use hango_ports::run_store::Held;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The claims of this process.
pub(super) struct Leases {
    margin: Duration,
    held: Mutex<BTreeMap<Held, Hold>>,
    /// How many times claims were asked for, and how many of these times are over.
    claims_begun: AtomicU64,
    claims_over: AtomicU64,
}

/// A time at which claims are asked for. Dropping it says that what it brought is held by now.
pub(super) struct Claiming<'a>(&'a Leases);

#[derive(Clone)]
struct Hold {
    until: Arc<Mutex<Instant>>,
    lost: CancellationToken,
}

/// One claim, while its run is executed here. Dropping it forgets the claim.
pub(super) struct LeaseGuard {
    leases: Arc<super::Shared>,
    held: Held,
    hold: Hold,
}

impl Leases {
    pub(super) fn new(margin: Duration) -> Self {
        Self {
            margin,
            held: Mutex::default(),
            claims_begun: AtomicU64::new(0),
            claims_over: AtomicU64::new(0),
        }
    }

    /// Claims are asked for from now on, one time after the other.
    pub(super) fn claiming(&self) -> Claiming<'_> {
        self.claims_begun.fetch_add(1, Ordering::SeqCst);
        Claiming(self)
    }

    /// The last time at which claims were asked for, counting from 1.
    pub(super) fn last_claiming(&self) -> u64 {
        self.claims_begun.load(Ordering::SeqCst)
    }

    /// Whether what came of that time, and of all before it, is held or will never be.
    pub(super) fn is_over(&self, claiming: u64) -> bool {
        self.claims_over.load(Ordering::SeqCst) >= claiming
    }

    /// The claims held now, in an order that is always the same.
    pub(super) fn all(&self) -> Vec<Held> {
        self.lock().keys().copied().collect()
    }

    /// How many claims are held now.
    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn holds(&self, held: Held) -> bool {
        self.lock().contains_key(&held)
    }

    /// A renewal that was sent at `sent` was made.
    pub(super) fn renewed(&self, held: Held, sent: Instant, ttl: Duration) {
        if let Some(hold) = self.lock().get(&held) {
            *until(&hold.until) = sent + ttl;
        }
    }

    /// The claim is not in force any more.
    pub(super) fn lost(&self, held: Held) {
        if let Some(hold) = self.lock().get(&held) {
            hold.lost.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Held, Hold>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaseGuard {
    /// Holds a claim that was sent at `sent`.
    pub(super) fn hold(
        shared: &Arc<super::Shared>,
        lease: Lease,
        sent: Instant,
        ttl: Duration,
    ) -> Self {
        let held = Held {
            run: lease.run,
            attempt: lease.attempt,
        };
        let hold = Hold {
            until: Arc::new(Mutex::new(sent + ttl)),
            lost: CancellationToken::new(),
        };
        shared.leases.lock().insert(held, hold.clone());
        Self {
            leases: Arc::clone(shared),
            held,
            hold,
        }
    }

    /// When this process stops believing in the claim.
    fn trusted_until(&self) -> Instant {
        let end = *until(&self.hold.until);
        end.checked_sub(self.leases.leases.margin).unwrap_or(end)
    }

    /// Whether something may be begun under the claim.
    pub(super) fn is_trusted(&self) -> bool {
        !self.hold.lost.is_cancelled() && Instant::now() < self.trusted_until()
    }

    /// How long the answer to a write under way is waited for when the claim turns out to be lost: the
    /// write that ended the run, or gave it back, looks like that to a renewal. What goes on meanwhile
    /// ends within the margin all the same.
    pub(super) fn last_answer(&self) -> Duration {
        self.leases.leases.margin / 2
    }

    /// Waits until the claim is not to be trusted any more.
    pub(super) async fn lost(&self) {
        while self.is_trusted() {
            tokio::select! {
                biased;
                () = self.hold.lost.cancelled() => {}
                () = tokio::time::sleep_until(self.trusted_until()) => {}
            }
        }
    }
}

impl Drop for Claiming<'_> {
    fn drop(&mut self) {
        self.0.claims_over.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.leases.leases.lock().remove(&self.held);
    }
}

fn until(end: &Mutex<Instant>) -> MutexGuard<'_, Instant> {
    end.lock().unwrap_or_else(PoisonError::into_inner)
}
