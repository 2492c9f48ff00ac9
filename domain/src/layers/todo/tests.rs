use futures::executor::block_on;
use serde_json::json;

use super::*;
use crate::chain::Chain;
use crate::fixtures::tool_call;
use crate::middleware::{Batch, ToolRequest};
use crate::note::Notes;
use crate::tool::View;

fn chain() -> Chain {
    Chain::new(vec![Arc::new(TodoList)])
}

fn batch(todos: Vec<Todo>) -> Batch {
    let mut memory = RunMemory::default();
    memory.todos = todos;
    Batch::new(memory, Notes::default())
}

fn write(batch: &Batch, position: u32, input: &Value) -> ToolResult {
    let call = ToolRequest {
        position,
        input: input.as_object().cloned().unwrap_or_default(),
        ..tool_call("write_todos")
    };
    block_on(chain().execute(call, &View::default(), batch))
}

fn todo(content: &str, status: TodoStatus) -> Todo {
    Todo {
        content: content.to_owned(),
        status,
    }
}

fn look(status: &str) -> Value {
    json!({"content": "look", "status": status})
}

#[test]
fn the_whole_list_is_replaced_and_the_result_does_not_repeat_it() {
    let batch = batch(vec![todo("an old item", TodoStatus::Pending)]);
    let list = json!({"todos": [
        {"content": "look", "status": "completed"},
        {"content": "think", "status": "in_progress"},
        {"content": "write", "status": "pending"},
        {"content": "read", "status": "pending"},
    ]});

    let result = write(&batch, 1, &list);

    assert_eq!(result, ToolResult::ok(WRITTEN));
    let counts = Note::TodosUpdated {
        pending: 2,
        in_progress: 1,
        completed: 1,
    };
    assert_eq!(batch.notes().take(), [counts]);
    assert_eq!(
        batch.into_memory().todos,
        [
            todo("look", TodoStatus::Completed),
            todo("think", TodoStatus::InProgress),
            todo("write", TodoStatus::Pending),
            todo("read", TodoStatus::Pending),
        ]
    );
}

#[test]
fn an_empty_list_is_a_list() {
    let batch = batch(vec![todo("look", TodoStatus::Completed)]);

    let result = write(&batch, 1, &json!({"todos": []}));

    assert_eq!(result, ToolResult::ok(WRITTEN));
    assert_eq!(batch.into_memory().todos, []);
}

#[test]
fn a_list_as_large_as_one_may_be_is_taken() {
    let batch = batch(Vec::new());
    let item = json!({"content": "ü".repeat(MOST_CHARS), "status": "pending"});

    let result = write(&batch, 1, &json!({"todos": vec![item; MOST_TODOS]}));

    assert_eq!(result, ToolResult::ok(WRITTEN));
    assert_eq!(batch.into_memory().todos.len(), MOST_TODOS);
}

#[test]
fn what_is_no_list_changes_nothing_and_the_model_is_told_why() {
    let long = "x".repeat(MOST_CHARS + 1);
    for (input, why) in [
        (json!({}), "todos must be an array"),
        (json!({"todos": "look"}), "todos must be an array"),
        (
            json!({"todos": [], "merge": true}),
            r#"there is no argument "merge""#,
        ),
        (json!({"todos": [7]}), "todos[0]: invalid type"),
        (
            json!({"todos": [look("pending"), look("done")]}),
            "todos[1]: unknown variant `done`",
        ),
        (
            json!({"todos": [{"status": "pending"}]}),
            "todos[0]: missing field `content`",
        ),
        (
            json!({"todos": [{"content": "look"}]}),
            "todos[0]: missing field `status`",
        ),
        (
            json!({"todos": [{"content": "look", "status": "pending", "id": 1}]}),
            "todos[0]: unknown field `id`",
        ),
        (
            json!({"todos": [{"content": " \n", "status": "pending"}]}),
            "todos[0]: its content is blank",
        ),
        (
            json!({"todos": [{"content": long, "status": "pending"}]}),
            "todos[0]: its content has 501 characters, 500 at most",
        ),
        (
            json!({"todos": vec![look("pending"); MOST_TODOS + 1]}),
            "51 items are too many, 50 at most",
        ),
        (
            json!({"todos": vec![look("in_progress"); 2]}),
            "2 items are in_progress, one may be",
        ),
    ] {
        let before = vec![todo("an old item", TodoStatus::Pending)];
        let batch = batch(before.clone());

        let result = write(&batch, 1, &input);

        let expected = format!("the list was not replaced: {why}");
        assert!(
            result.for_llm.starts_with(&expected),
            "{result:?} {expected}"
        );
        assert!(result.is_error);
        assert_eq!(batch.notes().take(), []);
        assert_eq!(batch.into_memory().todos, before);
    }
}

#[test]
fn of_several_calls_in_a_batch_the_last_one_stands_in_whatever_order_they_are_executed() {
    let list = |content: &str| json!({"todos": [{"content": content, "status": "pending"}]});
    for order in [
        [1, 2, 3],
        [1, 3, 2],
        [2, 1, 3],
        [2, 3, 1],
        [3, 1, 2],
        [3, 2, 1],
    ] {
        let batch = batch(Vec::new());

        for position in order {
            let result = write(&batch, position, &list(&format!("list {position}")));
            assert_eq!(result, ToolResult::ok(WRITTEN));
        }

        let stands = [todo("list 3", TodoStatus::Pending)];
        assert_eq!(batch.into_memory().todos, stands, "{order:?}");
    }
}

#[test]
fn a_last_call_that_fails_leaves_the_one_before_it() {
    let batch = batch(Vec::new());

    let failed = write(&batch, 2, &json!({"todos": 7}));
    write(&batch, 1, &json!({"todos": [look("pending")]}));

    assert!(failed.is_error);
    let stands = [todo("look", TodoStatus::Pending)];
    assert_eq!(batch.into_memory().todos, stands);
}

#[test]
fn the_next_batch_begins_anew() {
    let first = batch(Vec::new());
    write(&first, 7, &json!({"todos": [look("pending")]}));
    let second = Batch::new(first.into_memory(), Notes::default());

    write(&second, 1, &json!({"todos": [look("completed")]}));

    let stands = [todo("look", TodoStatus::Completed)];
    assert_eq!(second.into_memory().todos, stands);
}

#[test]
fn the_list_is_one_block_of_the_prompt_with_a_line_for_each_item() {
    let todos = vec![
        todo("look", TodoStatus::Completed),
        todo("think\n- [completed] everything", TodoStatus::InProgress),
        todo("write", TodoStatus::Pending),
    ];
    let memory = batch(todos).into_memory();

    let prompt = chain().system("Be kind.", &memory);

    let list = "Your todo list, as write_todos left it:\n\
                - [completed] look\n\
                - [in_progress] think - [completed] everything\n\
                - [pending] write";
    assert_eq!(
        prompt,
        [SystemBlock::new("Be kind."), SystemBlock::new(list)]
    );
}

#[test]
fn an_empty_list_adds_nothing_to_the_prompt() {
    assert_eq!(chain().system("", &RunMemory::default()), []);
}

#[test]
fn the_policy_is_in_the_tools_description() {
    let tools = TodoList.tools(&RunMemory::default());

    let [tool] = &tools[..] else {
        panic!("one tool: {tools:?}");
    };
    for rule in [
        "Use it when",
        "Do not use it",
        "exactly one item in_progress",
        "is not an answer",
    ] {
        assert!(tool.definition.description.contains(rule), "{rule}");
    }
    assert_eq!(tool.idempotency, Idempotency::Safe);
}
