//! How much of the machine is there for a scenario. Promises about time hold on a machine that has time: where
//! others take it, times are told and not judged.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// How much a busy thread has to get of a core, half of the time at least.
const ENOUGH: f64 = 0.15;

/// How much it has to get at the worst of times, which are so many looks long.
const AT_WORST: f64 = 0.1;
const MOMENT: u16 = 6;

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
        let mut shares = self.shares();
        shares.sort_by(f64::total_cmp);
        shares.get(shares.len() / 2).copied().unwrap_or(1.0)
    }

    /// What it got in the worst moment that is long enough for a lease to run out.
    fn worst(&self) -> f64 {
        let shares = self.shares();
        let moments = shares.windows(MOMENT.into());
        let means = moments.map(|moment| moment.iter().sum::<f64>() / f64::from(MOMENT));
        means.fold(1.0, f64::min)
    }

    /// Whether that is enough to judge times.
    pub(crate) fn is_enough(&self) -> bool {
        self.share() >= ENOUGH && self.worst() >= AT_WORST
    }

    fn shares(&self) -> Vec<f64> {
        let shares = self.shares.lock();
        shares.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Display for Pulse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (share, worst) = (self.share(), self.worst());
        write!(
            f,
            "a busy thread got {share:.2} of a core, {worst:.2} at worst"
        )
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
