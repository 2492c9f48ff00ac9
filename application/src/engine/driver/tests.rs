//! The driver alone: every port is a mock that allows what is expected and nothing else.

mod mocks;

use hango_domain::run::{Outcome, RunErrorCode, TransitionError};
use hango_ports::event_sink::{Delta, LiveEvent, MockEventSink};
use hango_ports::run_store::RunStoreError;
use hango_ports::store::StoreFailure;
use mockall::Sequence;

use super::*;
use mocks::{Mocks, asks, says, written};

#[tokio::test(start_paused = true)]
async fn writes_come_in_their_order_and_memory_goes_with_the_first_that_carries_it() {
    let mut mocks = Mocks::new();
    mocks.answers(vec![asks("clock"), says("It is noon.")]);
    let (running, ended) = (
        written(RunStatus::Running).await,
        written(RunStatus::Succeeded).await,
    );
    let mut order = Sequence::new();
    let answer = mocks.runs.expect_answer().once().in_sequence(&mut order);
    let after_answer = running.clone();
    answer.return_once(move |_| Ok(after_answer));
    let boundary = mocks.runs.expect_complete_turn().once();
    boundary
        .in_sequence(&mut order)
        .withf(|boundary| counted(boundary.memory.as_ref()) == Some(1) && boundary.todos.is_none())
        .return_once(move |_| Ok(running));
    let finish = mocks.runs.expect_finish().once().in_sequence(&mut order);
    finish
        .withf(|end| counted(end.memory.as_ref()) == Some(2) && end.outcome == Outcome::Succeeded)
        .return_once(move |_| Ok(ended));

    let (ended, _) = mocks.execute().await;

    assert!(matches!(ended, Ok(RunStatus::Succeeded)), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn deltas_go_to_watchers_and_the_layers_see_one_whole_answer() {
    let mut mocks = Mocks::new();
    mocks.answers(vec![says("It is noon.")]);
    mocks.sink = MockEventSink::new();
    let delta = |event: &LiveEvent| matches!(event, LiveEvent::Delta(Delta { text, .. }) if text == "It is noon.");
    mocks
        .sink
        .expect_emit()
        .once()
        .withf(delta)
        .return_const(());
    let ended = written(RunStatus::Succeeded).await;
    let finish = mocks.runs.expect_finish().once();
    finish.return_once(move |_| Ok(ended));

    let (_, replies) = mocks.execute().await;

    let [reply] = &replies[..] else {
        panic!("one answer: {replies:?}");
    };
    assert_eq!(reply.content, [Block::text("It is noon.")]);
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_panics_around_a_tool_is_an_error_result() {
    let mut mocks = Mocks::new();
    mocks.layer.panics_around_tool = true;
    mocks.answers(vec![asks("clock"), says("It does not work.")]);
    let (running, ended) = (
        written(RunStatus::Running).await,
        written(RunStatus::Succeeded).await,
    );
    let after_answer = running.clone();
    mocks
        .runs
        .expect_answer()
        .once()
        .return_once(move |_| Ok(after_answer));
    let boundary = mocks.runs.expect_complete_turn().once();
    boundary
        .withf(|boundary| boundary.results.iter().all(|result| result.result.is_error))
        .return_once(move |_| Ok(running));
    mocks
        .runs
        .expect_finish()
        .once()
        .return_once(move |_| Ok(ended));

    let (ended, _) = mocks.execute().await;

    assert!(matches!(ended, Ok(RunStatus::Succeeded)), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_panics_around_the_model_ends_the_run_as_internal() {
    let mut mocks = Mocks::new();
    mocks.layer.panics_around_model = true;
    let ended = written(RunStatus::Failed).await;
    let internal = |outcome: &Outcome| matches!(outcome, Outcome::Failed(error) if error.code == RunErrorCode::Internal);
    let finish = mocks.runs.expect_finish().once();
    finish
        .withf(move |end| internal(&end.outcome))
        .return_once(move |_| Ok(ended));

    let (ended, _) = mocks.execute().await;

    assert!(matches!(ended, Ok(RunStatus::Failed)), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_begun_under_a_lease_that_has_run_out() {
    let mut mocks = Mocks::new();
    mocks.lease_ttl = Duration::ZERO;

    let (ended, _) = mocks.execute().await;

    assert!(matches!(ended, Err(Abandoned::LeaseLost)), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_write_is_repeated_until_the_lease_has_run_out_and_not_once_more() {
    let mut mocks = Mocks::new();
    mocks.answers(vec![says("It is noon.")]);
    let begun = Instant::now();
    mocks.runs.expect_finish().times(10..).returning(|_| {
        let failure = StoreFailure::Unavailable("the test says so".into());
        Err(RunStoreError::Failure(failure))
    });

    let ttl = mocks.lease_ttl;
    let (ended, _) = mocks.execute().await;

    assert!(matches!(ended, Err(Abandoned::LeaseLost)), "{ended:?}");
    assert_eq!(begun.elapsed().as_secs(), ttl.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_is_the_last() {
    let mut mocks = Mocks::new();
    mocks.answers(vec![asks("clock")]);
    mocks.runs.expect_answer().once().return_once(|_| {
        let found = RunStatus::Cancelled;
        Err(RunStoreError::Refused(TransitionError::AlreadyEnded {
            found,
        }))
    });

    let (ended, _) = mocks.execute().await;

    assert!(matches!(ended, Err(Abandoned::LeaseLost)), "{ended:?}");
}

/// How many model calls the layer counted in the memory that a write carries; `None` if it carries none.
fn counted(memory: Option<&hango_domain::run::StoredMemory>) -> Option<u32> {
    let memory = RunMemory::from_stored(memory?).ok()?;
    memory.load("counting").ok()?
}
