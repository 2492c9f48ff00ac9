use proptest::prelude::*;

use super::super::fixtures::*;
use super::*;
use crate::conversation::NewMessage;

fn hi() -> NewMessage {
    user([Block::text("hi")])
}

fn interrupted(id: &str) -> Block {
    not_executed(id.to_owned())
}

/// What is sent: roles and blocks.
fn contents(repaired: &Repaired<'_>) -> Vec<(Role, Vec<Block>)> {
    repaired
        .messages
        .iter()
        .map(|message| (message.role, message.content.clone()))
        .collect()
}

#[test]
fn a_missing_result_is_added_where_it_belongs() {
    let history = conversation([
        hi(),
        assistant([call("a", "f"), call("b", "f")]),
        user([Block::text("go on"), result("b")]),
    ]);

    let repaired = repair(&history);

    let answers = vec![interrupted("a"), result("b"), Block::text("go on")];
    assert_eq!(contents(&repaired)[2], (Role::User, answers));
    let id = "a".to_owned();
    assert_eq!(
        repaired.repairs,
        [
            Repair::ResultAdded { seq: 3, id },
            Repair::ResultsMoved { seq: 3 }
        ]
    );
}

#[test]
fn calls_at_the_end_are_answered_by_a_message_of_their_own() {
    let history = conversation([hi(), assistant([call("a", "f")])]);

    let repaired = repair(&history);

    let answers = vec![interrupted("a")];
    assert_eq!(contents(&repaired)[2], (Role::User, answers));
    assert_eq!(repaired.messages[1], history[1]);
}

#[test]
fn an_id_that_is_used_again_is_changed_on_both_sides() {
    let turn = || [assistant([call("f:0", "f")]), user([result("f:0")])];
    let history = conversation([hi()].into_iter().chain(turn()).chain(turn()));

    let repaired = repair(&history);

    assert_eq!(repaired.messages[..3], history[..3]);
    assert_eq!(
        contents(&repaired)[3..],
        [
            (Role::Assistant, vec![call("f:0_2", "f")]),
            (Role::User, vec![result("f:0_2")])
        ]
    );
}

#[test]
fn equal_ids_in_one_answer_take_their_results_in_order() {
    let second = Block::ToolResult {
        tool_use_id: "a".to_owned(),
        content: "second".to_owned(),
        for_user: None,
        is_error: false,
    };
    let history = conversation([
        hi(),
        assistant([call("a", "f"), call("a", "f")]),
        user([result("a"), second]),
    ]);

    let repaired = repair(&history);

    let Block::ToolResult {
        tool_use_id,
        content,
        ..
    } = &repaired.messages[2].content[1]
    else {
        panic!("not a result");
    };
    assert_eq!((tool_use_id.as_str(), content.as_str()), ("a_2", "second"));
}

#[test]
fn a_name_that_no_provider_takes_is_made_legal() {
    let long = "n".repeat(70);
    let history = conversation([
        hi(),
        assistant([call("a", "read file"), call("b", ""), call("c", &long)]),
        user([result("a"), result("b"), result("c")]),
    ]);

    let asked = contents(&repair(&history)).swap_remove(1).1;

    assert_eq!(
        asked,
        [
            call("a", "read_file"),
            call("b", "unnamed"),
            call("c", &long[..64])
        ]
    );
}

#[test]
fn what_was_left_of_a_broken_answer_is_not_sent() {
    let history = conversation([hi(), partial(assistant([Block::text("I th")])), hi()]);

    let repaired = repair(&history);

    let twice = vec![Block::text("hi"), Block::text("hi")];
    assert_eq!(contents(&repaired), [(Role::User, twice)]);
    assert_eq!(
        repaired.repairs,
        [Repair::PartialDropped { seq: 2 }, Repair::Merged { seq: 3 }]
    );
}

#[test]
fn orphan_results_vanish_and_their_neighbours_are_joined() {
    let history = conversation([
        hi(),
        assistant([Block::text("one")]),
        user([result("gone")]),
        assistant([Block::text("two")]),
        hi(),
    ]);

    let repaired = repair(&history);

    let both = vec![Block::text("one"), Block::text("two")];
    assert_eq!(contents(&repaired)[1], (Role::Assistant, both));
    assert_eq!(repaired.messages.len(), 3);
}

#[test]
fn an_assistant_is_neither_first_nor_last_to_speak() {
    let history = conversation([
        assistant([call("a", "f")]),
        user([result("a")]),
        assistant([Block::text("so")]),
        hi(),
        assistant([Block::text("well")]),
    ]);

    let repaired = repair(&history);

    assert_eq!(repaired.messages[..], history[3..4]);
}

#[test]
fn nothing_is_left_of_a_conversation_that_says_nothing() {
    let history = conversation([user([Block::text(" ")]), assistant([thinking("hm")])]);

    assert_eq!(repair(&history).messages[..], []);
}

#[test]
fn open_calls_at_the_end_of_the_history_are_told() {
    let asked = || assistant([call("a", "f"), call("b", "f")]);
    let dangling = |tail: Vec<NewMessage>| {
        dangling_results(&conversation([hi(), asked()].into_iter().chain(tail)))
    };
    let both = Some(vec![interrupted("a"), interrupted("b")]);

    assert_eq!(dangling(vec![]), both);
    assert_eq!(dangling(vec![hi()]), both);
    assert_eq!(
        dangling(vec![partial(assistant([Block::text("I th")])), hi()]),
        both
    );
    assert_eq!(
        dangling(vec![user([result("a")]), hi()]),
        Some(vec![interrupted("b")])
    );
    assert_eq!(dangling(vec![user([result("a"), result("b")])]), None);
    assert_eq!(dangling(vec![assistant([Block::text("done")])]), None);
    assert_eq!(dangling_results(&[]), None);
}

fn texts(messages: &[Message]) -> Vec<&str> {
    messages
        .iter()
        .filter(|message| message.role == Role::User && !message.partial)
        .flat_map(|message| message.content.iter().filter_map(Block::as_text))
        .filter(|text| !is_blank(text))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_history_is_legal_once_it_is_repaired(history in any_conversation()) {
        let repaired = repair(&history);

        if !repaired.messages.is_empty() {
            prop_assert_eq!(validate(&repaired.messages), Ok(()));
        }
    }

    #[test]
    fn nothing_is_repaired_twice(history in any_conversation()) {
        let once = repair(&history);
        let twice = repair(&once.messages);

        prop_assert_eq!(&twice.messages, &once.messages);
        prop_assert_eq!(twice.repairs, vec![]);
    }

    #[test]
    fn every_change_is_noted(history in any_conversation()) {
        let repaired = repair(&history);

        prop_assert_eq!(repaired.repairs.is_empty(), repaired.messages[..] == history[..]);
    }

    #[test]
    fn a_legal_conversation_comes_back_as_it_is(history in legal_conversations()) {
        let repaired = repair(&history);

        prop_assert!(matches!(repaired.messages, Cow::Borrowed(_)));
        prop_assert_eq!(&repaired.messages[..], &history[..]);
    }

    #[test]
    fn no_text_of_a_user_is_lost(history in any_conversation()) {
        let repaired = repair(&history);

        prop_assert_eq!(texts(&repaired.messages), texts(&history));
    }

    #[test]
    fn one_appended_message_leaves_nothing_open_at_the_end(history in any_conversation()) {
        let Some(results) = dangling_results(&history) else {
            return Ok(());
        };
        let mut history = history;
        let seq = history.len() as u64 + 1;
        let appended = conversation([user(results)]).swap_remove(0);
        history.push(Message { seq, ..appended });

        prop_assert_eq!(dangling_results(&history), None);
    }
}
