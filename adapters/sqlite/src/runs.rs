//! Runs: the port, method by method.
//!
//! [`table`] and [`journal`] have the statements on their tables, [`change`] makes one change of a run with all that belongs
//! to it, and the others are about when which change is made.

mod accept;
mod around;
mod change;
mod claim;
#[cfg(test)]
mod fence;
mod journal;
mod leases;
#[cfg(test)]
mod plans;
mod prune;
mod read;
mod table;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hango_domain::access::Visibility;
use hango_domain::event::Event;
use hango_domain::journal::ToolCall;
use hango_domain::run::{
    Answer, Boundary, Change, End, GiveBack, Lease, Record, Repair, Resume, Retry, Run,
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

use crate::writer::Urgency;
use crate::{SqliteStore, idempotency};

#[async_trait]
impl RunStore for SqliteStore {
    async fn accept(
        &self,
        new: NewRun,
        audit: NewAudit,
        once: Option<IdempotencyKey>,
    ) -> Result<Accepted, RunStoreError> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let now = clock.now();
                idempotency::begin::<RunStoreError>(conn, once.as_ref(), now).await?;
                let accepted = accept::accept(conn, new, audit, now).await?;
                idempotency::keep(conn, once.as_ref(), &accepted.run, now).await?;
                Ok(accepted)
            })
            .await
    }

    async fn find(&self, seen: Visibility, run: RunId) -> Result<Option<Run>, RunStoreError> {
        Ok(read::find(&self.readers, seen, run).await?)
    }

    async fn list(
        &self,
        seen: Visibility,
        filter: RunFilter,
        page: PageRequest,
    ) -> Result<Page<Run>, RunStoreError> {
        Ok(read::list(&self.readers, seen, &filter, page).await?)
    }

    async fn tool_calls(
        &self,
        seen: Visibility,
        run: RunId,
    ) -> Result<Option<Vec<ToolCall>>, RunStoreError> {
        if !read::is_seen(&self.readers, seen, run).await? {
            return Ok(None);
        }
        Ok(Some(journal::calls(&self.readers, run, None).await?))
    }

    async fn events(
        &self,
        seen: Visibility,
        run: RunId,
        after: u64,
        limit: u32,
    ) -> Result<Option<Vec<Event>>, RunStoreError> {
        if !read::is_seen(&self.readers, seen, run).await? {
            return Ok(None);
        }
        Ok(Some(read::events(&self.readers, run, after, limit).await?))
    }

    async fn story(&self, run: RunId) -> Result<Option<Story>, RunStoreError> {
        Ok(read::story(&self.readers, run).await?)
    }

    async fn situation(
        &self,
        seen: Visibility,
        run: RunId,
    ) -> Result<Option<Situation>, RunStoreError> {
        let now = self.clock.now();
        Ok(around::situation(&self.readers, seen, run, now).await?)
    }

    async fn census(&self, most_tenants: u32) -> Result<Census, RunStoreError> {
        Ok(around::census(&self.readers, most_tenants, self.clock.now()).await?)
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims, RunStoreError> {
        let (clock, aside) = (self.clock.clone(), Arc::clone(&self.aside));
        let taken = self
            .writer
            .write(Urgency::Normal, async move |conn| {
                claim::take(conn, &aside, request, clock.now()).await
            })
            .await?;
        // Nobody but the holder changes what follows, so the writer need not wait for it.
        let changed = taken.len();
        let mut claimed = Vec::with_capacity(changed);
        for taken in taken {
            match claim::with_context(&self.readers, taken).await {
                Ok(whole) => claimed.push(whole),
                // The others need not wait for it; a renewal finds that nobody executes it.
                Err(error) => tracing::warn!(%error, "a claimed run could not be read"),
            }
        }
        // Whoever has the writer has it alone: what is selected is changed.
        Ok(Claims::of(&request, changed, changed, claimed))
    }

    async fn renew(
        &self,
        owner: OwnerId,
        held: Vec<Held>,
        ttl: Duration,
    ) -> Result<Renewal, RunStoreError> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Urgent, async move |conn| {
                Ok(leases::renew(conn, owner, &held, ttl, clock.now()).await?)
            })
            .await
    }

    async fn cancels(&self, owner: OwnerId) -> Result<Vec<Lease>, RunStoreError> {
        Ok(leases::cancels(&self.readers, owner).await?)
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
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Urgent, async move |conn| {
                accept::request_cancel(conn, seen, run, &audit, clock.now()).await
            })
            .await
    }

    async fn reclaim(&self, request: ReclaimRequest) -> Result<Vec<Reclaimed>, RunStoreError> {
        let (clock, aside) = (self.clock.clone(), Arc::clone(&self.aside));
        self.writer
            .write(Urgency::Urgent, async move |conn| {
                leases::reclaim(conn, &aside, request, clock.now()).await
            })
            .await
    }

    async fn prune(&self, request: PruneRequest) -> Result<Pruned, RunStoreError> {
        let now = self.clock.now();
        Ok(prune::prune(&self.readers, &self.writer, request, now).await?)
    }
}

impl SqliteStore {
    /// A write on a run's behalf, by whoever says that he holds it.
    async fn fenced(&self, lease: Lease, change: Change) -> Result<Written, RunStoreError> {
        let clock = self.clock.clone();
        self.writer
            .write(Urgency::Normal, async move |conn| {
                let loaded = table::load(conn, lease.run).await?;
                let loaded = loaded.ok_or(RunStoreError::NotFound)?;
                let made = change::make(conn, loaded, change, clock.now()).await?;
                Ok(Written {
                    status: made.applied.run.state.status(),
                    standing: made.standing,
                    events: made.applied.events,
                })
            })
            .await
    }
}
