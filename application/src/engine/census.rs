//! Telling operators how much there is to do, and how much of this process does it.
//!
//! Every process tells the same of the store, which has one truth. Nothing waits for this, and it waits for
//! the store no longer than until the next time.

use std::sync::Arc;
use std::time::Duration;

use hango_ports::telemetry::Observation;
use tokio::time::{MissedTickBehavior, timeout};

use super::Shared;

/// How often it is told.
const EVERY: Duration = Duration::from_secs(15);

/// The most tenants that are named: every one is a series of its own to whoever keeps the figures.
const MOST_TENANTS: u32 = 50;

/// Tells at start-up, then on a timer, until the engine stops. While the store fails, only of the workers.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut timer = tokio::time::interval(EVERY);
    timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let telemetry = &shared.parts.telemetry;
    loop {
        timer.tick().await;
        telemetry.observe(Observation::Workers {
            busy: shared.leases.count(),
            limit: shared.settings.workers,
        });
        match timeout(EVERY, shared.parts.runs.census(MOST_TENANTS)).await {
            Ok(Ok(census)) => telemetry.observe(Observation::Census(census)),
            Ok(Err(error)) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "what waits and what runs was not counted"
            ),
            Err(_) => tracing::warn!("what waits and what runs was not counted in time"),
        }
    }
}
