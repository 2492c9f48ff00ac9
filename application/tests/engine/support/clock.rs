//! The store's clock of the tests.

use std::sync::Arc;

use hango_conformance::ManualClock;
use hango_domain::Timestamp;
use hango_ports::Clock;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// Goes with the clock of the test's runtime, whichever thread asks, and jumps when the manual clock
/// is moved.
pub(crate) struct StoreClock {
    jumps: Arc<ManualClock>,
    runtime: Handle,
    start: Instant,
}

impl StoreClock {
    /// A clock of the present runtime.
    pub(crate) fn new(jumps: Arc<ManualClock>) -> Self {
        Self {
            jumps,
            runtime: Handle::current(),
            start: Instant::now(),
        }
    }
}

impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        let _here = self.runtime.enter();
        self.jumps.now().plus(self.start.elapsed())
    }
}
