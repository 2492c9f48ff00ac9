//! Runs: the port, method by method.
//!
//! A change is decided by the domain upon a row as it is, and made by one statement that compares it
//! ([`store`]). What else there is, is about when which change is made: by a holder ([`fenced`]), by a
//! client ([`take_in`], [`accept`], [`cancel`]), by a claimer ([`claim`]), by the sweep ([`reclaim`]).
//! What is old is removed by [`prune`].
//!
//! Rows are locked in this order, so that nobody waits in a circle: tenants, runs that are running,
//! sessions, runs that wait. (A holder writes his run and then the session; whoever takes a run off the
//! queue has the session first.) A claim without a cap and a sweep wait for no lock.

mod accept;
mod around;
mod cancel;
mod change;
mod changed;
mod claim;
mod context;
mod documents;
mod eligible;
mod fenced;
mod held;
mod journal;
mod load;
mod prune;
mod read;
mod reclaim;
mod renew;
mod store;
mod story;
mod take_in;
#[cfg(test)]
mod tests;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use hango_domain::access::Visibility;
use hango_domain::event::Event;
use hango_domain::journal::ToolCall;
use hango_domain::run::{
    Answer, Boundary, Change, End, GiveBack, Lease, Record, Repair, Resume, Retry, Run,
};
use hango_domain::{OwnerId, RunId};
use hango_ports::audit_store::NewAudit;
use hango_ports::idempotency::{IdempotencyKey, Repeated};
use hango_ports::page::{Page, PageRequest};
use hango_ports::run_store::{
    Accepted, Cancelled, Census, ClaimRequest, Claims, Held, NewRun, PruneRequest, Pruned,
    ReclaimRequest, Reclaimed, Renewal, RunFilter, RunStore, RunStoreError, Situation, Story,
    Written,
};
use sqlx::PgConnection;
use thiserror::Error;

pub(crate) use held::HeldRuns;
pub(crate) use renew::Outcome;

use crate::PostgresStore;
use crate::clock::StoreClock;
use crate::error::Error;
use fenced::{TRIES, contended};

#[async_trait]
impl RunStore for PostgresStore {
    /// With a key, all of it is one transaction, which is not repeated where its outcome is unknown: the
    /// caller does that.
    async fn accept(
        &self,
        new: NewRun,
        audit: NewAudit,
        once: Option<IdempotencyKey>,
    ) -> Result<Accepted, RunStoreError> {
        let (new, audit, clock) = (Arc::new(new), Arc::new(audit), self.clock.clone());
        if let Some(key) = once {
            let key = Arc::new(key);
            let accepted = self.attempted(move |conn, clock| {
                let (new, audit, key) = (Arc::clone(&new), Arc::clone(&audit), Arc::clone(&key));
                Box::pin(async move { accept::once(conn, &clock, &key, &new, &audit).await })
            });
            return accepted.await;
        }
        let taken_in = self.pool.repeat({
            let (new, audit) = (Arc::clone(&new), Arc::clone(&audit));
            move |conn| {
                let (new, audit, clock) = (Arc::clone(&new), Arc::clone(&audit), clock.clone());
                Box::pin(async move { take_in::take_in(conn, &clock, &new, &audit).await })
            }
        });
        let taken_in: Result<Option<Accepted>, Error> = taken_in.await;
        if let Some(accepted) = taken_in? {
            return Ok(accepted);
        }
        self.attempted(move |conn, clock| {
            let (new, audit) = (Arc::clone(&new), Arc::clone(&audit));
            Box::pin(async move { accept::accept(conn, &clock, &new, &audit).await })
        })
        .await
    }

    async fn find(&self, seen: Visibility, run: RunId) -> Result<Option<Run>, RunStoreError> {
        self.pool
            .read(move |conn| Box::pin(async move { Ok(read::find(conn, seen, run).await?) }))
            .await
    }

    async fn list(
        &self,
        seen: Visibility,
        filter: RunFilter,
        page: PageRequest,
    ) -> Result<Page<Run>, RunStoreError> {
        let filter = Arc::new(filter);
        self.pool
            .read(move |conn| {
                let filter = Arc::clone(&filter);
                Box::pin(async move { Ok(read::list(conn, seen, &filter, page).await?) })
            })
            .await
    }

    async fn tool_calls(
        &self,
        seen: Visibility,
        run: RunId,
    ) -> Result<Option<Vec<ToolCall>>, RunStoreError> {
        self.pool
            .read(move |conn| Box::pin(async move { Ok(read::tool_calls(conn, seen, run).await?) }))
            .await
    }

    async fn events(
        &self,
        seen: Visibility,
        run: RunId,
        after: u64,
        limit: u32,
    ) -> Result<Option<Vec<Event>>, RunStoreError> {
        self.pool
            .read(move |conn| {
                Box::pin(async move { Ok(read::events(conn, seen, run, after, limit).await?) })
            })
            .await
    }

    async fn story(&self, run: RunId) -> Result<Option<Story>, RunStoreError> {
        self.pool
            .read(move |conn| Box::pin(async move { Ok(story::story(conn, run).await?) }))
            .await
    }

    async fn situation(
        &self,
        seen: Visibility,
        run: RunId,
    ) -> Result<Option<Situation>, RunStoreError> {
        let clock = self.clock.clone();
        self.pool
            .read(move |conn| {
                let clock = clock.clone();
                Box::pin(async move { Ok(around::situation(conn, &clock, seen, run).await?) })
            })
            .await
    }

    async fn census(&self, most_tenants: u32) -> Result<Census, RunStoreError> {
        let clock = self.clock.clone();
        self.pool
            .read(move |conn| {
                let clock = clock.clone();
                Box::pin(async move { Ok(around::census(conn, &clock, most_tenants).await?) })
            })
            .await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims, RunStoreError> {
        let (clock, aside) = (self.clock.clone(), Arc::clone(&self.aside));
        let taken = self.holders.transact(move |conn| {
            let (clock, aside) = (clock.clone(), Arc::clone(&aside));
            Box::pin(async move { claim::take(conn, &clock, &aside, &request).await })
        });
        let taken: Result<(usize, Vec<claim::Taken>), Error> = taken.await;
        let (selected, taken) = match taken {
            // The database's last word on promise 5: somebody was faster.
            Err(error) if error.constraint() == Some("running_runs_pkey") => (1, Vec::new()),
            taken => taken?,
        };
        for remembered in taken.iter().filter_map(claim::Taken::to_remember) {
            self.held.keep(remembered);
        }
        let changed = taken.len();
        let won = claim::complete(&self.holders, taken).await;
        Ok(Claims::of(&request, selected, changed, won))
    }

    async fn renew(
        &self,
        owner: OwnerId,
        held: Vec<Held>,
        ttl: Duration,
    ) -> Result<Renewal, RunStoreError> {
        let clock = self.clock.clone();
        let renewing = Arc::new(renew::Renewing::new(owner, held, ttl));
        let renewal = self.lane.run(move |conn| {
            let (clock, renewing) = (clock.clone(), Arc::clone(&renewing));
            Box::pin(async move { renewing.renew(conn, &clock).await })
        });
        let renewal: Result<Renewal, Error> = renewal.await;
        let renewal = renewal?;
        self.held.retain(owner, &renew::in_force(owner, &renewal));
        Ok(renewal)
    }

    async fn cancels(&self, owner: OwnerId) -> Result<Vec<Lease>, RunStoreError> {
        self.lane
            .run(move |conn| Box::pin(async move { Ok(renew::cancels(conn, owner).await?) }))
            .await
    }

    async fn repair(&self, change: Repair) -> Result<Written, RunStoreError> {
        self.fenced(change.lease, Change::Repair(change)).await
    }

    async fn answer(&self, change: Answer) -> Result<Written, RunStoreError> {
        self.fenced(change.lease, Change::Answer(change)).await
    }

    async fn resume(&self, change: Resume) -> Result<Written, RunStoreError> {
        self.fenced(change.lease, Change::Resume(change)).await
    }

    async fn record(&self, change: Record) -> Result<Written, RunStoreError> {
        self.fenced(change.lease, Change::Record(change)).await
    }

    async fn complete_turn(&self, change: Boundary) -> Result<Written, RunStoreError> {
        self.fenced(change.lease, Change::CompleteTurn(change))
            .await
    }

    async fn retry(&self, change: Retry) -> Result<Written, RunStoreError> {
        self.fenced(change.lease, Change::Retry(change)).await
    }

    async fn give_back(&self, change: GiveBack) -> Result<Written, RunStoreError> {
        self.fenced(change.lease, Change::GiveBack(change)).await
    }

    async fn finish(&self, change: End) -> Result<Written, RunStoreError> {
        self.fenced(change.lease, Change::Finish(change)).await
    }

    async fn request_cancel(
        &self,
        seen: Visibility,
        run: RunId,
        audit: NewAudit,
    ) -> Result<Cancelled, RunStoreError> {
        let (audit, clock) = (Arc::new(audit), self.clock.clone());
        let asked = self.pool.repeat({
            let audit = Arc::clone(&audit);
            move |conn| {
                let (audit, clock) = (Arc::clone(&audit), clock.clone());
                Box::pin(async move { cancel::ask(conn, &clock, seen, run, &audit).await })
            }
        });
        let asked: Result<Option<Cancelled>, RunStoreError> = asked.await;
        if let Some(cancelled) = asked? {
            return Ok(cancelled);
        }
        self.attempted(move |conn, clock| {
            let audit = Arc::clone(&audit);
            Box::pin(async move { cancel::request_cancel(conn, &clock, seen, run, &audit).await })
        })
        .await
    }

    async fn reclaim(&self, request: ReclaimRequest) -> Result<Vec<Reclaimed>, RunStoreError> {
        let (clock, aside) = (self.clock.clone(), Arc::clone(&self.aside));
        self.lane
            .transact(move |conn| {
                let (clock, aside) = (clock.clone(), Arc::clone(&aside));
                Box::pin(async move { reclaim::reclaim(conn, &clock, &aside, request).await })
            })
            .await
    }

    async fn prune(&self, request: PruneRequest) -> Result<Pruned, RunStoreError> {
        let clock = self.clock.clone();
        let pruned = self.pool.transact(move |conn| {
            let clock = clock.clone();
            Box::pin(async move { prune::prune(conn, &clock, request).await })
        });
        let pruned: Result<Pruned, Error> = pruned.await;
        Ok(pruned?)
    }
}

/// Why a try of a change was undone.
#[derive(Debug, Error)]
enum Undone {
    /// Something is not as it was when it was read; the next try sees how it is.
    #[error("somebody was in the way")]
    InTheWay,
    /// It cannot be made.
    #[error(transparent)]
    For(#[from] RunStoreError),
}

impl From<Error> for Undone {
    fn from(error: Error) -> Self {
        Self::For(error.into())
    }
}

impl From<Repeated> for Undone {
    fn from(repeated: Repeated) -> Self {
        Self::For(repeated.into())
    }
}

impl PostgresStore {
    /// Tries a change in one transaction after the other, until nobody is in the way.
    async fn attempted<T, F>(&self, change: F) -> Result<T, RunStoreError>
    where
        T: Send + 'static,
        F: for<'c> Fn(&'c mut PgConnection, StoreClock) -> BoxFuture<'c, Result<T, Undone>>
            + Send
            + Sync
            + 'static,
    {
        let change = Arc::new(change);
        for _ in 0..TRIES {
            let (change, clock) = (Arc::clone(&change), self.clock.clone());
            let made = self.pool.transact(move |conn| change(conn, clock.clone()));
            match made.await {
                Ok(made) => return Ok(made),
                Err(Undone::InTheWay) => {}
                Err(Undone::For(error)) => return Err(error),
            }
        }
        Err(contended())
    }
}
