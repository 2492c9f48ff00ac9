//! Runs for checks: accepting, claiming, and all that is on record of one.

use std::time::Duration;

use hango_domain::access::{Scope, Visibility};
use hango_domain::conversation::{Block, Message};
use hango_domain::event::Event;
use hango_domain::journal::ToolCall;
use hango_domain::memory::MEMORY_VERSION;
use hango_domain::queue::ClaimLimits;
use hango_domain::run::{Change, Lease, Run, TransitionError};
use hango_domain::session::OnBusy;
use hango_domain::{MessageId, OwnerId, RunId, RunTrace, SessionId, SpanId, TraceId};
use hango_ports::run_store::{
    Accepted, Cancelled, ClaimRequest, Claimed, Claims, NewRun, ReclaimRequest, RunStoreError,
    Written,
};
use hango_ports::session_store::MessageQuery;
use serde_json::{Map, json};
use uuid::Uuid;

use crate::{Fixture, Place};

/// How long a claim of the checks goes without renewal.
pub const TTL: Duration = Duration::from_secs(30);

/// Everything that a store keeps of a run, and its session's messages: what is compared when nothing,
/// or exactly something, may have changed.
#[derive(Clone, Debug, PartialEq)]
pub struct OnRecord {
    /// The run.
    pub run: Run,
    /// Its journal.
    pub calls: Vec<ToolCall>,
    /// Its events.
    pub events: Vec<Event>,
    /// The messages of its session.
    pub messages: Vec<Message>,
}

/// A process that executes runs.
#[must_use]
pub const fn owner(n: u128) -> OwnerId {
    OwnerId(Uuid::from_u128(n))
}

/// As many runs as there are, of any tenant.
#[must_use]
pub const fn no_limits() -> ClaimLimits {
    ClaimLimits {
        runs: 1000,
        running_per_tenant: 0,
        memory_version: MEMORY_VERSION,
    }
}

/// The rule that refused.
pub fn refused<T: std::fmt::Debug>(result: Result<T, RunStoreError>) -> TransitionError {
    match result {
        Err(RunStoreError::Refused(rule)) => rule,
        other => panic!("a rule of the run's life forbids this, but: {other:?}"),
    }
}

impl Fixture {
    /// A run that was not accepted yet.
    pub fn new_run(&self, scope: &Scope, session: SessionId) -> NewRun {
        NewRun {
            id: RunId(self.uuid()),
            session,
            created_by: *scope,
            input: vec![Block::text("What time is it?")],
            input_message_id: MessageId(self.uuid()),
            metadata: Map::from_iter([("order".to_owned(), json!({"n": 1}))]),
            trace: RunTrace {
                trace_id: TraceId([0xab; 16]),
                span_id: SpanId([0xcd; 8]),
                sampled: true,
                created_by_traceparent: None,
            },
            on_busy: OnBusy::Enqueue,
            max_pending: 100,
        }
    }

    /// Asks the store to accept a run.
    pub async fn try_accept(&self, new: NewRun) -> Result<Accepted, RunStoreError> {
        let mut audit = self.audit(&new.created_by, "run.create", new.id.0);
        audit.trace_id = Some(new.trace.trace_id);
        audit.status = 202;
        self.stores.runs.accept(new, audit, None).await
    }

    /// Has a run accepted.
    pub async fn accept(&self, new: NewRun) -> Run {
        let accepted = self.try_accept(new).await;
        accepted.expect("the session takes the run").run
    }

    /// A queued run of the place's owner.
    pub async fn run(&self, place: &Place) -> Run {
        let new = self.new_run(&place.owner, place.session.id);
        self.accept(new).await
    }

    /// Asks for one run.
    pub async fn claim(&self, run: RunId, owner: OwnerId) -> Option<Claimed> {
        let claimed = self.claim_all(owner, Some(run), no_limits()).await;
        assert!(claimed.len() <= 1, "one run was asked for: {claimed:?}");
        claimed.into_iter().next()
    }

    /// Asks for runs.
    pub async fn claim_all(
        &self,
        owner: OwnerId,
        only: Option<RunId>,
        limits: ClaimLimits,
    ) -> Vec<Claimed> {
        self.claims(owner, only, limits).await.won
    }

    /// The same with what was lost.
    pub async fn claims(&self, owner: OwnerId, only: Option<RunId>, limits: ClaimLimits) -> Claims {
        let request = ClaimRequest {
            owner,
            ttl: TTL,
            only,
            limits,
        };
        let claimed = self.stores.runs.claim(request).await;
        claimed.expect("losing a claim is not an error")
    }

    /// Claims a run that is there to be claimed.
    pub async fn held(&self, run: RunId, owner: OwnerId) -> Lease {
        let claimed = self.claim(run, owner).await;
        claimed.expect("nothing stands before the claim").lease
    }

    /// A new tenant at work, with a run that the first process holds.
    pub async fn running(&self) -> (Place, Lease) {
        let place = self.place().await;
        let run = self.run(&place).await;
        let lease = self.held(run.id, owner(1)).await;
        (place, lease)
    }

    /// Asks for the end of a run.
    pub async fn cancel(&self, by: &Scope, run: RunId) -> Result<Run, RunStoreError> {
        let cancelled = self.try_cancel(by, run).await?;
        Ok(cancelled.run)
    }

    /// Asks for the end of a run, and gets all that the store says.
    pub async fn try_cancel(&self, by: &Scope, run: RunId) -> Result<Cancelled, RunStoreError> {
        let seen = hango_domain::access::visibility(by);
        let audit = self.audit(by, "run.cancel", run.0);
        self.stores.runs.request_cancel(seen, run, audit).await
    }

    /// Takes back what fell silent.
    pub async fn sweep(&self) -> Vec<RunId> {
        let request = ReclaimRequest {
            limit: 1000,
            max_stalled: 5,
            expired_only: true,
        };
        let taken = self.stores.runs.reclaim(request).await;
        let taken = taken.expect("the sweep works");
        taken.into_iter().map(|run| run.previous.run).collect()
    }

    /// Lets the run's lease run out, has it taken back, waits until it may be claimed, and claims it.
    pub async fn taken_over(&self, lease: Lease, by: OwnerId) -> Lease {
        self.clock.advance(TTL);
        assert!(self.sweep().await.contains(&lease.run));
        self.clock.advance(Duration::from_mins(5));
        self.held(lease.run, by).await
    }

    /// Makes a fenced change.
    pub async fn write(&self, change: Change) -> Result<Written, RunStoreError> {
        let runs = &self.stores.runs;
        match change {
            Change::Repair(change) => runs.repair(change).await,
            Change::Answer(change) => runs.answer(change).await,
            Change::Resume(change) => runs.resume(change).await,
            Change::Record(change) => runs.record(change).await,
            Change::CompleteTurn(change) => runs.complete_turn(change).await,
            Change::Retry(change) => runs.retry(change).await,
            Change::GiveBack(change) => runs.give_back(change).await,
            Change::Finish(change) => runs.finish(change).await,
            Change::Claim { .. }
            | Change::Renew { .. }
            | Change::RequestCancel { .. }
            | Change::Reclaim(_) => panic!("not a holder's write: {change:?}"),
        }
    }

    /// Makes a fenced change that nothing forbids.
    pub async fn written(&self, change: Change) -> Written {
        let written = self.write(change).await;
        written.expect("nothing forbids the write")
    }

    /// All that is on record of a run of the place.
    pub async fn on_record(&self, place: &Place, run: RunId) -> OnRecord {
        let seen = Visibility {
            tenant: place.tenant,
            creator: None,
        };
        let runs = &self.stores.runs;
        let found = runs.find(seen, run).await.expect("reads work");
        let found = found.expect("the run is there");
        let calls = runs.tool_calls(seen, run).await.expect("reads work");
        let events = runs.events(seen, run, 0, 100_000).await;
        let events = events.expect("reads work");
        OnRecord {
            messages: self.messages(seen, found.session_id).await,
            run: found,
            calls: calls.expect("the run is there"),
            events: events.expect("the run is there"),
        }
    }

    /// Every message of a session.
    pub async fn messages(&self, seen: Visibility, session: SessionId) -> Vec<Message> {
        let query = MessageQuery {
            after_seq: 0,
            run: None,
            limit: 100_000,
        };
        let messages = self.stores.sessions.messages(seen, session, query).await;
        let messages = messages.expect("reads work");
        messages.expect("the session is there")
    }
}
