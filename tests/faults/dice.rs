//! All that is random in a scenario, and the same again for the same seed, on every machine and for
//! ever: that is why the generator is written out here.

use std::time::Duration;

/// A stream of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The stream of that name. Streams of other names are independent of it, so that what one part of
    /// a scenario throws does not depend on how often another one did.
    pub(crate) fn of(seed: u64, name: &str) -> Self {
        let mut dice = Self(seed);
        for byte in name.bytes() {
            dice.0 = dice.next() ^ u64::from(byte);
        }
        dice
    }

    /// `SplitMix64`.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// A place in a list of that length, which is not 0.
    pub(crate) fn below(&mut self, length: usize) -> usize {
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        usize::try_from(self.between(0, length - 1)).unwrap_or_default()
    }

    /// One of them; there is at least one.
    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// A text of that length that nothing makes shorter.
    pub(crate) fn text(&mut self, length: usize) -> String {
        let letters = (0..length).map(|_| char::from(b'!' + self.below(90).to_le_bytes()[0]));
        // None that JSON writes as two.
        letters
            .map(|letter| {
                if letter == '"' || letter == '\\' {
                    ' '
                } else {
                    letter
                }
            })
            .collect()
    }

    /// A time from `low` to `high` milliseconds.
    pub(crate) fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }
}

/// A seed that nobody chose.
pub(crate) fn new_seed() -> u64 {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    u64::from(u32::from_ne_bytes(bytes))
}
