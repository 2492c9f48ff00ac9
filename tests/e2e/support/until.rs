//! Waiting for something that is observed, the only way of waiting that tests use.

use std::time::{Duration, Instant};

/// The longest that anything may take, on a busy machine.
pub(crate) const BOUND: Duration = Duration::from_secs(30);

const ASK_AGAIN: Duration = Duration::from_millis(5);

/// Asks until there is an answer; panics with `what` when that takes too long.
pub(crate) async fn until<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = probe().await {
            return answer;
        }
        assert!(begun.elapsed() < BOUND, "not within {BOUND:?}: {what}");
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

/// Asks until it is true.
pub(crate) async fn until_true(what: &str, mut probe: impl FnMut() -> bool) {
    until(what, async || probe().then_some(())).await;
}
