//! Chance, all of it out of the seed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// One stream of chance. Who draws from it does so in an order that the seed decides too.
#[derive(Clone)]
pub(crate) struct Dice(Arc<Mutex<StdRng>>);

impl Dice {
    /// The stream of that number.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mixed = seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(Arc::new(Mutex::new(StdRng::seed_from_u64(mixed))))
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&self, end: usize) -> usize {
        self.draw(|rng| rng.random_range(0..end))
    }

    /// A number from `from` to `to`.
    pub(crate) fn between(&self, from: u32, to: u32) -> u32 {
        self.draw(|rng| rng.random_range(from..=to))
    }

    /// Whether something happens that happens so many times in a hundred.
    pub(crate) fn percent(&self, chance: u32) -> bool {
        self.between(1, 100) <= chance
    }

    /// One of them.
    pub(crate) fn one_of<T: Copy>(&self, choice: &[T]) -> T {
        choice[self.below(choice.len())]
    }

    /// A time of so many milliseconds.
    pub(crate) fn millis(&self, from: u32, to: u32) -> Duration {
        Duration::from_millis(self.between(from, to).into())
    }

    /// A short time, most often none.
    pub(crate) fn moment(&self) -> Duration {
        match self.between(0, 9) {
            0..=4 => Duration::ZERO,
            5..=8 => self.millis(1, 5),
            _ => self.millis(5, 40),
        }
    }

    /// Any bits.
    pub(crate) fn bits(&self) -> u64 {
        self.draw(RngExt::random)
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
