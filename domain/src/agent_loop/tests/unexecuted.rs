//! Calls that are answered and never executed: cut off, or with arguments that are no object.

use super::*;
use crate::conversation::{Block, NewMessage, Role, StopReason};
use crate::journal::CallState;
use crate::run::ChangeKind as Kind;
use crate::run::fixtures::message_id;

#[test]
fn a_call_that_was_cut_off_is_answered_and_never_executed() {
    let mut bench = Bench::begun(LIMITS);

    let step = bench.reply(cut_off(&[("c1", "safe"), ("c2", "safe")]));

    assert_eq!(step, Step::CallModel);
    assert_eq!(
        bench.store.journaled(),
        [
            ("c1", CallState::Finished, 0),
            ("c2", CallState::Finished, 0)
        ]
    );
    let said = bench.store.said();
    assert!(said[3].starts_with("user: c1 failed The answer was cut off"));
    assert!(said[4].starts_with("user: c2 failed The answer was cut off"));
}

#[test]
fn three_answers_in_a_row_that_were_cut_off_fail_the_run() {
    let mut bench = Bench::begun(LIMITS);

    assert_eq!(bench.reply(cut_off(&[("c1", "safe")])), Step::CallModel);
    assert_eq!(bench.reply(cut_off(&[("c2", "safe")])), Step::CallModel);
    assert_eq!(bench.reply(cut_off(&[("c3", "safe")])), Step::Done);

    assert_eq!(bench.store.ended(), "truncated");
    assert_eq!(bench.store.run.stop_reason, Some(StopReason::MaxTokens));
    assert_eq!(bench.store.run.iterations, 3);
    bench.store.check_end();
}

#[test]
fn a_whole_answer_between_them_begins_the_count_of_cut_off_ones_anew() {
    let mut bench = Bench::begun(LIMITS);

    bench.reply(cut_off(&[("c1", "safe")]));
    bench.reply(cut_off(&[("c2", "safe")]));
    bench.reply(asks(&[("c3", "safe")]));
    bench.returned(1, ToolResult::ok("12:00"));
    bench.reply(cut_off(&[("c4", "safe")]));

    assert_eq!(bench.reply(cut_off(&[("c5", "safe")])), Step::CallModel);
}

#[test]
fn what_was_cut_off_in_an_earlier_run_does_not_count() {
    let mut store = Store::new();
    for id in ["c1", "c2"] {
        let ask = NewMessage {
            role: Role::Assistant,
            stop_reason: Some(StopReason::MaxTokens),
            ..NewMessage::user(message_id(55), cut_off(&[(id, "safe")]).content)
        };
        let hello = NewMessage::user(message_id(56), vec![Block::text("hello")]);
        store.say(hello, false);
        store.say(ask, false);
    }
    let mut bench = Bench::on(store.claimed(), LIMITS);
    // What is sent here is for the layers to repair.
    let begin = Input::Begin {
        standing: FINE,
        append: None,
    };
    assert_eq!(bench.agent.advance(begin), Ok(Step::CallModel));

    let step = bench.agent.advance(Input::Replied {
        reply: Ok(cut_off(&[("c3", "safe")])),
        left: AMPLE,
    });
    assert!(matches!(step, Ok(Step::Save(Change::Answer(_)))));
    let step = bench.agent.advance(Input::Saved { standing: FINE });

    assert!(
        matches!(step, Ok(Step::Save(Change::CompleteTurn(_)))),
        "{step:?}"
    );
}

#[test]
fn arguments_that_are_no_object_are_answered_while_the_rest_is_executed() {
    let mut bench = Bench::begun(LIMITS);
    let invalid = BTreeMap::from([("c2".to_owned(), "[1".to_owned())]);
    let three = [("c1", "safe"), ("c2", "safe"), ("c3", "safe")];

    let step = bench.reply(ModelReply {
        invalid_inputs: invalid,
        ..asks(&three)
    });
    assert_eq!(begins(&step), [1, 3]);
    bench.returned(1, ToolResult::ok("a"));
    assert_eq!(bench.returned(3, ToolResult::ok("c")), Step::CallModel);

    assert_eq!(
        bench.store.journaled(),
        [
            ("c1", CallState::Finished, 1),
            ("c2", CallState::Finished, 0),
            ("c3", CallState::Finished, 1),
        ]
    );
    assert_eq!(bench.store.call(1, 2).invalid_input.as_deref(), Some("[1"));
    let said = bench.store.said();
    assert_eq!(said[4], "user: c1 gave a");
    assert!(said[5].starts_with("user: c2 failed The arguments of this call"));
    assert_eq!(said[6], "user: c3 gave c");
}

#[test]
fn a_batch_of_nothing_but_invalid_calls_is_a_turn_without_executions() {
    let mut bench = Bench::begun(LIMITS);
    let invalid = BTreeMap::from([("c1".to_owned(), String::new())]);

    let step = bench.reply(ModelReply {
        invalid_inputs: invalid,
        ..asks(&[("c1", "safe")])
    });

    assert_eq!(step, Step::CallModel);
    assert_eq!(bench.writes(), [Kind::Answer, Kind::CompleteTurn]);
}
