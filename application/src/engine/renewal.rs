//! Renewal: one write for all claims of the process, on a thread and a runtime of its own, so that no
//! tool that blocks and no busy runtime can starve it. Where it cannot be kept up, the executors
//! stop by themselves when their time is over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hango_domain::run::{GiveBack, Lease, RequeueReason, WriteId};
use hango_ports::run_store::Held;
use hango_ports::telemetry::ErrorType;
use tokio::time::{Instant, MissedTickBehavior};

use super::tasks::Over;
use super::{Shared, supervise};
use crate::live;
use crate::story::{Abandoned, Taken};

/// Starts the renewal of an engine; what is returned waits for its end, which comes when the engine stops.
pub(super) fn start(shared: &Arc<Shared>) -> std::io::Result<Over> {
    let work = supervise::kept("renewal", Arc::clone(shared), renew_for_ever);
    shared.tasks.spawn_apart(Box::pin(work))
}

async fn renew_for_ever(shared: Arc<Shared>) {
    let mut beat = tokio::time::interval(shared.settings.heartbeat);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut suspects = Suspects::new();
    loop {
        beat.tick().await;
        renew(&shared, &mut suspects).await;
    }
}

/// Claims in force that nobody here executes, and which asking for claims was the last when that was
/// found: if they are its, they will be executed when it is over.
type Suspects = BTreeMap<Lease, u64>;

/// Renews all claims once. `suspects` are those of the last time.
async fn renew(shared: &Shared, suspects: &mut Suspects) {
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

/// Gives back claims whose answer was lost, or whose executor died. A claim that is being made looks the
/// same, however long its answer takes, so nobody is an orphan before the claims are over that may have
/// brought him.
async fn give_orphans_back(shared: &Shared, found: Vec<Lease>, suspects: &mut Suspects) {
    let leases = &shared.leases;
    let last = leases.last_claiming();
    let since = |lease: Lease| (lease, suspects.get(&lease).copied().unwrap_or(last));
    let found: Suspects = found.into_iter().map(since).collect();
    let (mut orphans, mut unknown) = (Vec::new(), Suspects::new());
    for (lease, claiming) in found {
        // Asked in this order: what is over has let go of nothing that is not held.
        let is_over = leases.is_over(claiming);
        let held = Held {
            run: lease.run,
            attempt: lease.attempt,
        };
        if leases.holds(held) {
            continue;
        }
        unknown.insert(lease, claiming);
        if is_over {
            orphans.push(lease);
        }
    }
    *suspects = unknown;
    for lease in orphans {
        tracing::warn!(
            "hango.run.id" = %lease.run,
            attempt = lease.attempt,
            "a run is held here but not executed; it is given back"
        );
        let change = GiveBack {
            lease,
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
                let given_back_at = written.events.last().map(|event| event.at);
                let taken = Taken {
                    run: lease.run,
                    abandoned: given_back_at.map(|expired_at| Abandoned {
                        attempt: lease.attempt,
                        expired_at,
                        error: ErrorType::LEASE_LOST,
                    }),
                    status: written.status,
                };
                shared.story_teller().tell_aside(vec![taken]);
            }
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the run could not be given back; its lease will expire"
            ),
        }
    }
}
