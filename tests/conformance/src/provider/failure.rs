//! Failures: each is one of the kinds that the engine knows what to do about.

use std::sync::Arc;
use std::time::Duration;

use hango_domain::model::ModelFailureKind;
use hango_ports::Provider;

use super::asking::{ask, hello};
use super::{Act, Play};

/// An answer without its stop is none, however much of it came. What came is passed on, for people.
pub async fn an_answer_that_breaks_off_is_no_answer<G>(
    stage: impl AsyncFn(Play) -> (Arc<dyn Provider>, G),
) {
    let words = ["Once ", "upon "].map(str::to_owned).to_vec();
    let (provider, _guard) = stage(Play::of([Act::BreaksOff(words.clone())])).await;

    let came = ask(&*provider, hello()).await;

    assert_eq!(came.stops(), 0);
    assert_eq!(came.text(), words.concat());
    let failure = came.failure();
    assert!(failure.kind.is_retryable(), "{failure:?}");
}

/// What can be done about a failure is said right: some are tried again, others never.
pub async fn each_kind_of_failure_is_told_apart<G>(
    stage: impl AsyncFn(Play) -> (Arc<dyn Provider>, G),
) {
    for kind in [
        ModelFailureKind::Unavailable,
        ModelFailureKind::Auth,
        ModelFailureKind::Rejected,
        ModelFailureKind::Protocol,
        ModelFailureKind::ContextExceeded,
        ModelFailureKind::UnsupportedStop,
    ] {
        let (provider, _guard) = stage(Play::of([Act::Fails(kind)])).await;

        let failure = ask(&*provider, hello()).await.failure();

        assert_eq!(failure.kind, kind, "{failure}");
    }
}

/// Who says when to come back is believed.
pub async fn a_busy_other_side_says_when_to_come_back<G>(
    stage: impl AsyncFn(Play) -> (Arc<dyn Provider>, G),
) {
    let wait = Duration::from_secs(7);
    let (provider, _guard) = stage(Play::of([Act::Busy(wait)])).await;

    let failure = ask(&*provider, hello()).await.failure();

    assert_eq!(failure.kind, ModelFailureKind::Unavailable);
    assert_eq!(failure.retry_after, Some(wait));
}

/// A failure is one try's, and nothing of it is left to the next.
pub async fn a_failure_leaves_nothing_behind<G>(
    stage: impl AsyncFn(Play) -> (Arc<dyn Provider>, G),
) {
    let said = super::Spoken::text(&["Here ", "we are."]);
    let acts = [
        Act::BreaksOff(vec!["Once ".to_owned()]),
        Act::Fails(ModelFailureKind::Unavailable),
        said.act(),
    ];
    let (provider, _guard) = stage(Play::of(acts)).await;

    for _ in 0..2 {
        drop(ask(&*provider, hello()).await.failure());
    }
    let came = ask(&*provider, hello()).await;

    assert_eq!(came.text(), said.words.concat());
    assert!(came.outcome.is_ok(), "{:?}", came.outcome);
}
