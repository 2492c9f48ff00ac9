//! Arithmetic of measurements.

use std::time::Duration;

/// The value below which `share` of them lie; of none, none.
pub(crate) fn percentile(values: &[Duration], share: f64) -> Duration {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (float(sorted.len()) * share).ceil();
    let ranks = 1..=sorted.len();
    let at = ranks.take_while(|at| float(*at) <= rank).last();
    at.map_or(Duration::ZERO, |at| sorted[at - 1])
}

/// The one in the middle; of an even number the lower one of the two.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len().saturating_sub(1) / 2;
    sorted.get(middle).copied().unwrap_or_default()
}

/// What each of `n` has of `total`.
pub(crate) fn each(total: u64, n: usize) -> f64 {
    share(float(total), float(n))
}

/// `part` of `whole`; none of nothing.
pub(crate) fn share(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

/// In milliseconds.
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// In microseconds.
pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// A count, to calculate with.
#[expect(
    clippy::cast_precision_loss,
    reason = "no count here has more than the 52 bits that are exact"
)]
pub(crate) fn float(count: impl TryInto<u64>) -> f64 {
    count.try_into().unwrap_or_default() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(millis: &[u64]) -> Vec<Duration> {
        millis.iter().copied().map(Duration::from_millis).collect()
    }

    #[test]
    fn a_percentile_is_one_of_the_values_whatever_their_order() {
        let values = of(&[40, 10, 30, 20]);

        assert_eq!(percentile(&values, 0.5), Duration::from_millis(20));
        assert_eq!(percentile(&values, 0.51), Duration::from_millis(30));
        assert_eq!(percentile(&values, 0.99), Duration::from_millis(40));
        assert_eq!(percentile(&values, 1.0), Duration::from_millis(40));
        assert_eq!(percentile(&[], 0.5), Duration::ZERO);
    }

    #[test]
    fn a_median_is_not_moved_by_one_bad_value() {
        assert!((median(&[3.0, 900.0, 2.0]) - 3.0).abs() < f64::EPSILON);
        assert!(median(&[]).abs() < f64::EPSILON);
    }

    #[test]
    fn a_share_of_nothing_is_nothing() {
        assert!(each(5, 0).abs() < f64::EPSILON);
        assert!((each(5, 2) - 2.5).abs() < f64::EPSILON);
    }
}
