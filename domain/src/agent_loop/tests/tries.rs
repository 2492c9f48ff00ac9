//! Tries of a model call that bring no answer.

use super::*;
use crate::conversation::{Block, StopReason};
use crate::model::ModelFailureKind;
use crate::run::ChangeKind as Kind;
use crate::run::fixtures::at;

fn asked_to_wait(seconds: u64) -> ModelFailure {
    ModelFailure {
        retry_after: Some(Duration::from_secs(seconds)),
        ..unavailable()
    }
}

fn waits(step: &Step) -> Duration {
    match step {
        Step::Wait(wait) => *wait,
        other => panic!("{other:?} is no wait"),
    }
}

#[test]
fn a_provider_that_fails_is_tried_again_after_growing_waits_and_then_the_run_fails() {
    let mut bench = Bench::begun(LIMITS);

    let first = waits(&bench.fail(unavailable()));
    assert_eq!(bench.store.run.progress.tries, 1);
    assert_eq!(bench.give(Input::Waited), Step::CallModel);
    let second = waits(&bench.fail(unavailable()));
    assert_eq!(bench.give(Input::Waited), Step::CallModel);
    assert_eq!(bench.fail(unavailable()), Step::Done);

    let between = |low, high| Duration::from_millis(low)..=Duration::from_millis(high);
    assert!(between(250, 500).contains(&first), "{first:?}");
    assert!(between(500, 1_000).contains(&second), "{second:?}");
    assert_eq!(bench.writes(), [Kind::Retry, Kind::Retry, Kind::Finish]);
    assert_eq!(bench.store.ended(), "provider_unavailable");
    assert_eq!(
        bench.store.said(),
        ["user: what time is it?", "partial: half an"]
    );
    assert_eq!(bench.store.run.usage_discarded, tokens(6));
    assert_eq!(bench.store.run.usage, tokens(0));
    assert_eq!(bench.store.run.iterations, 0);
    bench.store.check_end();
}

#[test]
fn tries_count_across_attempts() {
    let mut bench = Bench::begun(LIMITS);
    bench.fail(unavailable());
    bench.give(Input::Waited);
    bench.fail(unavailable());

    let mut resumed = Bench::on(bench.store.reclaimed(), LIMITS);
    assert_eq!(resumed.begin(), Step::CallModel);

    assert_eq!(resumed.fail(unavailable()), Step::Done);
    assert_eq!(resumed.store.ended(), "provider_unavailable");
}

#[test]
fn each_turn_has_tries_of_its_own() {
    let mut bench = Bench::begun(LIMITS);
    bench.fail(unavailable());
    bench.give(Input::Waited);
    bench.fail(unavailable());
    bench.give(Input::Waited);
    bench.reply(asks(&[("c1", "safe")]));
    bench.returned(1, ToolResult::ok("12:00"));

    waits(&bench.fail(unavailable()));
    bench.give(Input::Waited);
    bench.reply(says("noon"));

    assert_eq!(bench.store.ended(), "succeeded");
}

#[test]
fn a_short_wait_that_the_provider_asks_for_is_spent_in_the_slot() {
    let mut bench = Bench::begun(LIMITS);

    let step = bench.fail(asked_to_wait(10));

    assert_eq!(waits(&step), Duration::from_secs(10));
}

#[test]
fn a_long_wait_that_the_provider_asks_for_gives_the_run_back_and_counts_as_a_try() {
    let mut bench = Bench::begun(LIMITS);

    let step = bench.fail(asked_to_wait(60));

    assert_eq!(step, Step::Done);
    assert_eq!(bench.writes(), [Kind::GiveBack]);
    let run = &bench.store.run;
    assert_eq!(run.state, crate::run::RunState::Queued);
    assert_eq!(run.available_at, Some(at(60)));
    assert_eq!(run.progress.tries, 1);
    assert_eq!(run.usage_discarded, tokens(2));
    assert_eq!(bench.store.said(), ["user: what time is it?"]);
}

#[test]
fn a_wait_that_would_outlast_the_run_fails_it_now() {
    let mut bench = Bench::begun(LIMITS);

    let step = bench.give(Input::Replied {
        reply: Err(asked_to_wait(60)),
        left: Duration::from_mins(1),
    });

    assert_eq!(step, Step::Done);
    assert_eq!(bench.store.ended(), "provider_unavailable");
}

#[test]
fn what_the_provider_would_refuse_again_fails_the_run_at_once() {
    for (kind, error, stop_reason) in [
        (ModelFailureKind::Auth, "provider_auth", None),
        (ModelFailureKind::Rejected, "provider_rejected", None),
        (ModelFailureKind::ContextExceeded, "context_exceeded", None),
        (
            ModelFailureKind::UnsupportedStop,
            "unsupported_stop",
            Some(StopReason::PauseTurn),
        ),
    ] {
        let mut bench = Bench::begun(LIMITS);

        let step = bench.fail(ModelFailure {
            kind,
            stop_reason,
            ..unavailable()
        });

        assert_eq!(step, Step::Done);
        assert_eq!(bench.writes(), [Kind::Finish]);
        assert_eq!(bench.store.ended(), error);
        assert_eq!(bench.store.run.stop_reason, stop_reason);
        assert_eq!(bench.store.run.usage_discarded, tokens(2));
        bench.store.check_end();
    }
}

#[test]
fn nonsense_on_the_wire_is_tried_again_before_it_fails_the_run() {
    let nonsense = ModelFailure::new(ModelFailureKind::Protocol, "no JSON");
    let mut bench = Bench::begun(LIMITS);

    for _ in 0..2 {
        waits(&bench.fail(nonsense.clone()));
        bench.give(Input::Waited);
    }
    bench.fail(nonsense);

    assert_eq!(bench.store.ended(), "provider_protocol");
    assert_eq!(bench.store.said(), ["user: what time is it?"]);
}

#[test]
fn a_provider_that_must_not_be_called_is_waited_for_without_a_write() {
    let mut bench = Bench::begun(LIMITS);
    let wait = Duration::from_secs(4);

    let step = bench.give(Input::Blocked { wait, left: AMPLE });

    assert_eq!(step, Step::Wait(wait));
    assert_eq!(bench.give(Input::Waited), Step::CallModel);
    assert_eq!(bench.writes(), []);
    assert_eq!(bench.store.run.progress.tries, 0);
}

#[test]
fn a_provider_that_must_not_be_called_for_long_gives_the_run_back_until_its_tries_are_used_up() {
    let blocked = Input::Blocked {
        wait: Duration::from_mins(1),
        left: AMPLE,
    };
    let mut bench = Bench::begun(LIMITS);
    for tries in 1..=2 {
        assert_eq!(bench.give(blocked.clone()), Step::Done);
        assert_eq!(bench.store.run.progress.tries, tries);
        bench = Bench::on(bench.store.claimed(), LIMITS);
        assert_eq!(bench.begin(), Step::CallModel);
    }

    assert_eq!(bench.give(blocked), Step::Done);

    assert_eq!(bench.store.ended(), "provider_unavailable");
}

#[test]
fn an_empty_answer_is_not_stored_and_asked_for_again_twice() {
    let mut bench = Bench::begun(LIMITS);
    let thought = Block::Thinking {
        thinking: "hm".to_owned(),
        signature: String::new(),
        provider_data: None,
    };

    assert_eq!(
        bench.reply(empty(StopReason::EndTurn)),
        Step::Wait(Duration::ZERO)
    );
    bench.give(Input::Waited);
    bench.reply(answer(vec![thought], StopReason::MaxTokens));
    bench.give(Input::Waited);
    let step = bench.reply(answer(vec![Block::text(" \n")], StopReason::EndTurn));

    assert_eq!(step, Step::Done);
    assert_eq!(bench.writes(), [Kind::Retry, Kind::Retry, Kind::Finish]);
    assert_eq!(bench.store.ended(), "empty_answer");
    assert_eq!(bench.store.run.stop_reason, Some(StopReason::EndTurn));
    assert_eq!(bench.store.run.usage_discarded, tokens(21));
    assert_eq!(bench.store.said(), ["user: what time is it?"]);
    bench.store.check_end();
}

#[test]
fn empty_answers_do_not_use_up_the_tries_of_a_failing_provider() {
    let mut bench = Bench::begun(LIMITS);

    bench.fail(unavailable());
    bench.give(Input::Waited);
    bench.reply(empty(StopReason::EndTurn));
    bench.give(Input::Waited);
    bench.fail(unavailable());
    bench.give(Input::Waited);
    bench.reply(empty(StopReason::EndTurn));
    bench.give(Input::Waited);
    bench.reply(says("noon"));

    assert_eq!(bench.store.ended(), "succeeded");
    assert_eq!(bench.store.run.usage_discarded, tokens(18));
}
