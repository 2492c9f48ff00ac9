//! The store as one process reaches it: over a network that delays requests, loses them, loses their
//! answers, or is silent until the process gives up.
//!
//! A request that was sent is on its way whatever becomes of who sent it: it is carried by the world, and
//! may be done after its process was killed, or after the process gave it up.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use hango_domain::access::Visibility;
use hango_domain::event::Event;
use hango_domain::journal::ToolCall;
use hango_domain::run::{
    Answer, Boundary, ChangeKind, End, GiveBack, Lease, Record, Repair, Resume, Retry, Run,
};
use hango_domain::{OwnerId, RunId, TenantId};
use hango_ports::audit_store::NewAudit;
use hango_ports::idempotency::IdempotencyKey;
use hango_ports::page::{Page, PageRequest};
use hango_ports::run_store::{
    Accepted, Cancelled, Census, ClaimRequest, Claims, Held, NewRun, PruneRequest, Pruned,
    ReclaimRequest, Reclaimed, Renewal, RunFilter, RunStore, RunStoreError, Situation, Story,
    Written,
};
use hango_ports::store::StoreFailure;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::executor::Group;
use crate::log::{Asked, Effect, Process, What, Wrote};
use crate::plan::LATE_WRITES;
use crate::world::World;

/// After what time a process gives a request up.
const PATIENCE: Duration = Duration::from_millis(1500);

/// See the module.
pub(crate) struct Remote {
    pub(crate) world: Arc<World>,
    pub(crate) process: Process,
}

/// What becomes of a request.
struct Fate {
    /// The way there.
    before: Duration,
    arrives: bool,
    /// The way back.
    after: Duration,
    answer_arrives: bool,
}

type Answered<T> = Result<T, RunStoreError>;

/// What a request does to the store, and what is seen of it from outside.
type Work<T> = BoxFuture<'static, (Answered<T>, Effect)>;

impl Remote {
    fn fate(&self, asked: Asked) -> Fate {
        let dice = &self.world.dice;
        let mut fate = Fate {
            before: dice.moment(),
            arrives: true,
            after: dice.moment(),
            answer_arrives: true,
        };
        let may_be_late = LATE_WRITES || !matches!(asked, Asked::Write(..));
        if self.world.is_calm() || !dice.percent(self.world.plan.store) {
            return fate;
        }
        match dice.between(0, 5) {
            // Both ends are told that the connection broke.
            0 => fate.arrives = false,
            1 => fate.answer_arrives = false,
            // Nobody is told.
            2 => (fate.arrives, fate.after) = (false, 2 * PATIENCE),
            3 => fate.after = 2 * PATIENCE,
            4 if self.world.plan.late && may_be_late => {
                fate.before = PATIENCE + dice.millis(0, 2500);
            }
            // Slow, no more.
            _ => (fate.before, fate.after) = (dice.millis(0, 700), dice.millis(0, 700)),
        }
        fate
    }

    async fn ask<T: Send + 'static>(&self, asked: Asked, work: Work<T>) -> Answered<T> {
        let (world, process) = (&self.world, self.process);
        let call = world.next_call();
        world.note(What::Asks {
            call,
            process,
            asked,
        });
        let fate = self.fate(asked);
        let (sender, answer) = oneshot::channel();
        let there = Arc::clone(world);
        world.executor.spawn(Group::WORLD, async move {
            sleep(fate.before).await;
            let reached = there.reaches_store(process) || there.dice.percent(10);
            let mut answered = Err(unavailable());
            if fate.arrives && reached {
                let (done, effect) = work.await;
                there.note(What::Done { call, effect });
                if fate.answer_arrives && there.reaches_store(process) {
                    answered = done;
                }
            }
            sleep(fate.after).await;
            // Whoever gave up hears nothing.
            drop(sender.send(answered));
        });
        let answered = match timeout(PATIENCE, answer).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(_)) | Err(_) => Err(unavailable()),
        };
        let known = !matches!(answered, Err(RunStoreError::Failure(_)));
        world.note(What::Told { call, known });
        answered
    }

    /// A fenced write.
    async fn write(
        &self,
        wrote: Wrote,
        write: BoxFuture<'static, Answered<Written>>,
    ) -> Answered<Written> {
        let world = Arc::clone(&self.world);
        let (kind, lease) = (wrote.kind, wrote.lease);
        let work = async move {
            let tenant = world.tenant_of(lease.run).await;
            let before = world.run(tenant, lease.run).await;
            let written = write.await;
            let after = world.run(tenant, lease.run).await;
            let effect = match &written {
                Ok(_) if before == after => Effect::Repeated,
                Ok(written) => {
                    if written.status.is_terminal() {
                        world.keep(tenant, lease.run).await;
                    }
                    let status = written.status;
                    Effect::Wrote { wrote, status }
                }
                Err(refused) => Effect::Refused(format!("{refused:?}")),
            };
            (written, effect)
        };
        self.ask(Asked::Write(kind, lease), work.boxed()).await
    }

    fn inner(&self) -> Arc<dyn RunStore> {
        Arc::clone(&self.world.stores.runs)
    }
}

impl World {
    /// The tenant of a run that there is.
    async fn tenant_of(&self, run: RunId) -> TenantId {
        let all = PageRequest {
            limit: u32::MAX,
            after: None,
        };
        let tenants = self.stores.identities.tenants(all).await;
        let tenants = tenants.expect("reads work").items;
        for tenant in &tenants {
            if self.run(tenant.id, run).await.is_some() {
                return tenant.id;
            }
        }
        tenants[0].id
    }

    /// Keeps a run that has just ended as it is.
    async fn keep(&self, tenant: TenantId, run: RunId) {
        if let Some(record) = self.on_record(tenant, run).await {
            self.keep_ended(record);
        }
    }
}

fn unavailable() -> RunStoreError {
    RunStoreError::Failure(StoreFailure::Unavailable(
        "the network is what it is".into(),
    ))
}

/// A write of which nothing is known yet but whose it is.
const fn wrote(kind: ChangeKind, lease: Lease) -> Wrote {
    Wrote {
        lease,
        kind,
        turn: None,
        starts: Vec::new(),
        settles: Vec::new(),
        back: None,
    }
}

#[async_trait]
impl RunStore for Remote {
    async fn accept(
        &self,
        new: NewRun,
        audit: NewAudit,
        once: Option<IdempotencyKey>,
    ) -> Answered<Accepted> {
        let (inner, world) = (self.inner(), Arc::clone(&self.world));
        let tenant = new.created_by.tenant;
        let work = async move {
            let accepted = inner.accept(new, audit, once).await;
            let effect = match &accepted {
                Ok(accepted) => {
                    let ended = |event: &&Event| event.kind.is_terminal();
                    let ended = accepted.events.iter().filter(ended);
                    let cancelled: Vec<RunId> = ended.map(|event| event.run_id).collect();
                    for run in &cancelled {
                        world.keep(tenant, *run).await;
                    }
                    Effect::Accepted {
                        run: accepted.run.id,
                        tenant,
                        session: accepted.run.session_id,
                        session_no: accepted.run.session_no,
                        cancelled,
                        interrupted: accepted.interrupted.clone(),
                    }
                }
                Err(_) => Effect::Nothing,
            };
            (accepted, effect)
        };
        self.ask(Asked::Accept, work.boxed()).await
    }

    async fn find(&self, seen: Visibility, run: RunId) -> Answered<Option<Run>> {
        self.inner().find(seen, run).await
    }

    async fn list(
        &self,
        seen: Visibility,
        filter: RunFilter,
        page: PageRequest,
    ) -> Answered<Page<Run>> {
        self.inner().list(seen, filter, page).await
    }

    async fn tool_calls(&self, seen: Visibility, run: RunId) -> Answered<Option<Vec<ToolCall>>> {
        self.inner().tool_calls(seen, run).await
    }

    async fn events(
        &self,
        seen: Visibility,
        run: RunId,
        after: u64,
        limit: u32,
    ) -> Answered<Option<Vec<Event>>> {
        self.inner().events(seen, run, after, limit).await
    }

    async fn story(&self, run: RunId) -> Answered<Option<Story>> {
        self.inner().story(run).await
    }

    async fn situation(&self, seen: Visibility, run: RunId) -> Answered<Option<Situation>> {
        self.inner().situation(seen, run).await
    }

    async fn census(&self, most_tenants: u32) -> Answered<Census> {
        self.inner().census(most_tenants).await
    }

    async fn claim(&self, request: ClaimRequest) -> Answered<Claims> {
        let inner = self.inner();
        let work = async move {
            let claimed = inner.claim(request).await;
            let leases = claimed.iter().flat_map(|it| &it.won).map(|it| it.lease);
            let effect = Effect::Claimed(leases.collect());
            (claimed, effect)
        };
        self.ask(Asked::Claim, work.boxed()).await
    }

    async fn renew(&self, owner: OwnerId, held: Vec<Held>, ttl: Duration) -> Answered<Renewal> {
        let inner = self.inner();
        let work = async move {
            let renewal = inner.renew(owner, held, ttl).await;
            let effect = match &renewal {
                Ok(renewal) => Effect::Renewed {
                    renewed: renewal
                        .renewed
                        .iter()
                        .map(|(held, _)| Lease {
                            run: held.run,
                            owner,
                            attempt: held.attempt,
                        })
                        .collect(),
                    lost: renewal.lost.clone(),
                    orphans: renewal.orphans.clone(),
                },
                Err(_) => Effect::Nothing,
            };
            (renewal, effect)
        };
        self.ask(Asked::Renew, work.boxed()).await
    }

    async fn cancels(&self, owner: OwnerId) -> Answered<Vec<Lease>> {
        let inner = self.inner();
        let work = async move { (inner.cancels(owner).await, Effect::Nothing) };
        self.ask(Asked::Cancels, work.boxed()).await
    }

    async fn repair(&self, change: Repair) -> Answered<Written> {
        let inner = self.inner();
        let wrote = wrote(ChangeKind::Repair, change.lease);
        let write = async move { inner.repair(change).await };
        self.write(wrote, write.boxed()).await
    }

    async fn answer(&self, change: Answer) -> Answered<Written> {
        let inner = self.inner();
        let starts = change.calls.iter().filter(|call| call.starts);
        let wrote = Wrote {
            turn: Some(change.turn),
            starts: starts.map(|call| call.position).collect(),
            ..wrote(ChangeKind::Answer, change.lease)
        };
        let write = async move { inner.answer(change).await };
        self.write(wrote, write.boxed()).await
    }

    async fn resume(&self, change: Resume) -> Answered<Written> {
        let inner = self.inner();
        let wrote = Wrote {
            turn: Some(change.turn),
            starts: change.starts.iter().map(|call| call.position).collect(),
            settles: change.in_doubt.iter().map(|call| call.position).collect(),
            ..wrote(ChangeKind::Resume, change.lease)
        };
        let write = async move { inner.resume(change).await };
        self.write(wrote, write.boxed()).await
    }

    async fn record(&self, change: Record) -> Answered<Written> {
        let inner = self.inner();
        let wrote = Wrote {
            turn: Some(change.turn),
            starts: change.starts.iter().map(|call| call.position).collect(),
            settles: vec![change.result.position],
            ..wrote(ChangeKind::Record, change.lease)
        };
        let write = async move { inner.record(change).await };
        self.write(wrote, write.boxed()).await
    }

    async fn complete_turn(&self, change: Boundary) -> Answered<Written> {
        use hango_domain::run::AfterTurn::{GiveBack, GoOn};
        let inner = self.inner();
        let wrote = Wrote {
            turn: Some(change.turn),
            settles: change.results.iter().map(|call| call.position).collect(),
            back: match change.then {
                GoOn => None,
                GiveBack(reason) => Some((reason, Duration::ZERO)),
            },
            ..wrote(ChangeKind::CompleteTurn, change.lease)
        };
        let write = async move { inner.complete_turn(change).await };
        self.write(wrote, write.boxed()).await
    }

    async fn retry(&self, change: Retry) -> Answered<Written> {
        let inner = self.inner();
        let wrote = Wrote {
            turn: Some(change.turn),
            ..wrote(ChangeKind::Retry, change.lease)
        };
        let write = async move { inner.retry(change).await };
        self.write(wrote, write.boxed()).await
    }

    async fn give_back(&self, change: GiveBack) -> Answered<Written> {
        let inner = self.inner();
        let wrote = Wrote {
            back: Some((change.reason, change.delay)),
            ..wrote(ChangeKind::GiveBack, change.lease)
        };
        let write = async move { inner.give_back(change).await };
        self.write(wrote, write.boxed()).await
    }

    async fn finish(&self, change: End) -> Answered<Written> {
        let inner = self.inner();
        let wrote = Wrote {
            turn: change.turn,
            settles: change.results.iter().map(|call| call.position).collect(),
            ..wrote(ChangeKind::Finish, change.lease)
        };
        let write = async move { inner.finish(change).await };
        self.write(wrote, write.boxed()).await
    }

    async fn request_cancel(
        &self,
        seen: Visibility,
        run: RunId,
        audit: NewAudit,
    ) -> Answered<Cancelled> {
        let (inner, world) = (self.inner(), Arc::clone(&self.world));
        let work = async move {
            let cancelled = inner.request_cancel(seen, run, audit).await;
            let effect = match &cancelled {
                Ok(cancelled) => {
                    let status = cancelled.run.state.status();
                    if status.is_terminal() {
                        world.keep(seen.tenant, run).await;
                    }
                    Effect::Cancel { run, status }
                }
                Err(_) => Effect::Nothing,
            };
            (cancelled, effect)
        };
        self.ask(Asked::Cancel, work.boxed()).await
    }

    async fn reclaim(&self, request: ReclaimRequest) -> Answered<Vec<Reclaimed>> {
        let (inner, world) = (self.inner(), Arc::clone(&self.world));
        let work = async move {
            let taken = inner.reclaim(request).await;
            let mut leases = Vec::new();
            for taken in taken.iter().flatten() {
                if taken.status.is_terminal() {
                    let tenant = world.tenant_of(taken.previous.run).await;
                    world.keep(tenant, taken.previous.run).await;
                }
                leases.push((taken.previous, taken.status));
            }
            (taken, Effect::Reclaimed(leases))
        };
        self.ask(Asked::Reclaim, work.boxed()).await
    }

    async fn prune(&self, request: PruneRequest) -> Answered<Pruned> {
        self.inner().prune(request).await
    }
}
