//! Where runs are kept, with their journal and their events.

use std::time::Duration;

use async_trait::async_trait;
pub use hango_domain::access::Standing;
use hango_domain::access::{Scope, Visibility};
use hango_domain::agent::AgentSnapshot;
use hango_domain::conversation::{Block, Message, Usage};
use hango_domain::event::{Event, EventKind};
pub use hango_domain::explain::Situation;
use hango_domain::journal::ToolCall;
pub use hango_domain::queue::Census;
use hango_domain::queue::ClaimLimits;
use hango_domain::retention::Retention;
use hango_domain::run::{
    Answer, Boundary, End, GiveBack, Lease, MAIN_LANE, Progress, Record, Repair, Resume, Retry,
    Run, RunState, RunStatus, StoredMemory, TransitionError,
};
use hango_domain::session::{LineError, OnBusy};
use hango_domain::{AgentId, MessageId, OwnerId, RunId, RunTrace, SessionId, Timestamp};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::audit_store::NewAudit;
use crate::idempotency::{IdempotencyKey, Repeated};
use crate::page::{Page, PageRequest};
use crate::store::StoreFailure;

/// Keeps runs, and lets one attempt at a time change each.
///
/// Every changing method makes one change of [`Run::apply`] durable with all that belongs to it
/// (messages, journal, events, session counters, audit), entirely or not at all, and refuses exactly
/// what that function refuses. The fence is a lock or an update of the run's row in the same
/// transaction that appends.
///
/// Time is the store's: leases, `available_at` and deadlines are measured by the clock it was built
/// with, never by a caller's.
///
/// Dropping a returned future leaves the change made or not made, never half made. After
/// [`StoreFailure::Unavailable`] the very same fenced write may be repeated: if it had been made, the
/// repeat is answered as the first was.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait RunStore: Send + Sync {
    /// Adds a run, queued, with its event and its audit row, which the store has tell
    /// [of the agent](NewAudit::with_agent).
    ///
    /// The session must be one that the caller sees, and its agent not archived; the run keeps the
    /// agent as it is in this transaction. With [`OnBusy::Interrupt`] the pending runs are cancelled in
    /// the same transaction, before the cap is checked. A run of the same id that is already there is
    /// returned as it is.
    ///
    /// With a key, the run is the answer that is kept for it; where there is one already, that comes
    /// before all else: [`Repeated`](RunStoreError::Repeated).
    async fn accept(
        &self,
        new: NewRun,
        audit: NewAudit,
        once: Option<IdempotencyKey>,
    ) -> Result<Accepted, RunStoreError>;

    /// Reads a run; `None` when there is none for this caller.
    async fn find(&self, seen: Visibility, run: RunId) -> Result<Option<Run>, RunStoreError>;

    /// Reads runs, newest first. A page goes on without those that cannot be read, which the log is told.
    async fn list(
        &self,
        seen: Visibility,
        filter: RunFilter,
        page: PageRequest,
    ) -> Result<Page<Run>, RunStoreError>;

    /// Reads a run's journal, by turn and position; `None` when there is no run for this caller.
    async fn tool_calls(
        &self,
        seen: Visibility,
        run: RunId,
    ) -> Result<Option<Vec<ToolCall>>, RunStoreError>;

    /// Reads at most `limit` events of a run behind number `after`, in order, those in a newer build's
    /// format as [`Newer`](hango_domain::event::EventKind::Newer); `None` when there is no run for this
    /// caller.
    async fn events(
        &self,
        seen: Visibility,
        run: RunId,
        after: u64,
        limit: u32,
    ) -> Result<Option<Vec<Event>>, RunStoreError>;

    /// Reads what is told of a run when it is taken from its holder, or ends without one; `None` when
    /// there is no such run. Nobody's caller sees it.
    async fn story(&self, run: RunId) -> Result<Option<Story>, RunStoreError>;

    /// Reads a run with all that its state depends on, as of one moment; `None` when there is no run for this
    /// caller.
    async fn situation(
        &self,
        seen: Visibility,
        run: RunId,
    ) -> Result<Option<Situation>, RunStoreError>;

    /// Counts the runs that have not ended, as [`hango_domain::queue::census`] says. It costs what there is of
    /// those, however many have ended.
    async fn census(&self, most_tenants: u32) -> Result<Census, RunStoreError>;

    /// Takes queued runs, as [`hango_domain::queue::eligible`] says. Of any number of simultaneous
    /// callers exactly one gets a run; losing is not an error, it is [counted](Claims::lost). The first
    /// claim of a run appends its input as the user's message.
    ///
    /// After [`StoreFailure::Unavailable`] claims may have been made; [`renew`](Self::renew) finds them.
    async fn claim(&self, request: ClaimRequest) -> Result<Claims, RunStoreError>;

    /// Lets the leases of `held` end `ttl` from now, in one write for all of them.
    ///
    /// What is not in force any more, or ran out, is reported as lost. Runs that the owner holds
    /// without naming them are reported as orphans, and not renewed.
    async fn renew(
        &self,
        owner: OwnerId,
        held: Vec<Held>,
        ttl: Duration,
    ) -> Result<Renewal, RunStoreError>;

    /// The claims of this owner whose end was asked for.
    async fn cancels(&self, owner: OwnerId) -> Result<Vec<Lease>, RunStoreError>;

    /// Makes [`hango_domain::run::Change::Repair`] durable.
    async fn repair(&self, change: Repair) -> Result<Written, RunStoreError>;

    /// Makes [`hango_domain::run::Change::Answer`] durable, with the journal of the batch.
    async fn answer(&self, change: Answer) -> Result<Written, RunStoreError>;

    /// Makes [`hango_domain::run::Change::Resume`] durable, in the journal too.
    async fn resume(&self, change: Resume) -> Result<Written, RunStoreError>;

    /// Makes [`hango_domain::run::Change::Record`] durable, in the journal too.
    async fn record(&self, change: Record) -> Result<Written, RunStoreError>;

    /// Makes [`hango_domain::run::Change::CompleteTurn`] durable, in the journal too.
    async fn complete_turn(&self, change: Boundary) -> Result<Written, RunStoreError>;

    /// Makes [`hango_domain::run::Change::Retry`] durable.
    async fn retry(&self, change: Retry) -> Result<Written, RunStoreError>;

    /// Makes [`hango_domain::run::Change::GiveBack`] durable.
    async fn give_back(&self, change: GiveBack) -> Result<Written, RunStoreError>;

    /// Makes [`hango_domain::run::Change::Finish`] durable, in the journal too.
    async fn finish(&self, change: End) -> Result<Written, RunStoreError>;

    /// Asks for a run's end: a queued one ends at once. Asking again changes nothing and writes no
    /// audit row.
    async fn request_cancel(
        &self,
        seen: Visibility,
        run: RunId,
        audit: NewAudit,
    ) -> Result<Cancelled, RunStoreError>;

    /// Takes runs from holders that fell silent, the longest silent first.
    async fn reclaim(&self, request: ReclaimRequest) -> Result<Vec<Reclaimed>, RunStoreError>;

    /// Removes some of what is old, as [`hango_domain::retention`] says: answers kept for idempotency keys;
    /// when none of them is old, runs, with their journal and events; and when no run is, sessions, with
    /// their messages. Which go first is the store's to choose, and how many
    /// [`one_step`](hango_domain::retention::one_step) says.
    ///
    /// Any number of callers may ask at once, and whatever else is done goes on meanwhile: what another
    /// has in hand is passed over, and left to the next time. A run is accepted in a session, or the
    /// session is removed and the run is [`NotFound`](RunStoreError::NotFound); never both. What was
    /// removed is answered as if it had never been there, and its audit rows stay.
    ///
    /// After [`StoreFailure::Unavailable`] all or nothing of it was removed; to ask again does no harm.
    async fn prune(&self, request: PruneRequest) -> Result<Pruned, RunStoreError>;
}

/// A run to be accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRun {
    /// Its identity.
    pub id: RunId,
    /// The conversation.
    pub session: SessionId,
    /// Who creates it, and in whose name it executes.
    pub created_by: Scope,
    /// What he says.
    pub input: Vec<Block>,
    /// The id that the input's message will have.
    pub input_message_id: MessageId,
    /// His own data.
    pub metadata: Map<String, Value>,
    /// Its reserved trace.
    pub trace: RunTrace,
    /// What happens if the session has pending runs.
    pub on_busy: OnBusy,
    /// The most pending runs that the session may have, this one included.
    pub max_pending: u32,
}

impl NewRun {
    /// The run as it begins in its session, with the `session_no` that the session's line gave out, for
    /// this version of the session's agent.
    #[must_use]
    pub fn queued(
        self,
        agent_id: AgentId,
        agent_version: u32,
        session_no: u64,
        now: Timestamp,
    ) -> Run {
        Run {
            id: self.id,
            tenant_id: self.created_by.tenant,
            session_id: self.session,
            agent_id,
            agent_version,
            created_by: self.created_by.user,
            lane: MAIN_LANE.to_owned(),
            session_no,
            state: RunState::Queued,
            attempt: 0,
            stalled_attempts: 0,
            available_at: None,
            progress: Progress::default(),
            input: self.input,
            input_message_id: self.input_message_id,
            metadata: self.metadata,
            iterations: 0,
            usage: Usage::default(),
            usage_discarded: Usage::default(),
            stop_reason: None,
            final_message_id: None,
            memory: StoredMemory::default(),
            trace: self.trace,
            cancel_requested_at: None,
            started_at: None,
            created_at: now,
        }
    }
}

/// What came of an acceptance.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    /// The run.
    pub run: Run,
    /// Runs of the session that were running and are asked to end.
    pub interrupted: Vec<RunId>,
    /// The events of the acceptance and of the runs that were cancelled for it, each run's in order; empty
    /// if the run was there already.
    pub events: Vec<Event>,
}

/// Which runs to read; what is empty or `None` leaves a condition out.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RunFilter {
    /// Only those in one of these states.
    pub states: Vec<RunStatus>,
    /// Only those of this session.
    pub session: Option<SessionId>,
    /// Only those of this agent.
    pub agent: Option<AgentId>,
}

/// What a process asks for when it claims.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClaimRequest {
    /// The process.
    pub owner: OwnerId,
    /// How long a claim may go without renewal.
    pub ttl: Duration,
    /// Only this run: before it stand the earlier ones of its session and its tenant's cap, not what waits
    /// longer elsewhere. `None` for whichever is eligible.
    pub only: Option<RunId>,
    /// What limits the claim.
    pub limits: ClaimLimits,
}

/// What came of asking for runs.
#[derive(Debug, Default)]
pub struct Claims {
    /// The claims that were made.
    pub won: Vec<Claimed>,
    /// Runs that went to somebody else meanwhile, or must not be claimed any more: the one that was asked for,
    /// or those that were selected and did not change. One that is passed over because it is locked is none.
    pub lost: u32,
}

impl Claims {
    /// Those of a request by which so many runs were `selected`, of which so many were `changed`.
    #[must_use]
    pub fn of(request: &ClaimRequest, selected: usize, changed: usize, won: Vec<Claimed>) -> Self {
        let missed = match request.only {
            Some(_) => usize::from(changed == 0),
            None => selected.saturating_sub(changed),
        };
        let lost = u32::try_from(missed).unwrap_or(u32::MAX);
        Self { won, lost }
    }
}

/// A claim that was made, with all that its executor needs.
#[derive(Debug)]
pub struct Claimed {
    /// The right to change the run.
    pub lease: Lease,
    /// The run, as claimed.
    pub run: Run,
    /// How long ago the run was started first, by the store's clock: its deadline counts from there.
    pub elapsed: Duration,
    /// What is true of its creator and tenant now.
    pub standing: Standing,
    /// The events of the claim.
    pub events: Vec<Event>,
    /// What the executor works with. An error here is this run's alone: it ends as `internal`.
    pub context: Result<RunContext, StoreFailure>,
}

/// What an executor works with.
#[derive(Clone, Debug, PartialEq)]
pub struct RunContext {
    /// The agent, as it was when the run was accepted.
    pub agent: AgentSnapshot,
    /// Every message of the session, oldest first, the run's input included.
    pub history: Vec<Message>,
    /// The journal of the answered turn that is not complete; empty when there is none.
    pub calls: Vec<ToolCall>,
}

/// How many events of a run's life are read at most, the latest.
pub const MAX_LIFE: usize = 256;

/// What is told of a run that nobody holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Story {
    /// The run.
    pub run: Run,
    /// The agent, as it was when the run was accepted.
    pub agent: AgentSnapshot,
    /// The claims that were made of it, how it went back to the queue, and its turns as they began, in
    /// order: the last [`MAX_LIFE`] of [them](is_of_life).
    pub life: Vec<Event>,
    /// How many tool calls its models asked for.
    pub tool_calls: u32,
}

/// Whether an event belongs to a [`Story`].
#[must_use]
pub const fn is_of_life(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::RunStarted { .. } | EventKind::RunRequeued { .. } | EventKind::TurnStarted
    )
}

/// A fenced write that was made, now or before.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// Where the run stands after it.
    pub status: RunStatus,
    /// What is true of its creator and tenant now.
    pub standing: Standing,
    /// The events of the write; empty for a repeat.
    pub events: Vec<Event>,
}

/// A claim that its holder believes to be in force.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Held {
    /// The run.
    pub run: RunId,
    /// The attempt.
    pub attempt: u32,
}

/// What came of a renewal.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Renewal {
    /// Claims that hold for another `ttl`.
    pub renewed: Vec<(Held, Standing)>,
    /// Claims that are not in force any more.
    pub lost: Vec<Held>,
    /// Claims in force that the holder did not name.
    pub orphans: Vec<Lease>,
}

/// What a sweep asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReclaimRequest {
    /// The most runs to take back.
    pub limit: u32,
    /// See [`hango_domain::run::Reclaim::max_stalled`].
    pub max_stalled: u32,
    /// Whether only expired leases are taken. Only who knows that no other process executes may say
    /// no.
    pub expired_only: bool,
}

/// A run whose end was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Cancelled {
    /// The run after that: ended, or running and asked to end.
    pub run: Run,
    /// The events of the change; empty where it only asks the holder.
    pub events: Vec<Event>,
}

/// A run that was taken back.
#[derive(Clone, Debug, PartialEq)]
pub struct Reclaimed {
    /// The claim that was in force.
    pub previous: Lease,
    /// When it ended, or would have ended.
    pub expired_at: Timestamp,
    /// The last completed turn.
    pub resume_turn: u32,
    /// Where the run stands now.
    pub status: RunStatus,
    /// The events of the change.
    pub events: Vec<Event>,
}

/// What is asked for when old things are to be removed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PruneRequest {
    /// How long what is over is kept; `None` for ever. Answers go in any case.
    pub retention: Option<Retention>,
    /// How many rows are to go at once, about; at least 1.
    pub rows: u32,
}

/// What was removed; nothing of any kind when nothing old is left, but for what others have in hand.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Pruned {
    /// How many answers kept for idempotency keys.
    pub answers: u64,
    /// How many runs.
    pub runs: u64,
    /// How many sessions.
    pub sessions: u64,
}

/// Why a [`RunStore`] did not do what it was asked.
#[derive(Debug, Error)]
pub enum RunStoreError {
    /// The run, or the session of a new one, is not there for this caller.
    #[error("not found")]
    NotFound,
    /// The session's agent takes no new runs.
    #[error("the agent is archived")]
    AgentArchived,
    /// The session takes no more runs.
    #[error(transparent)]
    Line(#[from] LineError),
    /// Its idempotency key was used before.
    #[error(transparent)]
    Repeated(#[from] Repeated),
    /// A rule forbids the change. Who presented a lease stops at once and writes nothing more.
    #[error("the run refused the change")]
    Refused(#[source] TransitionError),
    /// The store could not do its work.
    #[error(transparent)]
    Failure(#[from] StoreFailure),
}
