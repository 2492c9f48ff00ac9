//! What an answer has cost, as the frames tell it.
//!
//! * What is told is the sum so far, so a later number replaces an earlier one and is never added to it.
//! * The numbers of the input belong together: what a frame tells of them replaces what it does not leave
//!   out, unless all of it is 0. Gateways begin with zeros, or with a sum that the last frame breaks down.
//! * The protocol's input leaves out what a cache held; hango's is all of it.
//! * An answer is never lost over its bill: what cannot be read counts nothing.

use hango_domain::conversation::Usage;
use serde_json::Value;

/// The sums so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bill {
    uncached: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
}

impl Bill {
    /// Takes in what a frame tells.
    pub(crate) fn take(&mut self, wire: &Value) {
        let count = |name: &str| wire.get(name).and_then(Value::as_u64);
        let uncached = count("input_tokens");
        let cache_read = count("cache_read_input_tokens");
        let cache_write = count("cache_creation_input_tokens").or_else(|| by_lifetime(wire));
        if [uncached, cache_read, cache_write]
            .iter()
            .any(|count| count.is_some_and(|count| count > 0))
        {
            self.uncached = uncached.unwrap_or(self.uncached);
            self.cache_read = cache_read.unwrap_or(self.cache_read);
            self.cache_write = cache_write.unwrap_or(self.cache_write);
        }
        self.output = count("output_tokens").unwrap_or(self.output);
    }

    /// The same in hango's terms.
    pub(crate) fn usage(self) -> Usage {
        let cached = self.cache_read.saturating_add(self.cache_write);
        Usage {
            input_tokens: self.uncached.saturating_add(cached),
            output_tokens: self.output,
            cache_read_tokens: self.cache_read,
            cache_write_tokens: self.cache_write,
            estimated: false,
        }
    }
}

/// What was written to the cache, where only its parts are told.
fn by_lifetime(wire: &Value) -> Option<u64> {
    let parts = wire.get("cache_creation")?.as_object()?;
    let parts = parts.values().filter_map(Value::as_u64);
    Some(parts.fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Input, of it read from the cache, of it written there, and output.
    fn told(frames: &[Value]) -> [u64; 4] {
        let mut bill = Bill::default();
        for frame in frames {
            bill.take(frame);
        }
        let usage = bill.usage();
        [
            usage.input_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.output_tokens,
        ]
    }

    #[test]
    fn a23_what_is_told_again_is_not_added() {
        let start = json!({"input_tokens": 9, "cache_read_input_tokens": 1, "output_tokens": 1});
        let end = json!({"input_tokens": 9, "cache_read_input_tokens": 1, "output_tokens": 16});

        assert_eq!(told(&[start.clone(), end]), [10, 1, 0, 16]);
        assert_eq!(told(&[start, json!({"output_tokens": 16})]), [10, 1, 0, 16]);
    }

    #[test]
    fn a24_zeros_are_not_preferred() {
        let none = json!({"input_tokens": 0, "output_tokens": 0});
        let some = json!({"input_tokens": 32, "output_tokens": 5});

        assert_eq!(told(&[none.clone(), some.clone()]), [32, 0, 0, 5]);
        let zero_last =
            json!({"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 7});
        assert_eq!(told(&[some, zero_last]), [32, 0, 0, 7]);
    }

    #[test]
    fn a25_a_sum_that_is_broken_down_later_is_not_counted_twice() {
        let sum = json!({"input_tokens": 8834, "output_tokens": 1});
        let parts =
            json!({"input_tokens": 18, "cache_read_input_tokens": 8831, "output_tokens": 20});
        let all_cached =
            json!({"input_tokens": 0, "cache_read_input_tokens": 8834, "output_tokens": 20});

        assert_eq!(told(&[sum.clone(), parts]), [8849, 8831, 0, 20]);
        assert_eq!(told(&[sum, all_cached]), [8834, 8834, 0, 20]);
    }

    #[test]
    fn a26_what_only_the_start_tells_of_the_cache_holds_to_the_end() {
        let lifetimes =
            json!({"ephemeral_5m_input_tokens": 336, "ephemeral_1h_input_tokens": 9366});
        let start = json!({"input_tokens": 3, "cache_creation": lifetimes, "output_tokens": 1});

        let end = json!({"input_tokens": 3, "output_tokens": 12});

        assert_eq!(told(&[start, end]), [9705, 0, 9702, 12]);
    }

    #[test]
    fn a_bill_that_makes_no_sense_counts_nothing() {
        let odd = json!({"input_tokens": "many", "cache_creation": 7, "output_tokens": -1});

        assert_eq!(told(&[odd, json!([]), json!(null)]), [0; 4]);
    }
}
