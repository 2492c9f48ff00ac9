//! What happened, as seen from outside of the engines: what the store did, what was asked of the provider
//! and of tools, what clients were told. The checker reads nothing else but the store's content.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hango_domain::run::{ChangeKind, Lease, RequeueReason, RunStatus};
use hango_domain::tool::Idempotency;
use hango_domain::{RunId, SessionId, TenantId};
use hango_ports::run_store::Held;

/// One life of a process: a restart is another one.
pub(crate) type Process = u32;

/// One request to the store, call of a model or execution of a tool.
pub(crate) type Call = u64;

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// When, since the beginning.
    pub(crate) at: Duration,
    /// What.
    pub(crate) what: What,
}

/// See [`Entry`].
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A process begins to execute.
    Starts(Process),
    /// It is killed.
    Dies(Process),
    /// None of its tasks goes on; `briefly` if that is less than a lease's margin allows for.
    HeldUp { process: Process, briefly: bool },
    /// They go on.
    GoesOn { process: Process, briefly: bool },
    /// It does not reach the store any more, while others do.
    CutOff(Process),
    /// It does again.
    Reconnected(Process),
    /// It begins to drain.
    Drains(Process),
    /// It has drained, and ends.
    Drained(Process),
    /// The store's clock goes forward by itself.
    ClockSteps(Duration),
    /// The store is out of reach from now on.
    StormBegins,
    /// It is not any more.
    StormEnds,
    /// From now on nothing goes wrong any more.
    Calm,
    /// A tenant is suspended, or works again.
    Tenant(TenantId, bool),
    /// A process asks something of the store.
    Asks {
        call: Call,
        process: Process,
        asked: Asked,
    },
    /// The store did it.
    Done { call: Call, effect: Effect },
    /// The process is told; `false` if it only learns that it does not know.
    Told { call: Call, known: bool },
    /// A client was told that its run is accepted.
    Accepted(RunId),
    /// A client was told that the run will end, or has.
    CancelAccepted(RunId),
    /// A model is asked.
    Model {
        call: Call,
        process: Process,
        run: RunId,
        turn: u32,
        attempt: u32,
        /// What is wrong with the request.
        illegal: Option<String>,
    },
    /// What its answer cost so far.
    Cost { run: RunId, tokens: u64 },
    /// Its stream was dropped.
    ModelEnds(Call),
    /// The execution of a tool begins.
    Tool {
        call: Call,
        process: Process,
        run: RunId,
        key: String,
        class: Idempotency,
    },
    /// It ended or was dropped.
    ToolEnds(Call),
    /// Something that must not happen was seen right away.
    Wrong(String),
}

/// What is asked of the store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Asked {
    Accept,
    Cancel,
    Cancels,
    Claim,
    Renew,
    Reclaim,
    Write(ChangeKind, Lease),
}

/// What a request did.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// Runs were accepted, or one was there already.
    Accepted {
        run: RunId,
        tenant: TenantId,
        session: SessionId,
        session_no: u64,
        cancelled: Vec<RunId>,
        interrupted: Vec<RunId>,
    },
    /// The run ended, or is asked to.
    Cancel { run: RunId, status: RunStatus },
    /// Runs were claimed.
    Claimed(Vec<Lease>),
    /// See [`hango_ports::run_store::Renewal`].
    Renewed {
        renewed: Vec<Lease>,
        lost: Vec<Held>,
        orphans: Vec<Lease>,
    },
    /// A fenced write changed the run.
    Wrote { wrote: Wrote, status: RunStatus },
    /// It was the repeat of one that was made before.
    Repeated,
    /// It was refused.
    Refused(String),
    /// Runs were taken back.
    Reclaimed(Vec<(Lease, RunStatus)>),
    /// Nothing that matters.
    Nothing,
}

/// A fenced write.
#[derive(Clone, Debug)]
pub(crate) struct Wrote {
    pub(crate) lease: Lease,
    pub(crate) kind: ChangeKind,
    /// The turn, where the write is of one.
    pub(crate) turn: Option<u32>,
    /// Positions of calls that begin.
    pub(crate) starts: Vec<u32>,
    /// Positions of calls whose results are recorded.
    pub(crate) settles: Vec<u32>,
    /// Why the run goes back to the queue, and for how long it stays there.
    pub(crate) back: Option<(RequeueReason, Duration)>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Log(Mutex<Vec<Entry>>);

impl Log {
    pub(crate) fn add(&self, at: Duration, what: What) {
        self.entries().push(Entry { at, what });
    }

    pub(crate) fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    /// What kinds of things happened.
    pub(crate) fn kinds(&self) -> BTreeSet<&'static str> {
        self.entries()
            .iter()
            .map(|entry| entry.what.kind())
            .collect()
    }
}

impl What {
    /// A word for what happened, so that a test can tell whether it ever does.
    fn kind(&self) -> &'static str {
        match self {
            Self::Starts(_) => "starts",
            Self::Dies(_) => "dies",
            Self::HeldUp { briefly: true, .. } => "stutters",
            Self::HeldUp { .. } => "is held up",
            Self::GoesOn { .. } => "goes on",
            Self::CutOff(_) => "cut off",
            Self::Reconnected(_) => "reconnected",
            Self::Drains(_) => "drains",
            Self::Drained(_) => "drained",
            Self::ClockSteps(_) => "clock steps",
            Self::StormBegins => "storm begins",
            Self::StormEnds => "storm ends",
            Self::Calm => "calm",
            Self::Tenant(_, true) => "tenant works",
            Self::Tenant(_, false) => "tenant suspended",
            Self::Asks { .. } => "asks",
            Self::Done { effect, .. } => effect.kind(),
            Self::Told { known: true, .. } => "told",
            Self::Told { .. } => "told nothing",
            Self::Accepted(_) => "acceptance told",
            Self::CancelAccepted(_) => "cancel told",
            Self::Model { .. } => "model",
            Self::Cost { .. } => "cost",
            Self::ModelEnds(_) => "model ends",
            Self::Tool { .. } => "tool",
            Self::ToolEnds(_) => "tool ends",
            Self::Wrong(_) => "wrong",
        }
    }
}

impl Effect {
    fn kind(&self) -> &'static str {
        match self {
            Self::Accepted { interrupted, .. } if !interrupted.is_empty() => "interrupted",
            Self::Accepted { cancelled, .. } if !cancelled.is_empty() => "cancelled for another",
            Self::Accepted { .. } => "accepted",
            Self::Cancel { status, .. } if status.is_terminal() => "cancelled",
            Self::Cancel { .. } => "cancel requested",
            Self::Claimed(_) => "claimed",
            Self::Renewed { lost, .. } if !lost.is_empty() => "lost",
            Self::Renewed { .. } => "renewed",
            Self::Wrote { wrote, .. } => wrote.kind(),
            Self::Repeated => "repeated",
            Self::Refused(_) => "refused",
            Self::Reclaimed(taken) => match taken.first() {
                Some((_, status)) if status.is_terminal() => "taken back and ended",
                Some(_) => "taken back",
                None => "nothing to take back",
            },
            Self::Nothing => "nothing",
        }
    }
}

impl Wrote {
    fn kind(&self) -> &'static str {
        match (self.kind, self.back) {
            (ChangeKind::Repair, _) => "repair",
            (ChangeKind::Answer, _) => "answer",
            (ChangeKind::Resume, _) if self.settles.is_empty() => "resume",
            (ChangeKind::Resume, _) => "in doubt",
            (ChangeKind::Record, _) => "record",
            (ChangeKind::CompleteTurn, None) => "boundary",
            (ChangeKind::Retry, _) => "retry",
            (ChangeKind::Finish, _) => "finish",
            (_, Some((reason, _))) => match reason {
                RequeueReason::Drain => "back for a drain",
                RequeueReason::ProviderWait => "back for a provider",
                RequeueReason::TenantSuspended => "back for a suspension",
                RequeueReason::Orphaned => "back as an orphan",
                RequeueReason::LeaseExpired => "back for a lease",
            },
            _ => "something else",
        }
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in self.entries().iter() {
            writeln!(f, "{:>9.3} {:?}", entry.at.as_secs_f64(), entry.what)?;
        }
        Ok(())
    }
}
