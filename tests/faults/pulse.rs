//! How much of the machine is there for a scenario. Promises about time hold on a machine that has time: where
//! others take it, times are told and not judged.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// How much a busy thread has to get of a core, half of the time at least.
const ENOUGH: f64 = 0.15;

/// How long it is busy, and how often.
const BUSY: Duration = Duration::from_millis(12);
const EVERY: Duration = Duration::from_millis(300);

/// A thread that is busy now and then. Dropping it ends it.
pub(crate) struct Pulse {
    shares: Arc<Mutex<Vec<f64>>>,
    stop: Arc<AtomicBool>,
}

impl Pulse {
    /// Starts to measure.
    pub(crate) fn start() -> Self {
        let pulse = Self {
            shares: Arc::default(),
            stop: Arc::default(),
        };
        let (shares, stop) = (Arc::clone(&pulse.shares), Arc::clone(&pulse.stop));
        thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                thread::sleep(EVERY);
                let share = share();
                let mut shares = shares.lock().unwrap_or_else(PoisonError::into_inner);
                shares.push(share);
            }
        });
        pulse
    }

    /// What a busy thread got of a core, half of the time at least.
    pub(crate) fn share(&self) -> f64 {
        let shares = self.shares.lock();
        let mut shares = shares.unwrap_or_else(PoisonError::into_inner).clone();
        shares.sort_by(f64::total_cmp);
        shares.get(shares.len() / 2).copied().unwrap_or(1.0)
    }

    /// Whether that is enough to judge times.
    pub(crate) fn is_enough(&self) -> bool {
        self.share() >= ENOUGH
    }
}

/// How many scenarios a machine has time for, judged by what it has now.
pub(crate) async fn jobs() -> usize {
    const LOOKS: Duration = Duration::from_secs(2);
    let pulse = Pulse::start();
    tokio::time::sleep(LOOKS).await;
    match pulse.share() {
        0.7.. => 3,
        0.4..0.7 => 2,
        _ => 1,
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

/// Works for a while; which share of that time was on a core.
fn share() -> f64 {
    let (begun, worked) = (Instant::now(), of_this_thread());
    while of_this_thread().saturating_sub(worked) < BUSY {
        std::hint::spin_loop();
    }
    BUSY.as_secs_f64() / begun.elapsed().as_secs_f64()
}

/// How long this thread was on a core.
fn of_this_thread() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}
