//! Going on, in a new attempt, with the calls of an answered turn.

use super::*;
use crate::journal::{CallState, OUTCOME_UNKNOWN};
use crate::run::ChangeKind as Kind;

const SERIAL: LoopLimits = LoopLimits {
    tool_concurrency: 1,
    ..LIMITS
};

/// A loop on a run whose process died when `calls` were answered, so many at a time, and those of
/// `finished` had their results.
fn crashed(calls: &[(&str, &str)], limits: LoopLimits, finished: &[u32]) -> Bench {
    let mut bench = Bench::begun(limits);
    bench.reply(asks(calls));
    for position in finished {
        bench.returned(*position, ToolResult::ok("before"));
    }
    Bench::on(bench.store.reclaimed(), limits)
}

#[test]
fn a_safe_or_keyed_call_is_executed_again_under_the_same_key() {
    let mut bench = crashed(&[("c1", "safe"), ("c2", "keyed")], LIMITS, &[]);
    let keys = |store: &Store| [1, 2].map(|position| store.call(1, position).idempotency_key());
    let before = keys(&bench.store);

    let step = bench.begin();

    assert_eq!(begins(&step), [1, 2]);
    assert_eq!(bench.writes(), [Kind::Resume]);
    assert_eq!(
        bench.store.journaled(),
        [("c1", CallState::Started, 2), ("c2", CallState::Started, 2)]
    );
    assert_eq!(keys(&bench.store), before);
}

#[test]
fn an_unsafe_or_unknown_call_is_in_doubt_and_the_model_decides() {
    let mut bench = crashed(&[("c1", "unsafe"), ("c2", "gone")], LIMITS, &[]);

    let step = bench.begin();

    assert_eq!(step, Step::CallModel);
    assert_eq!(bench.writes(), [Kind::Resume, Kind::CompleteTurn]);
    assert_eq!(
        bench.store.journaled(),
        [("c1", CallState::InDoubt, 1), ("c2", CallState::InDoubt, 1)]
    );
    assert_eq!(
        bench.store.said()[3..],
        [
            format!("user: c1 failed {OUTCOME_UNKNOWN}"),
            format!("user: c2 failed {OUTCOME_UNKNOWN}"),
        ]
    );
}

#[test]
fn a_call_that_never_began_is_executed_whatever_its_class() {
    let mut bench = crashed(
        &[("c1", "safe"), ("c2", "unsafe"), ("c3", "gone")],
        SERIAL,
        &[],
    );

    assert_eq!(begins(&bench.begin()), [1]);
    assert_eq!(begins(&bench.returned(1, ToolResult::ok("a"))), [2]);
    assert_eq!(begins(&bench.returned(2, ToolResult::ok("b"))), [3]);
    assert_eq!(
        bench.returned(3, ToolResult::error("no such tool")),
        Step::CallModel
    );

    assert_eq!(
        bench.store.journaled(),
        [
            ("c1", CallState::Finished, 2),
            ("c2", CallState::Finished, 1),
            ("c3", CallState::Finished, 1),
        ]
    );
}

#[test]
fn a_result_on_record_stays_and_the_others_take_their_turn() {
    let calls = [
        ("c1", "safe"),
        ("c2", "unsafe"),
        ("c3", "safe"),
        ("c4", "unsafe"),
        ("c5", "safe"),
    ];
    let mut bench = crashed(&calls, LIMITS, &[1]);
    assert_eq!(
        bench.store.journaled(),
        [
            ("c1", CallState::Finished, 1),
            ("c2", CallState::Started, 1),
            ("c3", CallState::Started, 1),
            ("c4", CallState::Pending, 0),
            ("c5", CallState::Pending, 0),
        ]
    );

    assert_eq!(begins(&bench.begin()), [3, 4]);
    assert_eq!(begins(&bench.returned(4, ToolResult::ok("d"))), [5]);
    assert!(begins(&bench.returned(5, ToolResult::ok("e"))).is_empty());
    assert_eq!(bench.returned(3, ToolResult::ok("c")), Step::CallModel);

    assert_eq!(
        bench.store.said()[6..],
        [
            "user: c1 gave before".to_owned(),
            format!("user: c2 failed {OUTCOME_UNKNOWN}"),
            "user: c3 gave c".to_owned(),
            "user: c4 gave d".to_owned(),
            "user: c5 gave e".to_owned(),
        ]
    );
    assert_eq!(bench.store.run.usage, tokens(7));
}

#[test]
fn a_call_in_doubt_stays_so_after_another_crash() {
    let mut bench = crashed(&[("c1", "unsafe"), ("c2", "safe")], LIMITS, &[]);
    bench.begin();

    let mut again = Bench::on(bench.store.reclaimed(), LIMITS);

    assert_eq!(begins(&again.begin()), [2]);
    assert_eq!(
        again.store.journaled(),
        [("c1", CallState::InDoubt, 1), ("c2", CallState::Started, 3)]
    );
}

#[test]
fn a_turn_whose_calls_are_all_in_doubt_needs_only_its_boundary_after_another_crash() {
    let mut bench = crashed(&[("c1", "unsafe")], LIMITS, &[]);
    let begin = Input::Begin {
        standing: FINE,
        append: None,
    };
    let step = bench.agent.advance(begin);
    let Ok(Step::Save(resume)) = step else {
        panic!("{step:?} is no write");
    };
    bench.store.make(resume);

    let mut again = Bench::on(bench.store.reclaimed(), LIMITS);

    assert_eq!(again.begin(), Step::CallModel);
    assert_eq!(again.writes(), [Kind::CompleteTurn]);
}

#[test]
fn a_call_that_waits_to_be_executed_again_is_in_doubt_when_the_run_ends() {
    let mut bench = Bench::begun(LIMITS);
    bench.reply(asks(&[("c1", "safe"), ("c2", "safe")]));
    let mut resumed = Bench::on(bench.store.reclaimed(), SERIAL);
    assert_eq!(begins(&resumed.begin()), [1]);

    resumed.stop(Stop::Cancel);

    assert_eq!(
        resumed.store.journaled(),
        [("c1", CallState::InDoubt, 2), ("c2", CallState::InDoubt, 1)]
    );
    assert_eq!(
        resumed.store.said()[4],
        format!("user: c2 failed {OUTCOME_UNKNOWN}")
    );
    resumed.store.check_end();
}

#[test]
fn calls_that_were_cut_off_or_invalid_are_answered_the_same_way_after_a_crash() {
    let invalid = ModelReply {
        invalid_inputs: BTreeMap::from([("c1".to_owned(), "[".to_owned())]),
        ..asks(&[("c1", "safe")])
    };
    for reply in [cut_off(&[("c1", "safe")]), invalid] {
        let mut whole = Bench::begun(LIMITS);
        whole.reply(reply.clone());
        let mut bench = Bench::begun(LIMITS);
        let step = bench.agent.advance(Input::Replied {
            reply: Ok(reply),
            left: AMPLE,
        });
        let Ok(Step::Save(answer)) = step else {
            panic!("{step:?} is no write");
        };
        bench.store.make(answer);

        let mut resumed = Bench::on(bench.store.reclaimed(), LIMITS);

        assert_eq!(resumed.begin(), Step::CallModel);
        assert_eq!(resumed.store.said(), whole.store.said());
        assert_eq!(resumed.store.journaled(), whole.store.journaled());
    }
}

#[test]
fn the_model_is_not_asked_again_for_a_turn_whose_answer_is_on_record() {
    let mut bench = crashed(&[("c1", "safe")], LIMITS, &[]);

    bench.begin();
    bench.returned(1, ToolResult::ok("12:00"));
    bench.reply(says("noon"));

    assert_eq!(
        bench.store.said(),
        [
            "user: what time is it?",
            "assistant: safe(c1)",
            "user: c1 gave 12:00",
            "assistant: noon",
        ]
    );
    assert_eq!(bench.store.run.usage, tokens(14));
}
