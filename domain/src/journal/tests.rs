//! The journal's rules: what begins, what is executed again, and what closes a turn.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::conversation::Role;
use crate::run::Progress;
use crate::run::fixtures::{at, message_id, queued};
use crate::tool::ToolFailure;

fn new_call(position: u32, starts: bool) -> NewToolCall {
    NewToolCall {
        id: ToolCallId(Uuid::from_u128(position.into())),
        position,
        tool_use_id: format!("c{position}"),
        name: "safe".to_owned(),
        input: Map::new(),
        invalid_input: None,
        starts,
    }
}

fn entry(position: u32, name: &str, state: CallState) -> ToolCall {
    let begun = NewToolCall {
        name: name.to_owned(),
        ..new_call(position, state != CallState::Pending)
    };
    let call = ToolCall::begin(queued().id, 1, begun, at(1));
    match state {
        CallState::Pending | CallState::Started => call,
        CallState::Finished => {
            let result = call.to_result(ToolResult::ok("known"), false, Some(3));
            call.settled(&result, at(2))
        }
        CallState::InDoubt => {
            let result = call.to_result(ToolResult::error(OUTCOME_UNKNOWN), true, None);
            call.settled(&result, at(2))
        }
    }
}

fn class_of(name: &str) -> Option<Idempotency> {
    match name {
        "safe" => Some(Idempotency::Safe),
        "keyed" => Some(Idempotency::Keyed),
        "unsafe" => Some(Idempotency::Unsafe),
        _ => None,
    }
}

fn ask(id: &str) -> Block {
    Block::ToolUse {
        id: id.to_owned(),
        name: "safe".to_owned(),
        input: Map::new(),
        provider_data: None,
    }
}

/// Each call's result in a message: its id, text and whether it is an error.
fn results(message: &NewMessage) -> Vec<(&str, &str, bool)> {
    message
        .content
        .iter()
        .filter_map(|block| match block {
            Block::ToolResult {
                tool_use_id,
                content,
                is_error,
                ..
            } => Some((tool_use_id.as_str(), content.as_str(), *is_error)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_call_is_followed_from_its_answer_to_its_result() {
    let pending = ToolCall::begin(queued().id, 2, new_call(1, false), at(1));
    assert_eq!(
        (pending.state, pending.executions, pending.started_at),
        (CallState::Pending, 0, None)
    );

    let started = pending.started(at(2));
    assert_eq!(
        (started.state, started.executions, started.started_at),
        (CallState::Started, 1, Some(at(2)))
    );

    let result = started.to_result(ToolResult::ok("12:00"), false, Some(3));
    let finished = started.clone().settled(&result, at(3));
    assert_eq!(
        finished,
        ToolCall {
            state: CallState::Finished,
            result: Some(ToolResult::ok("12:00")),
            finished_at: Some(at(3)),
            ..started
        }
    );
}

#[test]
fn a_call_that_starts_with_its_answer_is_begun_then() {
    let started = ToolCall::begin(queued().id, 1, new_call(1, true), at(1));

    assert_eq!(
        (started.state, started.executions, started.started_at),
        (CallState::Started, 1, Some(at(1)))
    );
}

#[test]
fn the_idempotency_key_tells_calls_apart_and_executions_not() {
    let call = entry(1, "keyed", CallState::Started);
    let of_turn_2 = ToolCall {
        turn: 2,
        ..call.clone()
    };

    assert_eq!(
        call.idempotency_key(),
        call.clone().started(at(9)).idempotency_key()
    );
    assert_ne!(call.idempotency_key(), of_turn_2.idempotency_key());
    assert_ne!(
        call.idempotency_key(),
        entry(2, "keyed", CallState::Started).idempotency_key()
    );
}

#[test]
fn every_state_is_read_back_from_its_word() {
    for state in CallState::ALL {
        assert_eq!(CallState::parse(state.as_str()), Some(state));
    }
    assert_eq!(CallState::parse("running"), None);
}

#[test]
fn an_answers_calls_are_numbered_in_its_order_and_the_first_ones_start() {
    let content = [ask("a"), Block::text("and"), ask("b"), ask("c"), ask("d")];
    let mut ids = (1..).map(Uuid::from_u128);
    let invalid = |id: &str| (id == "b").then(|| "[1".to_owned());

    let calls = batch(&content, invalid, false, 2, || {
        ids.next().expect("an endless range")
    });

    let seen: Vec<_> = calls
        .iter()
        .map(|call| {
            let text = call.invalid_input.as_deref();
            (call.position, call.tool_use_id.as_str(), text, call.starts)
        })
        .collect();
    assert_eq!(
        seen,
        [
            (1, "a", None, true),
            (2, "b", Some("[1"), false),
            (3, "c", None, true),
            (4, "d", None, false),
        ]
    );
}

#[test]
fn no_call_of_an_answer_that_was_cut_off_starts() {
    let calls = batch(&[ask("a")], |_| None, true, 2, Uuid::nil);

    assert!(calls.iter().all(|call| !call.starts));
}

#[test]
fn a_turn_is_closed_with_what_is_known_and_what_nobody_knows() {
    let calls = [
        entry(1, "safe", CallState::Finished),
        entry(2, "safe", CallState::Started),
        entry(3, "safe", CallState::Pending),
        entry(4, "safe", CallState::InDoubt),
    ];

    let closing = close(&calls, message_id(7));

    assert_eq!(closing.message.id, message_id(7));
    assert_eq!(closing.message.role, Role::User);
    assert_eq!(
        results(&closing.message),
        [
            ("c1", "known", false),
            ("c2", OUTCOME_UNKNOWN, true),
            ("c3", NOT_EXECUTED, true),
            ("c4", OUTCOME_UNKNOWN, true),
        ]
    );
    let interrupted = |text: &str| ToolResult::failed(ToolFailure::Interrupted, text);
    assert_eq!(
        closing.results,
        [
            calls[1].to_result(interrupted(OUTCOME_UNKNOWN), true, None),
            calls[2].to_result(interrupted(NOT_EXECUTED), false, None),
        ]
    );
}

#[test]
fn the_message_that_closes_a_run_has_an_id_of_that_run_alone() {
    let other = RunId(Uuid::from_u128(99));

    assert_eq!(
        closing_message_id(queued().id),
        closing_message_id(queued().id)
    );
    assert_ne!(closing_message_id(queued().id), closing_message_id(other));
}

#[test]
fn an_open_answer_is_the_runs_last_one_and_there_only_before_its_turn_is_complete() {
    let run = |resume_turn, answered_turn| {
        let mut run = queued();
        run.progress = Progress {
            resume_turn,
            answered_turn,
            ..run.progress
        };
        run
    };
    let message = |run: Option<RunId>, block: Block| {
        let message = NewMessage {
            role: Role::Assistant,
            ..NewMessage::user(message_id(1), vec![block])
        };
        message.stored(queued().session_id, run, 1, at(0))
    };
    let own = Some(queued().id);
    let history = [
        message(own, ask("a")),
        message(own, ask("b")),
        message(None, Block::text("hurry")),
    ];

    assert_eq!(open_answer(&run(1, 2), &history), Some(1));
    assert_eq!(open_answer(&run(2, 2), &history), None);
    assert_eq!(open_answer(&run(0, 1), &history[2..]), None);
    let of_another = [message(Some(RunId(Uuid::from_u128(99))), ask("a"))];
    assert_eq!(open_answer(&run(0, 1), &of_another), None);
}

fn any_journal() -> impl Strategy<Value = Vec<ToolCall>> {
    let name = select(vec!["safe", "keyed", "unsafe", "gone"]);
    vec((name, select(CallState::ALL.to_vec())), 0..6).prop_map(|calls| {
        let entries = (1..).zip(calls);
        entries
            .map(|(position, (name, state))| entry(position, name, state))
            .collect()
    })
}

proptest! {
    #[test]
    fn every_open_call_is_either_executed_or_in_doubt_and_no_settled_one_is(
        calls in any_journal(),
    ) {
        let plan = resume(&calls, class_of);

        for call in &calls {
            let executed = plan.execute.contains(&call.position);
            let doubted = plan.in_doubt.iter().any(|it| it.position == call.position);
            let once = matches!(class_of(&call.name), None | Some(Idempotency::Unsafe));
            let expected = match call.state {
                CallState::Finished | CallState::InDoubt => (false, false),
                CallState::Pending => (true, false),
                CallState::Started => (!once, once),
            };
            prop_assert_eq!((executed, doubted), expected);
        }
        prop_assert!(plan.execute.is_sorted());
    }

    #[test]
    fn a_closing_answers_each_call_once_in_order(calls in any_journal()) {
        let closing = close(&calls, message_id(7));

        let asked: Vec<&str> = calls.iter().map(|call| call.tool_use_id.as_str()).collect();
        let answered: Vec<&str> = results(&closing.message).iter().map(|it| it.0).collect();
        prop_assert_eq!(answered, asked);
        let open = calls.iter().filter(|call| !call.is_settled());
        let open: Vec<u32> = open.map(|call| call.position).collect();
        let closed: Vec<u32> = closing.results.iter().map(|it| it.position).collect();
        prop_assert_eq!(closed, open);
    }
}
