//! Fenced writes of one execution: with the memory where it changed, repeated while their outcome is
//! unknown, and never begun under a lease that may be lost.

use std::pin::pin;
use std::time::Duration;

use hango_domain::memory::RunMemory;
use hango_domain::run::Change;
use hango_ports::run_store::{RunStoreError, Written};
use hango_ports::store::StoreFailure;

use super::driver::Driver;
use super::options::{Abandoned, RunOptions};
use crate::live;

/// The waits between repeats of a write whose outcome is unknown.
const FIRST_REPEAT: Duration = Duration::from_millis(50);
const LAST_REPEAT: Duration = Duration::from_secs(1);

impl Driver<'_> {
    /// Makes a change durable, and tells what it says to whoever wants to know.
    pub(super) async fn save_told(
        &self,
        change: Change,
        options: &RunOptions<'_>,
    ) -> Result<Written, Abandoned> {
        let Some(account) = &self.account else {
            return self.save(change, options).await;
        };
        let saving = account.saving(&change);
        let written = self.save(change, options).await?;
        account.saved(saving, &written);
        Ok(written)
    }

    /// Makes a change durable. While its outcome is unknown the very same write is repeated, for as
    /// long as the lease may be trusted.
    async fn save(&self, change: Change, options: &RunOptions<'_>) -> Result<Written, Abandoned> {
        let mut wait = FIRST_REPEAT;
        loop {
            let mut written = pin!(self.write(change.clone()));
            let outcome = tokio::select! {
                biased;
                outcome = &mut written => outcome?,
                () = options.lease.lost() => {
                    let answer = tokio::time::timeout(options.lease.last_answer(), written).await;
                    answer.map_err(|_| Abandoned::LeaseLost)??
                }
            };
            match outcome {
                Ok(written) => {
                    live::tell(self.sink, &written.events);
                    return Ok(written);
                }
                Err(RunStoreError::Failure(failure @ StoreFailure::Corrupt { .. })) => {
                    return Err(Abandoned::Unreadable(failure));
                }
                Err(RunStoreError::Failure(
                    failure @ (StoreFailure::OutOfSpace(_) | StoreFailure::Unavailable(_)),
                )) => {
                    tracing::warn!(
                        error = &failure as &dyn std::error::Error,
                        "a write did not succeed; it is repeated while the lease holds"
                    );
                }
                Err(
                    refused @ (RunStoreError::Refused(_)
                    | RunStoreError::NotFound
                    | RunStoreError::AgentArchived
                    | RunStoreError::Line(_)
                    | RunStoreError::Repeated(_)
                    | RunStoreError::Failure(StoreFailure::ActorRefused)),
                ) => {
                    tracing::warn!(
                        error = &refused as &dyn std::error::Error,
                        "a write was refused; the run is not executed here any more"
                    );
                    return Err(Abandoned::LeaseLost);
                }
            }
            tokio::select! {
                biased;
                () = options.lease.lost() => return Err(Abandoned::LeaseLost),
                () = tokio::time::sleep(wait) => {}
            }
            wait = (wait * 2).min(LAST_REPEAT);
        }
    }

    async fn write(&self, change: Change) -> Result<Result<Written, RunStoreError>, Abandoned> {
        let kind = change.kind();
        Ok(match change {
            Change::Repair(change) => self.runs.repair(change).await,
            Change::Answer(change) => self.runs.answer(change).await,
            Change::Resume(change) => self.runs.resume(change).await,
            Change::Record(change) => self.runs.record(change).await,
            Change::CompleteTurn(change) => self.runs.complete_turn(change).await,
            Change::Retry(change) => self.runs.retry(change).await,
            Change::GiveBack(change) => self.runs.give_back(change).await,
            Change::Finish(change) => self.runs.finish(change).await,
            Change::Claim { .. }
            | Change::Renew { .. }
            | Change::RequestCancel { .. }
            | Change::Reclaim(_) => return Err(Abandoned::NotTheHolders(kind)),
        })
    }

    /// Puts the memory into the writes that carry it, where it changed.
    pub(super) fn with_memory(
        &self,
        change: Change,
        memory: &mut RunMemory,
        saved: &RunMemory,
    ) -> Change {
        match change {
            Change::CompleteTurn(mut boundary) => {
                boundary.memory = (memory != saved).then(|| memory.to_stored());
                boundary.todos = (memory.todos != saved.todos).then(|| memory.todos.clone());
                Change::CompleteTurn(boundary)
            }
            Change::Finish(mut end) => {
                self.chain.after_run(memory);
                end.memory = (memory != saved).then(|| memory.to_stored());
                end.todos = (memory.todos != saved.todos).then(|| memory.todos.clone());
                Change::Finish(end)
            }
            other => other,
        }
    }
}

/// Whether the memory is on record once this change is made.
pub(super) const fn carries_memory(change: &Change) -> bool {
    matches!(change, Change::CompleteTurn(_) | Change::Finish(_))
}
