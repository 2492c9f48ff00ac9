//! Looking after what nobody else reports: runs whose holders fell silent, and cancels whose hint was
//! lost.

use std::sync::Arc;

use hango_ports::run_store::ReclaimRequest;
use hango_ports::telemetry::{ErrorType, Observation};
use tokio::time::MissedTickBehavior;

use super::{ASK_AGAIN, Shared};
use crate::{live, story};

/// How many runs one statement takes back: a storm of expired leases is worked off in pieces.
const BATCH: u32 = 100;

/// Takes back at start-up, then on a timer. At start-up an engine that is alone with its store takes
/// back every running run at once, and waits for no lease.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut timer = tokio::time::interval(shared.settings.reclaim_interval);
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        timer.tick().await;
        while !reclaim(&shared, true).await {
            tokio::time::sleep(shared.settings.reclaim_interval.min(ASK_AGAIN)).await;
        }
    }
}

/// Takes back what may be taken, all of it; whether the store answered.
pub(super) async fn reclaim(shared: &Shared, expired_only: bool) -> bool {
    let request = ReclaimRequest {
        limit: BATCH,
        max_stalled: shared.settings.max_stalled,
        expired_only,
    };
    loop {
        let taken = match shared.parts.runs.reclaim(request).await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "the sweep failed");
                return false;
            }
        };
        // One that cannot be read is left out, so only an empty piece is the last.
        if taken.is_empty() {
            return true;
        }
        shared.parts.signals.queued();
        let mut stories = Vec::with_capacity(taken.len());
        for run in taken {
            shared.parts.telemetry.observe(Observation::Reclaimed {
                previous: run.previous,
                resume_turn: run.resume_turn,
                status: run.status,
            });
            live::tell(&*shared.parts.sink, &run.events);
            let taken_at = run.events.last().map(|event| event.at);
            let abandoned = story::Abandoned {
                attempt: run.previous.attempt,
                expired_at: taken_at.unwrap_or(run.expired_at).min(run.expired_at),
                error: ErrorType::WORKER_LOST,
            };
            stories.push(story::Taken {
                run: run.previous.run,
                abandoned: Some(abandoned),
                status: run.status,
            });
        }
        shared.story_teller().tell_aside(stories);
    }
}

/// Ends the execution of runs here whose end was asked for elsewhere.
pub(super) async fn poll_cancels(shared: Arc<Shared>) {
    let mut timer = tokio::time::interval(shared.settings.poll_interval);
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            _ = timer.tick() => {}
            () = shared.parts.signals.cancels_missed() => {}
        }
        if shared.executors.is_empty() {
            continue;
        }
        match shared.parts.runs.cancels(shared.parts.owner).await {
            Ok(cancels) => {
                for lease in cancels {
                    shared.parts.signals.cancel_here(lease.run);
                }
            }
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the poll for cancels failed"
            ),
        }
    }
}
