//! A store that goes wrong when it is told to, and notes every fenced write that reached it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hango_domain::access::Visibility;
use hango_domain::event::Event;
use hango_domain::journal::ToolCall;
use hango_domain::run::{
    Answer, Boundary, Change, ChangeKind, End, GiveBack, Lease, Record, Repair, Resume, Retry, Run,
};
use hango_domain::{OwnerId, RunId};
use hango_ports::audit_store::NewAudit;
use hango_ports::idempotency::IdempotencyKey;
use hango_ports::page::{Page, PageRequest};
use hango_ports::run_store::{
    Accepted, Cancelled, Census, ClaimRequest, Claims, Held, NewRun, PruneRequest, Pruned,
    ReclaimRequest, Reclaimed, Renewal, RunFilter, RunStore, RunStoreError, Situation, Story,
    Written,
};
use hango_ports::store::StoreFailure;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// What goes wrong with one request.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// It is done, and then nobody hears of it.
    AnswerLost,
    /// It is not done.
    NotDone,
    /// It is done, and answered when a permit is added.
    AnswerHeld(Arc<Semaphore>),
    /// It panics before anything is done.
    Panics,
    /// What is stored cannot be read.
    Corrupt,
}

/// See the module.
pub(crate) struct Faulty {
    inner: Arc<dyn RunStore>,
    faults: Mutex<Vec<(ChangeKind, Fault)>>,
    down: AtomicBool,
    writes: Mutex<Vec<Change>>,
    asked: Mutex<Vec<ChangeKind>>,
    prunes: Mutex<Vec<Prune>>,
}

/// One request to remove what is old.
#[derive(Clone, Debug)]
pub(crate) struct Prune {
    /// When it was answered.
    pub(crate) at: Instant,
    /// What was asked for.
    pub(crate) request: PruneRequest,
    /// What was removed; `None` if the store did not answer.
    pub(crate) pruned: Option<Pruned>,
}

/// The claim in force.
pub(crate) fn lease_of(run: &Run) -> Lease {
    run.lease().expect("the run is running")
}

impl Faulty {
    /// A store that does well so far.
    pub(crate) fn new(inner: Arc<dyn RunStore>) -> Self {
        Self {
            inner,
            faults: Mutex::default(),
            down: AtomicBool::new(false),
            writes: Mutex::default(),
            asked: Mutex::default(),
            prunes: Mutex::default(),
        }
    }

    /// The next request of that kind that has no fault yet goes wrong.
    pub(crate) fn spoil(&self, kind: ChangeKind, fault: Fault) {
        lock(&self.faults).push((kind, fault));
    }

    /// Whether anything works.
    pub(crate) fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    /// The fenced writes that were asked for, whatever came of them.
    pub(crate) fn writes(&self) -> Vec<Change> {
        lock(&self.writes).clone()
    }

    /// How many requests of that kind there were, whatever came of them.
    pub(crate) fn asked(&self, kind: ChangeKind) -> usize {
        lock(&self.asked).iter().filter(|it| **it == kind).count()
    }

    /// The requests to remove what is old, whatever came of them.
    pub(crate) fn prunes(&self) -> Vec<Prune> {
        lock(&self.prunes).clone()
    }

    async fn ask<T>(
        &self,
        kind: ChangeKind,
        work: impl Future<Output = Result<T, RunStoreError>> + Send,
    ) -> Result<T, RunStoreError> {
        lock(&self.asked).push(kind);
        if self.down.load(Ordering::SeqCst) {
            return Err(unavailable());
        }
        match self.next_fault(kind) {
            None => work.await,
            Some(Fault::NotDone) => Err(unavailable()),
            Some(Fault::AnswerLost) => {
                drop(work.await);
                Err(unavailable())
            }
            Some(Fault::AnswerHeld(until)) => {
                let answer = work.await;
                until.acquire().await.expect("never closed").forget();
                answer
            }
            Some(Fault::Panics) => panic!("the store panics"),
            Some(Fault::Corrupt) => Err(RunStoreError::Failure(StoreFailure::Corrupt {
                table: "runs",
                column: "state_json",
                row: "of the test".to_owned(),
                source: "damaged".into(),
            })),
        }
    }

    async fn write(
        &self,
        change: Change,
        work: impl Future<Output = Result<Written, RunStoreError>> + Send,
    ) -> Result<Written, RunStoreError> {
        let kind = change.kind();
        lock(&self.writes).push(change);
        self.ask(kind, work).await
    }

    fn next_fault(&self, kind: ChangeKind) -> Option<Fault> {
        let mut faults = lock(&self.faults);
        let at = faults.iter().position(|(of, _)| *of == kind)?;
        Some(faults.remove(at).1)
    }
}

#[async_trait]
impl RunStore for Faulty {
    async fn accept(
        &self,
        new: NewRun,
        audit: NewAudit,
        once: Option<IdempotencyKey>,
    ) -> Result<Accepted, RunStoreError> {
        self.inner.accept(new, audit, once).await
    }

    async fn find(&self, seen: Visibility, run: RunId) -> Result<Option<Run>, RunStoreError> {
        self.inner.find(seen, run).await
    }

    async fn list(
        &self,
        seen: Visibility,
        filter: RunFilter,
        page: PageRequest,
    ) -> Result<Page<Run>, RunStoreError> {
        self.inner.list(seen, filter, page).await
    }

    async fn tool_calls(
        &self,
        seen: Visibility,
        run: RunId,
    ) -> Result<Option<Vec<ToolCall>>, RunStoreError> {
        self.inner.tool_calls(seen, run).await
    }

    async fn events(
        &self,
        seen: Visibility,
        run: RunId,
        after: u64,
        limit: u32,
    ) -> Result<Option<Vec<Event>>, RunStoreError> {
        self.inner.events(seen, run, after, limit).await
    }

    async fn story(&self, run: RunId) -> Result<Option<Story>, RunStoreError> {
        self.inner.story(run).await
    }

    async fn situation(
        &self,
        seen: Visibility,
        run: RunId,
    ) -> Result<Option<Situation>, RunStoreError> {
        self.inner.situation(seen, run).await
    }

    async fn census(&self, most_tenants: u32) -> Result<Census, RunStoreError> {
        if self.down.load(Ordering::SeqCst) {
            return Err(unavailable());
        }
        self.inner.census(most_tenants).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims, RunStoreError> {
        self.ask(ChangeKind::Claim, self.inner.claim(request)).await
    }

    async fn renew(
        &self,
        owner: OwnerId,
        held: Vec<Held>,
        ttl: Duration,
    ) -> Result<Renewal, RunStoreError> {
        let renewed = self.inner.renew(owner, held, ttl);
        self.ask(ChangeKind::Renew, renewed).await
    }

    async fn cancels(&self, owner: OwnerId) -> Result<Vec<Lease>, RunStoreError> {
        let cancels = self.inner.cancels(owner);
        self.ask(ChangeKind::RequestCancel, cancels).await
    }

    async fn repair(&self, it: Repair) -> Result<Written, RunStoreError> {
        let change = Change::Repair(it.clone());
        self.write(change, self.inner.repair(it)).await
    }

    async fn answer(&self, it: Answer) -> Result<Written, RunStoreError> {
        let change = Change::Answer(it.clone());
        self.write(change, self.inner.answer(it)).await
    }

    async fn resume(&self, it: Resume) -> Result<Written, RunStoreError> {
        let change = Change::Resume(it.clone());
        self.write(change, self.inner.resume(it)).await
    }

    async fn record(&self, it: Record) -> Result<Written, RunStoreError> {
        let change = Change::Record(it.clone());
        self.write(change, self.inner.record(it)).await
    }

    async fn complete_turn(&self, it: Boundary) -> Result<Written, RunStoreError> {
        let change = Change::CompleteTurn(it.clone());
        self.write(change, self.inner.complete_turn(it)).await
    }

    async fn retry(&self, it: Retry) -> Result<Written, RunStoreError> {
        let change = Change::Retry(it.clone());
        self.write(change, self.inner.retry(it)).await
    }

    async fn give_back(&self, it: GiveBack) -> Result<Written, RunStoreError> {
        let change = Change::GiveBack(it.clone());
        self.write(change, self.inner.give_back(it)).await
    }

    async fn finish(&self, it: End) -> Result<Written, RunStoreError> {
        let change = Change::Finish(it.clone());
        self.write(change, self.inner.finish(it)).await
    }

    async fn request_cancel(
        &self,
        seen: Visibility,
        run: RunId,
        audit: NewAudit,
    ) -> Result<Cancelled, RunStoreError> {
        self.inner.request_cancel(seen, run, audit).await
    }

    async fn reclaim(&self, request: ReclaimRequest) -> Result<Vec<Reclaimed>, RunStoreError> {
        let reclaimed = self.inner.reclaim(request);
        self.ask(ChangeKind::Reclaim, reclaimed).await
    }

    async fn prune(&self, request: PruneRequest) -> Result<Pruned, RunStoreError> {
        let pruned = if self.down.load(Ordering::SeqCst) {
            Err(unavailable())
        } else {
            self.inner.prune(request).await
        };
        lock(&self.prunes).push(Prune {
            at: Instant::now(),
            request,
            pruned: pruned.as_ref().ok().copied(),
        });
        pruned
    }
}

fn unavailable() -> RunStoreError {
    RunStoreError::Failure(StoreFailure::Unavailable("the test says so".into()))
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
