//! Removing what is old, step by step: see [`hango_domain::retention`]. Runs and sessions go only where an
//! operator wants that, answers kept for idempotency keys anywhere.
//!
//! Every process does it, and none waits for another. A step is short, and a pause follows, at least as
//! long as it took: whatever else the store has to do comes first. What is left at a drain is left to the
//! others, or to the next start.

use std::sync::Arc;
use std::time::Duration;

use hango_domain::retention::Retention;
use hango_ports::run_store::{PruneRequest, Pruned};
use tokio::time::{Instant, MissedTickBehavior};

use super::Shared;

/// How many rows go in one step, about: some milliseconds' work.
const ROWS: u32 = 1000;

/// The shortest pause between two steps.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest time between two looks.
const LOOK: Duration = Duration::from_mins(10);

/// Looks for what is old at start-up, then on a timer, until the engine drains.
pub(super) async fn run(shared: Arc<Shared>, retention: Option<Retention>) {
    let looking = async {
        let mut timer = tokio::time::interval(look_every(retention));
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            timer.tick().await;
            remove_all(&shared, retention).await;
        }
    };
    tokio::select! {
        biased;
        () = shared.draining.cancelled() => {}
        () = looking => {}
    }
}

/// Nothing is kept for much longer than it has to be.
fn look_every(retention: Option<Retention>) -> Duration {
    retention.map_or(LOOK, |it| (it.span() / 20).min(LOOK))
}

/// Removes what is old, all of it.
async fn remove_all(shared: &Shared, retention: Option<Retention>) {
    let request = PruneRequest {
        retention,
        rows: ROWS,
    };
    let mut total = Pruned::default();
    loop {
        let begun = Instant::now();
        match shared.parts.runs.prune(request).await {
            Ok(pruned) if pruned == Pruned::default() => break,
            Ok(pruned) => {
                total.answers += pruned.answers;
                total.runs += pruned.runs;
                total.sessions += pruned.sessions;
            }
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "what is old was not removed; it will be looked for again"
                );
                break;
            }
        }
        tokio::time::sleep(begun.elapsed().max(PAUSE)).await;
    }
    if total != Pruned::default() {
        let Pruned {
            answers,
            runs,
            sessions,
        } = total;
        tracing::info!(answers, runs, sessions, "what was old was removed");
    }
}
