//! Why a run is in the state that it is in: what a person would find out of the tables, in words.
//!
//! [`Situation`] is what a store reads of a run and around it as of one moment, [`Attempts`] what its
//! events tell, and [`explain`] says what that means. What blocks a queued run is what
//! [`eligible`](crate::queue::eligible) asks; the first thing of [`Blocked`]'s that holds is named.

mod attempts;
#[cfg(test)]
mod tests;

pub use attempts::{Attempt, Attempts, Cause, MOST_ATTEMPTS};

use crate::access::Standing;
use crate::journal::has_open_answer;
use crate::memory::MEMORY_VERSION;
use crate::run::{RequeueReason, Run, RunError, RunErrorCode, RunState, RunStatus};
use crate::{OwnerId, RunId, Timestamp};

/// A run with all that its state depends on, as of one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Situation {
    /// The run.
    pub run: Run,
    /// The runs of its session before it that have not ended, in their order.
    pub before: Vec<RunId>,
    /// How many runs of its tenant are running, itself included.
    pub tenant_running: u32,
    /// What is true of its creator and its tenant.
    pub standing: Standing,
    /// The moment, by the store's clock.
    pub now: Timestamp,
}

/// What keeps a queued run from being executed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Blocked {
    /// Its tenant may not work.
    TenantSuspended,
    /// A run of its session comes first.
    EarlierRun(RunId),
    /// It has to wait until this moment.
    NotAvailable(Timestamp),
    /// Its memory is of a format that this build cannot read.
    NewerMemory,
    /// Its tenant has as many running runs as it may have.
    TenantCap,
    /// Nothing: whichever worker is free may take it.
    Worker,
}

impl Blocked {
    /// The words of the HTTP contract for all but a run.
    pub const WORDS: [&'static str; 4] = [
        "tenant_suspended",
        "not_available",
        "newer_memory",
        "tenant_cap",
    ];

    /// What it is called in the HTTP contract: the run's id, or a word; `None` for a worker.
    #[must_use]
    pub fn name(self) -> Option<String> {
        let [suspended, waits, newer, cap] = Self::WORDS;
        let word = match self {
            Self::EarlierRun(run) => return Some(run.to_string()),
            Self::Worker => return None,
            Self::TenantSuspended => suspended,
            Self::NotAvailable(_) => waits,
            Self::NewerMemory => newer,
            Self::TenantCap => cap,
        };
        Some(word.to_owned())
    }
}

/// Where a queued run stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QueuePlace {
    /// Its place among the runs of its session that have not ended, counting from 1.
    pub position: usize,
    /// What it waits for.
    pub blocked_by: Blocked,
    /// How many runs of its tenant are running.
    pub tenant_running: u32,
    /// How many may be; `None` for any number.
    pub tenant_cap: Option<u32>,
}

/// Who holds a running run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Holder {
    /// The process.
    pub owner: OwnerId,
    /// The number of its claim.
    pub attempt: u32,
    /// Until when it does, if it does not renew the claim.
    pub expires_at: Timestamp,
    /// When it did so last; `None` if it never did, or where that is not known.
    pub renewed_at: Option<Timestamp>,
}

/// Why a run is in its state.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Explanation {
    /// The state.
    pub state: RunStatus,
    /// All of it in a few words for a person.
    pub summary: String,
    /// Its place; `None` unless it is queued.
    pub queue: Option<QueuePlace>,
    /// Its holder; `None` unless it is running.
    pub lease: Option<Holder>,
    /// Its attempts, in their order.
    pub attempts: Vec<Attempt>,
    /// Before this nobody claims it; `None` if it does not wait for a moment.
    pub available_at: Option<Timestamp>,
    /// Why it failed; `None` if it did not.
    pub error: Option<RunError>,
}

/// Says why a run is in its state. `tenant_cap` is the most running runs of a tenant, 0 for any number.
#[must_use]
pub fn explain(situation: &Situation, mut attempts: Vec<Attempt>, tenant_cap: u32) -> Explanation {
    let run = &situation.run;
    let tenant_cap = (tenant_cap > 0).then_some(tenant_cap);
    let queue = matches!(run.state, RunState::Queued).then(|| QueuePlace {
        position: situation.before.len() + 1,
        blocked_by: blocked(situation, tenant_cap),
        tenant_running: situation.tenant_running,
        tenant_cap,
    });
    let present = attempts.last_mut();
    let present = present.filter(|it| it.ended_at.is_none() && it.attempt == run.attempt);
    let lease = holder(run, present);
    let last = attempts.last();
    let summary = match &run.state {
        RunState::Queued => of_queued(situation, queue, last),
        RunState::Running { expires_at, .. } => of_running(situation, *expires_at, last),
        RunState::Succeeded { at } => of_succeeded(run, *at),
        RunState::Failed { at, error } => {
            let (code, words) = (error.code.as_str(), why_failed(error.code));
            format!("Failed at {at} as {code}: {words}.")
        }
        RunState::Cancelled { at } => of_cancelled(run, *at),
    };
    Explanation {
        state: run.state.status(),
        summary,
        queue,
        lease,
        available_at: run.available_at,
        error: run.state.error().cloned(),
        attempts,
    }
}

/// What a queued run waits for.
fn blocked(situation: &Situation, tenant_cap: Option<u32>) -> Blocked {
    let run = &situation.run;
    if !situation.standing.tenant_active {
        return Blocked::TenantSuspended;
    }
    if let Some(first) = situation.before.first() {
        return Blocked::EarlierRun(*first);
    }
    if let Some(until) = run.available_at.filter(|until| *until > situation.now) {
        return Blocked::NotAvailable(until);
    }
    if run.memory.version > MEMORY_VERSION {
        return Blocked::NewerMemory;
    }
    if tenant_cap.is_some_and(|cap| situation.tenant_running >= cap) {
        return Blocked::TenantCap;
    }
    Blocked::Worker
}

/// Who holds a running run. A process renews its claims for the time for which it made them, so the time
/// of the claim tells when that was. What its events do not tell of the `present` attempt is added.
fn holder(run: &Run, present: Option<&mut Attempt>) -> Option<Holder> {
    let (lease, expires_at) = run.lease().zip(run.lease_expires_at())?;
    let renewed_at = present.and_then(|present| {
        present.owner.get_or_insert(lease.owner);
        let last = expires_at.minus(present.ttl?);
        (last > present.started_at).then_some(last)
    });
    Some(Holder {
        owner: lease.owner,
        attempt: lease.attempt,
        expires_at,
        renewed_at,
    })
}

/// What is added of a creator in whose name nothing is executed any more.
const CREATOR_GONE: &str =
    " Its creator may not act any more, so it will fail as creator_inactive.";

fn of_queued(situation: &Situation, place: Option<QueuePlace>, last: Option<&Attempt>) -> String {
    let back = last.and_then(|last| Some((last, last.ended_at?)));
    let begun = match back {
        None => format!("Queued since {}", situation.run.created_at),
        Some((last, at)) => {
            let attempt = last.attempt;
            let why = match last.cause {
                Some(Cause::Requeued(reason)) => format!(" ({})", why_requeued(reason)),
                _ => String::new(),
            };
            format!("Queued again since {at}, after attempt {attempt}{why}")
        }
    };
    let blocked = place.map_or(Blocked::Worker, |place| place.blocked_by);
    let waits = waits_for(situation, blocked, last.and_then(|last| last.cause));
    let creator = if situation.standing.creator.may_act() {
        ""
    } else {
        CREATOR_GONE
    };
    format!("{begun}: {waits}.{creator}")
}

/// What a queued run waits for; `cause` is what ended its last attempt.
fn waits_for(situation: &Situation, blocked: Blocked, cause: Option<Cause>) -> String {
    let run = &situation.run;
    match blocked {
        Blocked::TenantSuspended => {
            "its tenant is suspended; it goes on when the tenant is active again".to_owned()
        }
        Blocked::EarlierRun(first) => match situation.before.len() {
            1 => format!("run {first} of its session comes first"),
            many => format!("{many} runs of its session come first, of them run {first} next"),
        },
        Blocked::NotAvailable(until) => match cause {
            Some(Cause::Requeued(RequeueReason::ProviderWait)) => {
                format!("its provider asked to wait until {until}")
            }
            Some(Cause::Requeued(RequeueReason::LeaseExpired)) => format!(
                "{} holders in a row fell silent in the same turn, so it is not tried again before \
                 {until}",
                run.stalled_attempts
            ),
            _ => format!("it is not to be claimed before {until}"),
        },
        Blocked::NewerMemory => format!(
            "its memory has format {}, which only a newer build can read; this one reads up to \
             {MEMORY_VERSION}",
            run.memory.version
        ),
        Blocked::TenantCap => format!(
            "its tenant has {} running runs, and may have no more at once",
            situation.tenant_running
        ),
        Blocked::Worker => "nothing stands before it; it waits for a free worker".to_owned(),
    }
}

fn of_running(situation: &Situation, expires_at: Timestamp, last: Option<&Attempt>) -> String {
    let run = &situation.run;
    let (attempt, turn) = (run.attempt, run.progress.resume_turn + 1);
    let doing = if has_open_answer(run) {
        "executing the tools of"
    } else {
        "asking the model in"
    };
    let since = last.map_or(run.started_at, |last| Some(last.started_at));
    let since = since.unwrap_or(run.created_at);
    let by = run.lease().map(|lease| lease.owner.to_string());
    let by = by.unwrap_or_default();
    let held = if expires_at > situation.now {
        format!("until {expires_at} unless it renews that.")
    } else {
        format!("whose lease ended at {expires_at} without renewal: the run will be taken from it.")
    };
    let future = match run.cancel_requested_at {
        Some(at) => format!(" Its end was asked for at {at}, and it will end cancelled."),
        None if !situation.standing.creator.may_act() => CREATOR_GONE.to_owned(),
        None if !situation.standing.tenant_active => {
            " Its tenant is suspended, so it will be given back when its turn is complete."
                .to_owned()
        }
        None => String::new(),
    };
    format!(
        "Running since {since} in attempt {attempt}, {doing} turn {turn}, held by process {by} \
         {held}{future}"
    )
}

fn of_succeeded(run: &Run, at: Timestamp) -> String {
    let calls = count(run.iterations, "model call");
    let attempts = count(run.attempt, "attempt");
    format!("Succeeded at {at} with {calls} in {attempts}.")
}

fn of_cancelled(run: &Run, at: Timestamp) -> String {
    let before = match run.attempt {
        0 => " before it was started",
        _ => "",
    };
    let asked = run.cancel_requested_at;
    let asked = asked.map(|at| format!(": its end was asked for at {at}"));
    format!("Cancelled at {at}{before}{}.", asked.unwrap_or_default())
}

fn count(number: u32, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

const fn why_requeued(reason: RequeueReason) -> &'static str {
    match reason {
        RequeueReason::LeaseExpired => "the process that held it fell silent",
        RequeueReason::Drain => "its process was shutting down",
        RequeueReason::ProviderWait => "its provider asked to wait",
        RequeueReason::TenantSuspended => "its tenant was suspended",
        RequeueReason::Orphaned => "its process held it without executing it",
    }
}

const fn why_failed(code: RunErrorCode) -> &'static str {
    match code {
        RunErrorCode::MaxIterations => "it made as many model calls as it may, and was not done",
        RunErrorCode::UnsupportedStop => {
            "the provider stopped in a way from which a run does not go on"
        }
        RunErrorCode::ContextExceeded => "the conversation does not fit the model",
        RunErrorCode::ProviderUnavailable => {
            "the provider could not be reached, or broke off, in every try"
        }
        RunErrorCode::ProviderAuth => "the provider refused the credentials",
        RunErrorCode::ProviderRejected => "the provider refused the request",
        RunErrorCode::ProviderProtocol => "the provider answered with what is not its protocol",
        RunErrorCode::Truncated => {
            "the model was cut off inside of a tool call three times in a row"
        }
        RunErrorCode::EmptyAnswer => "the model answered nothing three times in a row",
        RunErrorCode::DeadlineExceeded => "its time was over",
        RunErrorCode::CreatorInactive => {
            "who created it is gone, not active, or not allowed on the session any more"
        }
        RunErrorCode::Stalled => {
            "the same turn was begun too often, and each time its process fell silent before it was \
             complete"
        }
        RunErrorCode::Internal => {
            "of a defect in hango, or of stored state that cannot be read; the log says more"
        }
    }
}
