//! What was told and never arrived, by why.

use std::sync::atomic::{AtomicU64, Ordering};

/// Why something was dropped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DropReason {
    /// Too much was waiting already.
    QueueFull,
    /// The collector did not take it.
    ExportFailed,
    /// It came too late, or was still waiting at the end.
    Shutdown,
}

impl DropReason {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::QueueFull, Self::ExportFailed, Self::Shutdown];

    /// The word by which it is counted.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::ExportFailed => "export_failed",
            Self::Shutdown => "shutdown",
        }
    }
}

/// How much of one signal was dropped.
#[derive(Debug, Default)]
pub struct Dropped {
    queue_full: AtomicU64,
    export_failed: AtomicU64,
    shutdown: AtomicU64,
}

impl Dropped {
    /// How many items for that reason.
    #[must_use]
    pub fn count(&self, reason: DropReason) -> u64 {
        self.of(reason).load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, reason: DropReason, items: u64) {
        self.of(reason).fetch_add(items, Ordering::Relaxed);
    }

    const fn of(&self, reason: DropReason) -> &AtomicU64 {
        match reason {
            DropReason::QueueFull => &self.queue_full,
            DropReason::ExportFailed => &self.export_failed,
            DropReason::Shutdown => &self.shutdown,
        }
    }
}
