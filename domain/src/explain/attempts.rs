//! The attempts of a run, as its durable events tell of them.

use std::time::Duration;

use crate::event::{Event, EventKind};
use crate::run::{RequeueReason, RunErrorCode};
use crate::{OwnerId, Timestamp};

/// The most attempts that are kept in mind, the last ones.
pub const MOST_ATTEMPTS: usize = 100;

/// One claim of a run, and what became of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Attempt {
    /// Its number, counting from 1.
    pub attempt: u32,
    /// The process that made it; `None` where an older build, or a newer one, told of it.
    pub owner: Option<OwnerId>,
    /// When it was made.
    pub started_at: Timestamp,
    /// How long it held without renewal; `None` where `owner` is.
    pub ttl: Option<Duration>,
    /// When the run was taken from it, given back or ended; `None` while it goes on.
    pub ended_at: Option<Timestamp>,
    /// Why; `None` while it goes on, and where a newer build told of it.
    pub cause: Option<Cause>,
}

/// What ended an attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cause {
    /// The run went back to the queue.
    Requeued(RequeueReason),
    /// The run ended well.
    Succeeded,
    /// The run failed.
    Failed(RunErrorCode),
    /// The run ended on request.
    Cancelled,
}

impl Cause {
    /// The word of the HTTP contract.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requeued(RequeueReason::LeaseExpired) => "lease_expired",
            Self::Requeued(RequeueReason::Drain) => "drain",
            Self::Requeued(RequeueReason::ProviderWait) => "provider_wait",
            Self::Requeued(RequeueReason::TenantSuspended) => "tenant_suspended",
            Self::Requeued(RequeueReason::Orphaned) => "orphaned",
            Self::Succeeded => "succeeded",
            Self::Failed(code) => code.as_str(),
            Self::Cancelled => "cancelled",
        }
    }

    /// Every word that there is.
    pub fn words() -> impl Iterator<Item = &'static str> {
        let requeued = [
            RequeueReason::LeaseExpired,
            RequeueReason::Drain,
            RequeueReason::ProviderWait,
            RequeueReason::TenantSuspended,
            RequeueReason::Orphaned,
        ];
        let back = requeued.into_iter().map(Self::Requeued);
        let ends = [Self::Succeeded, Self::Cancelled].into_iter();
        let failed = RunErrorCode::ALL.into_iter().map(Self::Failed);
        back.chain(ends).chain(failed).map(Self::as_str)
    }
}

/// Takes a run's events, in their order, and makes its attempts of them. Needs no more room for a long
/// life than for a short one.
#[derive(Clone, Debug, Default)]
pub struct Attempts(Vec<Attempt>);

impl Attempts {
    /// Takes the next event. One in a newer build's format counts by its name.
    pub fn take(&mut self, event: &Event) {
        match &event.kind {
            EventKind::RunStarted {
                owner,
                lease_expires_at,
            } => {
                let ttl = lease_expires_at.map(|until| until.since(event.at));
                self.begin(event, *owner, ttl);
            }
            EventKind::RunRequeued { reason } => self.end(event, Some(Cause::Requeued(*reason))),
            EventKind::RunSucceeded => self.end(event, Some(Cause::Succeeded)),
            EventKind::RunFailed { error } => self.end(event, Some(Cause::Failed(error.code))),
            EventKind::RunCancelled => self.end(event, Some(Cause::Cancelled)),
            EventKind::Newer(_) => match event.kind.name() {
                "run.started" => self.begin(event, None, None),
                "run.requeued" => self.end(event, None),
                _ if event.kind.is_terminal() => self.end(event, None),
                _ => {}
            },
            EventKind::RunQueued
            | EventKind::TurnStarted
            | EventKind::TurnCompleted { .. }
            | EventKind::TurnDiscarded
            | EventKind::MessageCompleted { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::ToolCompleted { .. }
            | EventKind::TodosUpdated { .. } => {}
        }
    }

    /// The attempts, in their order: the last [`MOST_ATTEMPTS`] of them.
    #[must_use]
    pub fn all(self) -> Vec<Attempt> {
        self.0
    }

    fn begin(&mut self, event: &Event, owner: Option<OwnerId>, ttl: Option<Duration>) {
        if self.0.len() == MOST_ATTEMPTS {
            self.0.remove(0);
        }
        self.0.push(Attempt {
            attempt: event.attempt,
            owner,
            started_at: event.at,
            ttl,
            ended_at: None,
            cause: None,
        });
    }

    /// A run may end while it waits; that is no attempt's end.
    fn end(&mut self, event: &Event, cause: Option<Cause>) {
        if let Some(last @ Attempt { ended_at: None, .. }) = self.0.last_mut() {
            last.ended_at = Some(event.at);
            last.cause = cause;
        }
    }
}
