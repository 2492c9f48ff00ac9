//! Renewal: one write for all claims of the process, on a thread and a runtime of its own, so that no
//! tool that blocks and no busy runtime can starve it. Where it cannot be kept up, the executors
//! stop by themselves when their time is over.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hango_domain::run::{GiveBack, Lease, RequeueReason, WriteId};
use hango_ports::run_store::Held;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior};

use super::{Shared, supervise};
use crate::live;

/// The renewal of an engine.
pub(super) struct Renewal {
    /// Never sent to; gone when renewal is over.
    over: oneshot::Receiver<Infallible>,
}

impl Renewal {
    pub(super) fn start(shared: Arc<Shared>) -> std::io::Result<Self> {
        let (working, over) = oneshot::channel();
        let tasks = Arc::clone(&shared.tasks);
        tasks.spawn_apart(Box::pin(async move {
            supervise::kept("renewal", shared, renew_for_ever).await;
            drop(working);
        }))?;
        Ok(Self { over })
    }

    /// Waits for the end of the renewal, which comes when the engine stops.
    pub(super) async fn join(self) {
        // An error is the end.
        let Err(_) = self.over.await;
    }
}

async fn renew_for_ever(shared: Arc<Shared>) {
    let mut beat = tokio::time::interval(shared.settings.heartbeat);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut suspects = BTreeSet::new();
    loop {
        beat.tick().await;
        renew(&shared, &mut suspects).await;
    }
}

/// Renews all claims once. `suspects` are claims in force that nobody here executed the last time.
async fn renew(shared: &Shared, suspects: &mut BTreeSet<Lease>) {
    let Shared {
        parts,
        settings,
        leases,
        ..
    } = shared;
    let sent = Instant::now();
    let held = leases.all();
    let renewal = parts.runs.renew(parts.owner, held, settings.lease_ttl);
    // A beat that hangs must not hold up the next for longer than the leases last.
    let renewal = match tokio::time::timeout(settings.heartbeat, renewal).await {
        Ok(Ok(renewal)) => renewal,
        Ok(Err(error)) => {
            return tracing::warn!(
                error = &error as &dyn std::error::Error,
                "leases were not renewed"
            );
        }
        Err(_) => return tracing::warn!("leases were not renewed in time"),
    };
    for (held, standing) in renewal.renewed {
        leases.renewed(held, sent, settings.lease_ttl);
        if standing.cancel_requested {
            parts.signals.cancel_here(held.run);
        }
    }
    for held in renewal.lost {
        leases.lost(held);
    }
    let given_back = give_orphans_back(shared, renewal.orphans, suspects);
    // Nor must runs that nobody executes hold up the leases of those that are executed.
    if tokio::time::timeout(settings.heartbeat, given_back)
        .await
        .is_err()
    {
        tracing::warn!("runs that are held but not executed were not given back in time");
    }
}

/// Gives back claims whose answer was lost, or whose executor died. A claim that was being made during
/// this renewal looks the same, so only what was there the last time too is an orphan.
async fn give_orphans_back(shared: &Shared, found: Vec<Lease>, suspects: &mut BTreeSet<Lease>) {
    let unknown: BTreeSet<Lease> = found
        .into_iter()
        .filter(|lease| {
            !shared.leases.holds(Held {
                run: lease.run,
                attempt: lease.attempt,
            })
        })
        .collect();
    for lease in unknown.intersection(suspects) {
        tracing::warn!(
            "hango.run.id" = %lease.run,
            attempt = lease.attempt,
            "a run is held here but not executed; it is given back"
        );
        let change = GiveBack {
            lease: *lease,
            write: WriteId(shared.parts.ids.uuid()),
            reason: RequeueReason::Orphaned,
            delay: Duration::ZERO,
            failed: None,
            closing: None,
        };
        match shared.parts.runs.give_back(change).await {
            Ok(written) => {
                live::tell(&*shared.parts.sink, &written.events);
                shared.parts.signals.queued();
            }
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the run could not be given back; its lease will expire"
            ),
        }
    }
    *suspects = unknown;
}
