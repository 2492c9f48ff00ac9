//! How fast a server notices what happened to another one.

use std::time::Duration;

/// The settings that decide about recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// How long a claim lasts without renewal.
    pub(crate) lease: Duration,
    /// How often claims are renewed.
    pub(crate) heartbeat: Duration,
    /// How often claims that ran out are looked for.
    pub(crate) sweep: Duration,
    /// How often queued runs are looked for.
    pub(crate) poll: Duration,
}

impl Timing {
    /// The one of all scenarios that do not say otherwise.
    pub(crate) const SHORT: Self = Self {
        lease: Duration::from_secs(2),
        heartbeat: Duration::from_millis(600),
        sweep: Duration::from_millis(500),
        poll: Duration::from_millis(200),
    };

    /// The longest that a run may wait for another holder: the lease and two sweeps.
    pub(crate) fn takeover(&self) -> Duration {
        self.lease + 2 * self.sweep
    }

    /// As hango is told of it.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        [
            ("HANGO_RUN_LEASE_TTL", self.lease),
            ("HANGO_RUN_HEARTBEAT_INTERVAL", self.heartbeat),
            ("HANGO_RUN_RECLAIM_INTERVAL", self.sweep),
            ("HANGO_RUN_POLL_INTERVAL", self.poll),
        ]
        .map(|(name, time)| (name.to_owned(), format!("{}ms", time.as_millis())))
        .into()
    }
}
