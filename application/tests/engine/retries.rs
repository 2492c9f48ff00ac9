//! A provider that fails: tried again, in its time, within limits.

use std::time::Duration;

use hango_domain::conversation::validate;
use hango_domain::event::EventKind;
use hango_domain::model::{FailureCause, ModelFailure, ModelFailureKind, StreamEvent};
use hango_domain::run::{ChangeKind, RequeueReason, RunErrorCode, RunState, RunStatus};
use hango_ports::telemetry::{FailedTry, Observation};

use crate::support::{Say, World, failed_with, says, settings, texts};

fn unavailable() -> ModelFailure {
    ModelFailure::new(ModelFailureKind::Unavailable, "overloaded")
}

/// The answer breaks off behind that text.
fn breaks_after(text: &str) -> Vec<Say> {
    let text = StreamEvent::Text {
        index: 0,
        text: text.to_owned(),
    };
    vec![Say::Event(text), Say::Break(unavailable())]
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_is_made_again_after_a_wait_that_grows() {
    let world = World::new().await;
    let script = &world.provider;
    script.then(vec![Say::Refuse(unavailable())]);
    script.then(vec![Say::Refuse(unavailable())]);
    script.then(says("It is noon."));

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    let at: Vec<_> = world.provider.calls().iter().map(|call| call.at).collect();
    let waits = [at[1] - at[0], at[2] - at[1]].map(|wait| wait.as_millis());
    assert!((250..=501).contains(&waits[0]), "{waits:?}");
    assert!((500..=1001).contains(&waits[1]), "{waits:?}");
    let retry = ChangeKind::Retry;
    assert_eq!(world.kinds_written(), [retry, retry, ChangeKind::Finish]);
    let discarded = |kind: &EventKind| *kind == EventKind::TurnDiscarded;
    assert!(!record.events.iter().any(|event| discarded(&event.kind)));
}

#[tokio::test(start_paused = true)]
async fn what_was_shown_of_a_broken_answer_is_discarded_and_not_added_to_the_next() {
    let world = World::new().await;
    world.provider.then(breaks_after("It is ni"));
    world.provider.then(says("It is noon."));

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(texts(&record.messages), ["What time is it?", "It is noon."]);
    let discarded = record
        .events
        .iter()
        .filter(|it| it.kind == EventKind::TurnDiscarded);
    assert_eq!(discarded.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn every_try_is_told_of_and_whether_its_deltas_are_void() {
    let world = World::new().await;
    let busy = ModelFailure {
        retry_after: Some(Duration::from_secs(2)),
        ..unavailable()
    };
    world.provider.then(vec![Say::Refuse(busy)]);
    world.provider.then(breaks_after("It is ni"));
    world.provider.then(says("It is noon."));

    let process = world.start(settings()).await;
    let run = world.run().await;
    world.ended(run.id).await;
    process.drain().await;

    let tries = world.watching.observed().into_iter();
    let tries = tries.filter_map(|observed| match observed {
        Observation::ModelCalled { failure, .. } => Some(failure),
        _ => None,
    });
    let refused = FailedTry {
        kind: ModelFailureKind::Unavailable,
        cause: FailureCause::Connection,
        retry_after: Some(Duration::from_secs(2)),
        shown: false,
    };
    let broken = FailedTry {
        retry_after: None,
        shown: true,
        ..refused.clone()
    };
    assert_eq!(
        tries.collect::<Vec<_>>(),
        [Some(refused), Some(broken), None]
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_without_a_stop_reason_is_a_failure_and_tried_again() {
    let world = World::new().await;
    let mut cut = says("It is noon.");
    cut.pop();
    world.provider.then(cut);
    world.provider.then(says("It is one."));

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(texts(&record.messages), ["What time is it?", "It is one."]);
}

#[tokio::test(start_paused = true)]
async fn what_arrived_of_the_last_try_is_kept_for_people_and_never_sent_to_a_provider() {
    let world = World::new().await;
    for text in ["first half", "second half", "third half"] {
        world.provider.then(breaks_after(text));
    }
    world.provider.then(says("It is noon."));

    let process = world.start(settings()).await;
    let first = world.run().await;
    let failed = world.ended(first.id).await;
    let second = world.run().await;
    let record = world.ended(second.id).await;
    process.drain().await;

    assert_eq!(
        failed_with(&failed.run.state),
        Some(RunErrorCode::ProviderUnavailable)
    );
    let kept = failed.messages.last().expect("something was said");
    assert_eq!(
        (kept.partial, texts(&failed.messages)[1].as_str()),
        (true, "third half")
    );
    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    let calls = world.provider.calls();
    assert_eq!(calls.len(), 4);
    for call in calls {
        assert_eq!(validate(&call.asked.messages), Ok(()));
        assert!(!texts(&call.asked.messages).concat().contains("half"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_will_be_refused_again_is_not_tried_again() {
    let world = World::new().await;
    let refused = ModelFailure::new(ModelFailureKind::Auth, "the key is not valid");
    world.provider.then(vec![Say::Refuse(refused)]);

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(
        failed_with(&record.run.state),
        Some(RunErrorCode::ProviderAuth)
    );
    assert_eq!(world.provider.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_that_a_provider_asks_for_leaves_the_slot_to_others() {
    let world = World::new().await;
    let elsewhere = world
        .place(|agent| agent.provider = "other".to_owned())
        .await;
    let mut busy = unavailable();
    busy.retry_after = Some(Duration::from_secs(30));
    world.provider.then(vec![Say::Refuse(busy)]);
    world.provider.then(says("It is noon."));
    world.other.then(says("Meanwhile."));
    let mut settings = settings();
    settings.workers = 1;

    let process = world.start(settings).await;
    let waiting = world.run().await;
    let given_back = world.given_back(waiting.id).await;
    let other = world.run_in(&elsewhere).await;
    let meanwhile = world.ended_in(&elsewhere, other.id).await;
    let still_waiting = world.now(waiting.id).await;
    let record = world.ended(waiting.id).await;
    process.drain().await;

    let reason = RequeueReason::ProviderWait;
    let last = given_back.events.last().map(|event| event.kind.clone());
    assert_eq!(last, Some(EventKind::RunRequeued { reason }));
    assert_eq!(meanwhile.run.state.status(), RunStatus::Succeeded);
    assert_eq!(still_waiting.state, RunState::Queued);
    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    let at: Vec<_> = world.provider.calls().iter().map(|call| call.at).collect();
    let waited = at[1] - at[0];
    assert!((30..=32).contains(&waited.as_secs()), "{waited:?}");
    assert_eq!((record.run.attempt, record.run.iterations), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn tries_are_counted_across_attempts() {
    let world = World::new().await;
    let mut busy = unavailable();
    busy.retry_after = Some(Duration::from_secs(30));
    world.provider.otherwise(vec![Say::Refuse(busy)]);

    let process = world.start(settings()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    assert_eq!(
        failed_with(&record.run.state),
        Some(RunErrorCode::ProviderUnavailable)
    );
    assert_eq!((record.run.attempt, world.provider.count()), (3, 3));
}
