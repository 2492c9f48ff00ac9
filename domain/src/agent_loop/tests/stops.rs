//! Breaking off: cancel, deadline, drain, a lost lease, and a driver's defects.

use super::*;
use crate::journal::{CallState, NOT_EXECUTED, OUTCOME_UNKNOWN};
use crate::run::ChangeKind as Kind;
use crate::run::RunState;

const THREE: [(&str, &str); 3] = [("c1", "safe"), ("c2", "safe"), ("c3", "safe")];

/// A loop that executes calls 1 and 3 of a batch of three; call 2 has its result.
fn executing() -> Bench {
    let mut bench = Bench::begun(LIMITS);
    bench.reply(asks(&THREE));
    bench.returned(2, ToolResult::ok("b"));
    bench
}

fn waiting() -> Bench {
    let mut bench = Bench::begun(LIMITS);
    bench.fail(unavailable());
    bench
}

#[test]
fn a_cancel_while_the_model_answers_keeps_what_arrived_for_people() {
    let mut bench = Bench::begun(LIMITS);
    bench.request_cancel();

    assert_eq!(bench.stop(Stop::Cancel), Step::Done);

    assert_eq!(bench.writes(), [Kind::Finish]);
    assert_eq!(bench.store.ended(), "cancelled");
    assert_eq!(
        bench.store.said(),
        ["user: what time is it?", "partial: so far"]
    );
    assert_eq!(bench.store.run.usage_discarded, tokens(2));
    bench.store.check_end();
}

#[test]
fn a_cancel_while_tools_execute_answers_every_open_call() {
    let mut bench = Bench::begun(LIMITS);
    let four = [
        ("c1", "safe"),
        ("c2", "safe"),
        ("c3", "safe"),
        ("c4", "safe"),
    ];
    bench.reply(asks(&four));
    bench.returned(2, ToolResult::ok("b"));
    bench.request_cancel();

    assert_eq!(bench.stop(Stop::Cancel), Step::Done);

    assert_eq!(bench.store.ended(), "cancelled");
    assert_eq!(
        bench.store.said()[5..],
        [
            format!("user: c1 failed {OUTCOME_UNKNOWN}"),
            "user: c2 gave b".to_owned(),
            format!("user: c3 failed {OUTCOME_UNKNOWN}"),
            format!("user: c4 failed {NOT_EXECUTED}"),
        ]
    );
    assert_eq!(
        bench.store.journaled(),
        [
            ("c1", CallState::InDoubt, 1),
            ("c2", CallState::Finished, 1),
            ("c3", CallState::InDoubt, 1),
            ("c4", CallState::Finished, 0),
        ]
    );
    assert_eq!(bench.store.run.usage, tokens(7));
    bench.store.check_end();
}

#[test]
fn a_cancel_keeps_the_results_that_were_to_be_recorded_at_the_boundary() {
    let mut bench = Bench::begun(LIMITS);
    let invalid = BTreeMap::from([("c2".to_owned(), "[".to_owned())]);
    bench.reply(ModelReply {
        invalid_inputs: invalid,
        ..asks(&THREE)
    });

    bench.stop(Stop::Cancel);

    assert!(bench.store.said()[5].starts_with("user: c2 failed The arguments"));
    assert_eq!(bench.store.call(1, 2).state, CallState::Finished);
    bench.store.check_end();
}

#[test]
fn a_cancel_while_the_loop_waits_ends_the_run() {
    let mut bench = waiting();
    bench.request_cancel();

    assert_eq!(bench.stop(Stop::Cancel), Step::Done);

    assert_eq!(bench.writes(), [Kind::Retry, Kind::Finish]);
    assert_eq!(bench.store.ended(), "cancelled");
    bench.store.check_end();
}

#[test]
fn a_cancel_that_comes_back_from_a_write_ends_the_run_before_the_next_call() {
    let mut bench = Bench::begun(LIMITS);
    bench.request_cancel();

    assert_eq!(bench.reply(asks(&THREE)), Step::Done);

    assert_eq!(bench.writes(), [Kind::Answer, Kind::Finish]);
    assert_eq!(bench.store.ended(), "cancelled");
    bench.store.check_end();
}

#[test]
fn a_deadline_ends_the_run_wherever_it_is() {
    for mut bench in [Bench::begun(LIMITS), executing(), waiting()] {
        assert_eq!(bench.stop(Stop::Deadline), Step::Done);

        assert_eq!(bench.store.ended(), "deadline_exceeded");
        bench.store.check_end();
    }
}

#[test]
fn a_run_past_its_deadline_ends_at_its_claim_amid_a_turn_too() {
    for store in [Store::new().claimed(), executing().store.reclaimed()] {
        let mut bench = Bench::on(store, LIMITS);

        assert_eq!(
            bench.give(Input::Stopped {
                reason: Stop::Deadline,
                partial: Vec::new(),
                usage: tokens(0),
            }),
            Step::Done
        );

        assert_eq!(bench.store.ended(), "deadline_exceeded");
        bench.store.check_end();
    }
}

#[test]
fn a_defect_is_told_to_people_without_its_details() {
    let mut bench = executing();

    bench.stop(Stop::Internal("row 7 holds no JSON".to_owned()));

    assert_eq!(bench.store.ended(), "internal");
    let error = bench.store.run.state.error().expect("an error");
    assert!(!error.message.contains("row 7"), "{}", error.message);
    bench.store.check_end();
}

#[test]
fn who_lost_the_lease_writes_nothing_more() {
    for mut bench in [Bench::begun(LIMITS), executing(), waiting()] {
        let before = bench.writes();

        assert_eq!(bench.stop(Stop::LeaseLost), Step::Done);

        assert_eq!(bench.writes(), before);
    }
}

#[test]
fn a_drain_that_is_over_gives_the_run_back_as_it_stands() {
    for mut bench in [Bench::begun(LIMITS), executing(), waiting()] {
        let open = bench.store.open_calls();
        let said = bench.store.said();

        assert_eq!(bench.stop(Stop::Abort), Step::Done);

        assert_eq!(bench.writes().last(), Some(&Kind::GiveBack));
        assert_eq!(bench.store.run.state, RunState::Queued);
        assert_eq!(bench.store.run.available_at, None);
        assert_eq!(bench.store.open_calls(), open);
        assert_eq!(bench.store.said(), said);
    }
}

#[test]
fn a_drain_that_is_over_ends_a_run_whose_cancel_was_asked_for_with_its_calls_answered() {
    let mut bench = executing();
    bench.request_cancel();

    bench.stop(Stop::Abort);

    assert_eq!(bench.store.ended(), "cancelled");
    bench.store.check_end();
}

#[test]
fn a_run_to_be_given_back_goes_at_its_boundary_with_the_boundarys_write() {
    let mut bench = executing();

    bench.agent.give_back_at_boundary(RequeueReason::Drain);
    assert!(begins(&bench.returned(1, ToolResult::ok("a"))).is_empty());
    assert_eq!(bench.returned(3, ToolResult::ok("c")), Step::Done);

    assert_eq!(bench.writes().last(), Some(&Kind::CompleteTurn));
    assert_eq!(bench.store.run.state, RunState::Queued);
    assert_eq!(bench.store.run.progress.resume_turn, 1);
}

#[test]
fn a_run_to_be_given_back_may_still_end_with_its_answer() {
    let mut bench = Bench::begun(LIMITS);

    bench.agent.give_back_at_boundary(RequeueReason::Drain);
    bench.reply(says("noon"));

    assert_eq!(bench.store.ended(), "succeeded");
}

#[test]
fn a_run_to_be_given_back_is_so_at_its_beginning_and_instead_of_a_wait() {
    let mut beginning = Bench::on(Store::new().claimed(), LIMITS);
    beginning.agent.give_back_at_boundary(RequeueReason::Drain);
    assert_eq!(beginning.begin(), Step::Done);
    let mut amid_a_wait = waiting();
    amid_a_wait
        .agent
        .give_back_at_boundary(RequeueReason::Drain);
    assert_eq!(amid_a_wait.give(Input::Waited), Step::Done);
    let mut before_a_wait = Bench::begun(LIMITS);
    before_a_wait
        .agent
        .give_back_at_boundary(RequeueReason::Drain);
    assert_eq!(before_a_wait.fail(unavailable()), Step::Done);
    let mut blocked = Bench::begun(LIMITS);
    blocked.agent.give_back_at_boundary(RequeueReason::Drain);
    let wait = Duration::from_secs(4);
    assert_eq!(
        blocked.give(Input::Blocked { wait, left: AMPLE }),
        Step::Done
    );

    for bench in [beginning, amid_a_wait, before_a_wait, blocked] {
        assert_eq!(bench.writes().last(), Some(&Kind::GiveBack));
        assert_eq!(bench.store.run.state, RunState::Queued);
        assert_eq!(bench.store.run.available_at, None);
    }
}

#[test]
fn an_input_that_answers_nothing_leaves_the_loop_as_it_was() {
    let saved = Input::Saved { standing: FINE };
    let returned = |position| Input::ToolReturned {
        position,
        result: ToolResult::ok("late"),
        duration_ms: 1,
    };
    let replied = Input::Replied {
        reply: Ok(says("late")),
        left: AMPLE,
    };
    let mut bench = Bench::begun(LIMITS);

    for input in [saved.clone(), Input::Waited, returned(1)] {
        assert!(bench.agent.advance(input).is_err());
    }
    bench.reply(asks(&THREE));
    bench.returned(2, ToolResult::ok("b"));
    // Settled, in no batch; the third executes by now.
    for input in [saved, replied, returned(2), returned(4)] {
        assert!(bench.agent.advance(input).is_err());
    }
    bench.returned(1, ToolResult::ok("a"));
    bench.returned(3, ToolResult::ok("c"));
    bench.reply(says("noon"));
    let begin = Input::Begin {
        standing: FINE,
        append: None,
    };

    let error = bench.agent.advance(begin).expect_err("it ended");
    assert_eq!(
        error.to_string(),
        "a beginning does not answer the step before"
    );
    assert_eq!(
        bench.store.said()[4..],
        [
            "user: c1 gave a",
            "user: c2 gave b",
            "user: c3 gave c",
            "assistant: noon"
        ]
    );
}
