//! Legal and illegal conversations, each fact by an example.

use proptest::prelude::*;

use super::super::fixtures::*;
use super::*;

#[test]
fn a_conversation_with_answered_calls_is_legal() {
    let messages = conversation([
        user([Block::text("hi")]),
        assistant([thinking("hm"), call("a", "f"), call("b", "g")]),
        user([result("a"), result("b"), Block::text("and?")]),
        assistant([Block::text("done")]),
        user([Block::text("thanks")]),
    ]);

    assert_eq!(validate(&messages), Ok(()));
}

#[test]
fn each_fault_is_named_with_its_place() {
    let hi = || user([Block::text("hi")]);
    let id = |id: &str| id.to_owned();
    let table = [
        (vec![], Illegal::Nothing),
        (
            vec![hi(), partial(assistant([Block::text("I th")]))],
            Illegal::Partial { message: 1 },
        ),
        (
            vec![assistant([Block::text("hello")]), hi()],
            Illegal::OutOfTurn { message: 0 },
        ),
        (vec![hi(), hi()], Illegal::OutOfTurn { message: 1 }),
        (vec![user([])], Illegal::EmptyMessage { message: 0 }),
        (
            vec![hi(), assistant([thinking("hm")]), hi()],
            Illegal::EmptyMessage { message: 1 },
        ),
        (
            vec![user([Block::text("hi"), Block::text(" \n\u{a0}")])],
            Illegal::BlankText {
                message: 0,
                block: 1,
            },
        ),
        (
            vec![user([call("a", "f")])],
            Illegal::Misplaced {
                message: 0,
                block: 0,
            },
        ),
        (
            vec![hi(), assistant([call("", "f")])],
            Illegal::EmptyId { message: 1 },
        ),
        (
            vec![
                hi(),
                assistant([call("a", "f")]),
                user([result("a")]),
                assistant([call("a", "f")]),
            ],
            Illegal::DuplicateId {
                message: 3,
                id: id("a"),
            },
        ),
        (
            vec![hi(), assistant([call("a", "read file")])],
            Illegal::ToolName {
                message: 1,
                name: id("read file"),
            },
        ),
        (
            vec![hi(), assistant([call("a", "f")]), hi()],
            Illegal::Unanswered {
                message: 1,
                id: id("a"),
            },
        ),
        (
            vec![user([Block::text("hi"), result("a")])],
            Illegal::UnexpectedResult {
                message: 0,
                id: id("a"),
            },
        ),
        (
            vec![hi(), assistant([Block::text("hello")])],
            Illegal::AssistantLast,
        ),
    ];

    for (drafts, fault) in table {
        assert_eq!(validate(&conversation(drafts)), Err(fault));
    }
}

#[test]
fn results_stand_in_the_order_of_the_calls_before_anything_else() {
    let answered_by = |content: Vec<Block>| {
        validate(&conversation([
            user([Block::text("hi")]),
            assistant([call("a", "f"), call("b", "f")]),
            user(content),
        ]))
    };
    let unexpected = |id: &str| {
        Err(Illegal::UnexpectedResult {
            message: 2,
            id: id.to_owned(),
        })
    };

    assert_eq!(answered_by(vec![result("a"), result("b")]), Ok(()));
    assert_eq!(answered_by(vec![result("b"), result("a")]), unexpected("b"));
    assert_eq!(
        answered_by(vec![result("a"), Block::text("so"), result("b")]),
        unexpected("b")
    );
    assert_eq!(
        answered_by(vec![result("a"), result("b"), result("a")]),
        unexpected("a")
    );
}

#[test]
fn a_tool_name_has_one_to_sixty_four_plain_characters() {
    assert!(is_tool_name("get-time_2"));
    assert!(is_tool_name(&"n".repeat(64)));
    assert!(!is_tool_name(&"n".repeat(65)));
    assert!(!is_tool_name(""));
    assert!(!is_tool_name("größe"));
}

proptest! {
    #[test]
    fn whatever_is_built_by_the_rules_is_legal(messages in legal_conversations()) {
        prop_assert_eq!(validate(&messages), Ok(()));
    }

    #[test]
    fn a_legal_conversation_that_loses_a_message_is_illegal(
        messages in legal_conversations(),
        lost in any::<prop::sample::Index>(),
    ) {
        let mut messages = messages;
        messages.remove(lost.index(messages.len()));
        prop_assert!(validate(&messages).is_err());
    }
}
