//! Answers and their tools.

use super::*;
use crate::conversation::{Block, StopReason};
use crate::journal::CallState;
use crate::run::ChangeKind as Kind;

const ONE_TURN: LoopLimits = LoopLimits {
    max_iterations: 1,
    ..LIMITS
};

#[test]
fn a_text_ends_the_run_in_one_write() {
    let mut bench = Bench::begun(LIMITS);

    let step = bench.reply(says("noon"));

    assert_eq!(step, Step::Done);
    assert_eq!(bench.writes(), [Kind::Finish]);
    assert_eq!(
        bench.store.said(),
        ["user: what time is it?", "assistant: noon"]
    );
    let run = &bench.store.run;
    assert_eq!(bench.store.ended(), "succeeded");
    assert_eq!(run.final_message_id, Some(bench.store.messages[1].id));
    assert_eq!(run.stop_reason, Some(StopReason::EndTurn));
    assert_eq!((run.iterations, run.usage), (1, tokens(7)));
}

#[test]
fn a_tool_turn_is_two_writes_and_the_model_reads_its_result() {
    let mut bench = Bench::begun(LIMITS);

    let step = bench.reply(asks(&[("c1", "safe")]));
    assert_eq!(begins(&step), [1]);
    assert_eq!(bench.store.journaled(), [("c1", CallState::Started, 1)]);
    assert_eq!(bench.returned(1, ToolResult::ok("12:00")), Step::CallModel);
    assert_eq!(bench.reply(says("noon")), Step::Done);

    assert_eq!(
        bench.writes(),
        [Kind::Answer, Kind::CompleteTurn, Kind::Finish]
    );
    assert_eq!(
        bench.store.said(),
        [
            "user: what time is it?",
            "assistant: safe(c1)",
            "user: c1 gave 12:00",
            "assistant: noon",
        ]
    );
    assert_eq!(bench.store.run.iterations, 2);
    assert_eq!(bench.store.run.usage, tokens(14));
    bench.store.check_end();
}

#[test]
fn a_tool_that_fails_is_the_models_to_read() {
    let mut bench = Bench::begun(LIMITS);

    bench.reply(asks(&[("c1", "safe")]));
    bench.returned(1, ToolResult::error("no such zone"));
    bench.reply(asks(&[("c2", "safe")]));
    bench.returned(1, ToolResult::ok("12:00"));
    bench.reply(says("noon"));

    assert_eq!(
        bench.store.said(),
        [
            "user: what time is it?",
            "assistant: safe(c1)",
            "user: c1 failed no such zone",
            "assistant: safe(c2)",
            "user: c2 gave 12:00",
            "assistant: noon",
        ]
    );
    assert_eq!(bench.store.ended(), "succeeded");
}

#[test]
fn a_batch_is_executed_so_many_at_a_time_each_result_on_record_before_the_next_call() {
    let mut bench = Bench::begun(LIMITS);

    let four = [
        ("c1", "safe"),
        ("c2", "safe"),
        ("c3", "safe"),
        ("c4", "safe"),
    ];
    let step = bench.reply(asks(&four));
    assert_eq!(begins(&step), [1, 2]);
    let step = bench.returned(2, ToolResult::ok("b"));
    assert_eq!(begins(&step), [3]);
    assert_eq!(
        bench.store.journaled(),
        [
            ("c1", CallState::Started, 1),
            ("c2", CallState::Finished, 1),
            ("c3", CallState::Started, 1),
            ("c4", CallState::Pending, 0),
        ]
    );
    assert_eq!(begins(&bench.returned(1, ToolResult::ok("a"))), [4]);
    assert!(begins(&bench.returned(4, ToolResult::ok("d"))).is_empty());
    assert_eq!(bench.returned(3, ToolResult::ok("c")), Step::CallModel);

    assert_eq!(
        bench.writes(),
        [
            Kind::Answer,
            Kind::Record,
            Kind::Record,
            Kind::Record,
            Kind::CompleteTurn
        ]
    );
    assert_eq!(
        bench.store.said()[5..],
        [
            "user: c1 gave a",
            "user: c2 gave b",
            "user: c3 gave c",
            "user: c4 gave d",
        ]
    );
}

#[test]
fn no_concurrency_is_one_at_a_time() {
    let mut bench = Bench::begun(LoopLimits {
        tool_concurrency: 1,
        ..LIMITS
    });

    let step = bench.reply(asks(&[("c1", "safe"), ("c2", "safe")]));

    assert_eq!(begins(&step), [1]);
    assert_eq!(begins(&bench.returned(1, ToolResult::ok("a"))), [2]);
}

#[test]
fn a_cap_of_one_is_one_model_call_its_tools_and_a_text_that_explains_it() {
    let mut bench = Bench::begun(ONE_TURN);

    bench.reply(asks(&[("c1", "safe")]));
    let step = bench.returned(1, ToolResult::ok("12:00"));

    assert_eq!(step, Step::Done);
    assert_eq!(bench.writes(), [Kind::Answer, Kind::Finish]);
    assert_eq!(bench.store.ended(), "max_iterations");
    let run = &bench.store.run;
    let last = bench.store.messages.last().expect("a last message");
    assert_eq!(run.final_message_id, Some(last.id));
    assert_eq!(run.stop_reason, Some(StopReason::ToolUse));
    assert_eq!((run.iterations, run.usage), (1, tokens(7)));
    let said = bench.store.said();
    assert_eq!(said[2], "user: c1 gave 12:00");
    assert!(said[3].starts_with("assistant: I stopped here"), "{said:?}");
    bench.store.check_end();
}

#[test]
fn a_text_within_the_cap_is_no_failure() {
    let mut bench = Bench::begun(ONE_TURN);

    bench.reply(says("noon"));

    assert_eq!(bench.store.ended(), "succeeded");
}

#[test]
fn a_run_resumed_behind_its_cap_ends_without_another_call() {
    let mut bench = Bench::begun(LIMITS);
    bench.agent.give_back_at_boundary(RequeueReason::Drain);
    bench.reply(asks(&[("c1", "safe")]));
    bench.returned(1, ToolResult::ok("12:00"));

    let mut resumed = Bench::on(bench.store.claimed(), ONE_TURN);

    assert_eq!(resumed.begin(), Step::Done);
    assert_eq!(resumed.store.ended(), "max_iterations");
    resumed.store.check_end();
}

#[test]
fn a_tool_call_makes_a_tool_turn_whatever_the_stop_reason() {
    let mut bench = Bench::begun(LIMITS);

    let step = bench.reply(ModelReply {
        stop_reason: StopReason::EndTurn,
        ..asks(&[("c1", "safe")])
    });

    assert_eq!(begins(&step), [1]);
}

#[test]
fn an_answer_at_its_limit_a_stop_sequence_or_a_refusal_is_an_end_with_that_reason() {
    for reason in [
        StopReason::MaxTokens,
        StopReason::StopSequence,
        StopReason::Refusal,
    ] {
        let mut bench = Bench::begun(LIMITS);

        bench.reply(answer(vec![Block::text("as far as")], reason));

        assert_eq!(bench.store.ended(), "succeeded");
        assert_eq!(bench.store.run.stop_reason, Some(reason));
        assert!(bench.store.run.final_message_id.is_some());
    }
}

#[test]
fn a_stop_sequence_or_a_refusal_explains_an_empty_answer() {
    for reason in [StopReason::StopSequence, StopReason::Refusal] {
        let mut bench = Bench::begun(LIMITS);

        assert_eq!(bench.reply(empty(reason)), Step::Done);

        assert_eq!(bench.store.ended(), "succeeded");
        assert_eq!(bench.store.run.stop_reason, Some(reason));
        assert_eq!(bench.store.run.final_message_id, None);
        assert_eq!(bench.store.run.usage, tokens(7));
        assert_eq!(bench.store.said(), ["user: what time is it?"]);
    }
}
