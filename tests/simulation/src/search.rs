//! Trying many seeds, on several threads. Each seed has a runtime and a world of its own, so they do not
//! notice each other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::{Simulated, simulate};

/// So many histories that went wrong are enough.
const ENOUGH: usize = 10;

/// What came of a search.
#[derive(Debug)]
pub struct Found {
    /// How many seeds were tried.
    pub tried: u64,
    /// Histories that went wrong, by their seeds: the first few.
    pub wrong: Vec<Simulated>,
}

/// Tries `count` seeds beginning with `from`, so many at a time; ends early where enough went wrong.
#[must_use]
pub fn search(from: u64, count: u64, threads: usize) -> Found {
    let next = AtomicU64::new(0);
    let tried = AtomicU64::new(0);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= count {
                        return;
                    }
                    let simulated = simulate(from.wrapping_add(seed), false);
                    tried.fetch_add(1, Ordering::SeqCst);
                    let mut wrong = wrong.lock().unwrap_or_else(PoisonError::into_inner);
                    if !simulated.wrong.is_empty() {
                        wrong.push(simulated);
                    }
                    if wrong.len() >= ENOUGH {
                        return;
                    }
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
    wrong.sort_by_key(|it| it.seed);
    Found {
        tried: tried.into_inner(),
        wrong,
    }
}
