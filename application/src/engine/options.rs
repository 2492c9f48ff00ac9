//! What one execution of a run is given besides the run, and why it may end early.

use hango_domain::agent_loop::{AgentLoop, Input, LoopError, Step, Stop};
use hango_domain::run::{ChangeKind, RequeueReason};
use hango_ports::store::StoreFailure;
use thiserror::Error;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::leases::LeaseGuard;

/// What is particular to one execution of a run; later needs become fields here.
pub(super) struct RunOptions<'a> {
    /// The claim under which it executes.
    pub(super) lease: &'a LeaseGuard,
    /// Cancelled when the run's end is asked for.
    pub(super) cancel: CancellationToken,
    /// Cancelled when the run shall go back at its boundary.
    pub(super) draining: CancellationToken,
    /// Cancelled when it shall not wait for its boundary.
    pub(super) aborting: CancellationToken,
    /// When its time is over.
    pub(super) deadline: Instant,
}

/// Why an execution ended without a write of its own.
#[derive(Debug, Error)]
pub(super) enum Abandoned {
    /// The run belongs to somebody else, or may do so by now.
    #[error("the lease was lost")]
    LeaseLost,
    /// What is stored of the run cannot be read, so that no write of it can be made.
    #[error("what is stored of the run cannot be read")]
    Unreadable(#[source] StoreFailure),
    /// A defect: the driver reported what the loop had not asked for.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// A defect: the loop asked for a change that is not a holder's to make.
    #[error("the loop asked for {0:?}, which is not a holder's to make")]
    NotTheHolders(ChangeKind),
}

impl RunOptions<'_> {
    /// Why nothing may be begun any more, if that is so.
    pub(super) fn stop_now(&self) -> Option<Stop> {
        if !self.lease.is_trusted() {
            Some(Stop::LeaseLost)
        } else if self.cancel.is_cancelled() {
            Some(Stop::Cancel)
        } else if Instant::now() >= self.deadline {
            Some(Stop::Deadline)
        } else if self.aborting.is_cancelled() {
            Some(Stop::Abort)
        } else {
            None
        }
    }

    /// Waits for `work`, unless it has to be broken off.
    pub(super) async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Result<T, Stop> {
        tokio::select! {
            biased;
            () = self.lease.lost() => Err(Stop::LeaseLost),
            () = self.cancel.cancelled() => Err(Stop::Cancel),
            done = work => Ok(done),
            () = tokio::time::sleep_until(self.deadline) => Err(Stop::Deadline),
            () = self.aborting.cancelled() => Err(Stop::Abort),
        }
    }

    /// Tells the loop what happened; and before, if the process drains, that its run goes back at the
    /// boundary, so that nothing is begun for which a drain would have to wait.
    pub(super) fn advance(&self, agent: &mut AgentLoop, input: Input) -> Result<Step, LoopError> {
        if self.draining.is_cancelled() {
            agent.give_back_at_boundary(RequeueReason::Drain);
        }
        agent.advance(input)
    }
}
