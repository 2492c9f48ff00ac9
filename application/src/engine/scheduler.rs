//! Claiming: a permit first, then no more runs than there are permits.
//!
//! Queued runs are found by the poll; hints and freed slots only make it faster. A hint that comes while
//! there is no permit, and what a claim may have left, are for other processes: they are told.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hango_domain::memory::MEMORY_VERSION;
use hango_domain::queue::ClaimLimits;
use hango_ports::run_store::{ClaimRequest, Claims};
use hango_ports::telemetry::Observation;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::leases::LeaseGuard;
use super::{ASK_AGAIN, Shared, executor, sweep};

/// How many runs one claim takes at most.
const BATCH: usize = 32;

/// Claims and starts runs until the engine drains.
pub(super) async fn run(shared: Arc<Shared>) {
    take_back_what_is_left(&shared).await;
    let signals = &shared.parts.signals;
    let _claiming = signals.claiming();
    // Whether the peers know that there is more than this process has slots for. They claim until it is
    // gone, so they are told again only of what came since, or when a claim had found nothing left.
    let mut told = false;
    loop {
        let permits = tokio::select! {
            biased;
            () = shared.draining.cancelled() => return,
            permits = take_permits(&shared) => permits,
            never = signals.pass_on() => match never {},
        };
        // A drain waits for a claim that is under way, and its runs are given back; so this comes
        // before the last look at whether there is one.
        let claiming = shared.executors.token();
        if shared.draining.is_cancelled() {
            return;
        }
        told &= !signals.take_news();
        let asked = permits.len();
        let got = claim(&shared, permits).await;
        drop(claiming);
        let pause = match got {
            Some(got) if got == asked => {
                if !told && shared.permits.available_permits() == 0 {
                    signals.leave_to_peers();
                    told = true;
                }
                continue;
            }
            Some(_) => shared.settings.poll_interval,
            None => shared.settings.poll_interval.min(ASK_AGAIN),
        };
        told = false;
        tokio::select! {
            biased;
            () = shared.draining.cancelled() => return,
            () = signals.next_queued() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// At start-up an engine that is alone with its store takes every running run back; once, since what
/// runs later is its own.
async fn take_back_what_is_left(shared: &Shared) {
    if !shared.settings.exclusive || shared.took_back.load(Ordering::SeqCst) {
        return;
    }
    while !sweep::reclaim(shared, false).await {
        tokio::time::sleep(shared.settings.poll_interval.min(ASK_AGAIN)).await;
    }
    shared.took_back.store(true, Ordering::SeqCst);
}

/// Waits for one permit, and takes the others that are free.
async fn take_permits(shared: &Shared) -> Vec<OwnedSemaphorePermit> {
    let mut permits = Vec::new();
    // The semaphore is never closed.
    if let Ok(first) = Arc::clone(&shared.permits).acquire_owned().await {
        permits.push(first);
    }
    while permits.len() < BATCH {
        match Arc::clone(&shared.permits).try_acquire_owned() {
            Ok(permit) => permits.push(permit),
            Err(_) => break,
        }
    }
    permits
}

/// Claims as many runs as there are permits and starts each; how many there were, or `None` if the store
/// did not answer.
async fn claim(shared: &Arc<Shared>, mut permits: Vec<OwnedSemaphorePermit>) -> Option<usize> {
    let settings = &shared.settings;
    let request = ClaimRequest {
        owner: shared.parts.owner,
        ttl: settings.lease_ttl,
        only: None,
        limits: ClaimLimits {
            runs: u32::try_from(permits.len()).unwrap_or(u32::MAX),
            running_per_tenant: settings.running_per_tenant,
            memory_version: MEMORY_VERSION,
        },
    };
    // Over when what was claimed is held.
    let _claiming = shared.leases.claiming();
    let sent = Instant::now();
    let Claims { won, lost } = match shared.parts.runs.claim(request).await {
        Ok(claims) => claims,
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "nothing could be claimed"
            );
            return None;
        }
    };
    for _ in 0..lost {
        let owner = shared.parts.owner;
        shared
            .parts
            .telemetry
            .observe(Observation::ClaimLost { owner });
    }
    let got = won.len();
    for claimed in won {
        let Some(permit) = permits.pop() else {
            // The store gave more than was asked for; what is not held here is given back.
            break;
        };
        let since = claimed.run.started_at.unwrap_or(claimed.run.created_at);
        shared.parts.telemetry.observe(Observation::ClaimWon {
            lease: claimed.lease,
            waited: since.since(claimed.run.created_at),
        });
        let guard = LeaseGuard::hold(shared, claimed.lease, sent, settings.lease_ttl);
        let task = executor::run(Arc::clone(shared), claimed, guard, permit);
        shared.executors.spawn(task);
    }
    Some(got)
}
