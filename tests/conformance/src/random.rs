//! Checks over random input, on the runtime that a check already has.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tokio::runtime::Handle;

/// Runs `check` on that many values of `strategy`, and names the smallest one on which it fails.
pub(crate) fn for_any<S: Strategy>(
    cases: u32,
    strategy: &S,
    check: impl AsyncFn(S::Value) -> Result<(), TestCaseError>,
) {
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 500,
        ..Config::default()
    };
    let outcome = tokio::task::block_in_place(|| {
        TestRunner::new(config).run(strategy, |value| Handle::current().block_on(check(value)))
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
