//! Planning: a list of todos that the model keeps, and finds again in its prompt on every call.
//!
//! `write_todos` replaces the whole list. The list is part of the run's memory, so it survives whatever
//! the run survives; the model sees it as one block of the system prompt and never as a message: a
//! result that repeated it would go stale in the history and cost its tokens on every later call.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::settings::Fields;
use crate::conversation;
use crate::memory::RunMemory;
use crate::middleware::{LayerCall, LayerTool, Middleware};
use crate::model::SystemBlock;
use crate::note::Note;
use crate::run::{Todo, TodoStatus};
use crate::text;
use crate::tool::{Idempotency, ToolDef, ToolFailure, ToolResult, schema};

/// The most items of a list.
pub const MOST_TODOS: usize = 50;

/// The most characters of an item.
pub const MOST_CHARS: usize = 500;

/// What the model sees of a call that went well, whatever it wrote.
const WRITTEN: &str = "The todo list was replaced. It stands in your system prompt.";

const POLICY: &str = "\
Writes your todo list for this run: the plan that you and the people who watch the run see at any time. \
Every call replaces the whole list, so send all items, the completed ones too.

Use it when the work takes three steps or more, when you are given several tasks at once, and when the plan \
changes while you work. Do not use it for a single step, or for a question that you can answer right away: \
there it only costs time.

Keep exactly one item in_progress while you work. Mark an item in_progress before you begin with it, mark it \
completed as soon as it is done, and not when it failed or was left half done. Add what turns out to be \
needed, leave out what no longer is.

Marking the items completed is not an answer. When everything is done, say what came of it.";

/// The layer. Without `write_todos` among an agent's tools its list stays empty, and no block is added.
#[derive(Clone, Copy, Debug)]
pub struct TodoList;

/// What an agent may set of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Settings {
    /// Whether it is there.
    pub enabled: bool,
}

impl Settings {
    pub(super) fn read(fields: &mut Fields<'_>) -> Self {
        Self {
            enabled: fields.switch("enabled", true),
        }
    }
}

impl TodoList {
    /// The layer's name.
    pub const NAME: &'static str = "todo";

    /// The name of its tool.
    pub const TOOL: &'static str = "write_todos";
}

impl Middleware for TodoList {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn system_blocks(&self, memory: &RunMemory) -> Vec<SystemBlock> {
        if memory.todos.is_empty() {
            return Vec::new();
        }
        let mut block = "Your todo list, as write_todos left it:".to_owned();
        for todo in &memory.todos {
            // One line an item: what a todo says must not look like another.
            let words: Vec<&str> = todo.content.split_whitespace().collect();
            let status = status(todo.status);
            block += &["\n- [", status, "] ", &words.join(" ")].concat();
        }
        vec![SystemBlock::new(block)]
    }

    fn tools(&self, _memory: &RunMemory) -> Vec<LayerTool> {
        let item = schema::object([
            schema::field("content", "string", "What is to be done.", true),
            schema::field(
                "status",
                schema::one_of(["pending", "in_progress", "completed"]),
                "How far it is.",
                true,
            ),
        ]);
        let limits = format!(
            "The whole list, in order: at most {MOST_TODOS} items of at most {MOST_CHARS} characters."
        );
        vec![LayerTool {
            definition: ToolDef {
                name: Self::TOOL.to_owned(),
                description: POLICY.to_owned(),
                parameters: schema::object([schema::field(
                    "todos",
                    schema::array(item),
                    &limits,
                    true,
                )]),
            },
            // It sets the memory to what the arguments say, as often as one likes.
            idempotency: Idempotency::Safe,
            execute: Arc::new(write_todos),
        }]
    }
}

/// Replaces the list, unless a call further behind in the batch already has: the last one stands, in
/// whatever order they are executed.
fn write_todos(call: &LayerCall<'_>, memory: &mut RunMemory) -> ToolResult {
    let todos = match read(call.input) {
        Ok(todos) => todos,
        Err(wrong) => {
            let text = format!("the list was not replaced: {wrong}");
            return ToolResult::failed(ToolFailure::InvalidArgs, text);
        }
    };
    let is_last = call.scratch.change(TodoList::NAME, |last: &mut u32| {
        let is_last = call.position >= *last;
        *last = call.position.max(*last);
        is_last
    });
    if is_last {
        let count = |status| todos.iter().filter(|todo| todo.status == status).count();
        call.notes.add(Note::TodosUpdated {
            pending: count(TodoStatus::Pending),
            in_progress: count(TodoStatus::InProgress),
            completed: count(TodoStatus::Completed),
        });
        memory.todos = todos;
    }
    ToolResult::ok(WRITTEN)
}

/// The list that the arguments hold, or what is wrong with them.
fn read(input: &Map<String, Value>) -> Result<Vec<Todo>, String> {
    if let Some(unknown) = input.keys().find(|name| *name != "todos") {
        return Err(format!("there is no argument {unknown:?}"));
    }
    let items = input.get("todos").and_then(Value::as_array);
    let items = items.ok_or("todos must be an array")?;
    if items.len() > MOST_TODOS {
        let count = items.len();
        return Err(format!("{count} items are too many, {MOST_TODOS} at most"));
    }
    let todos = items.iter().enumerate();
    let todos =
        todos.map(|(at, item)| item_of(item).map_err(|wrong| format!("todos[{at}]: {wrong}")));
    let todos: Vec<Todo> = todos.collect::<Result<_, _>>()?;
    let in_progress = todos
        .iter()
        .filter(|todo| todo.status == TodoStatus::InProgress);
    match in_progress.count() {
        0 | 1 => Ok(todos),
        count => Err(format!("{count} items are in_progress, one may be")),
    }
}

fn item_of(item: &Value) -> Result<Todo, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Item {
        content: String,
        status: TodoStatus,
    }
    let Item {
        mut content,
        status,
    } = Item::deserialize(item).map_err(|wrong| wrong.to_string())?;
    // The memory holds what a store will give back.
    text::clean_string(&mut content);
    let chars = content.chars().count();
    if conversation::is_blank(&content) {
        return Err("its content is blank".to_owned());
    }
    if chars > MOST_CHARS {
        return Err(format!(
            "its content has {chars} characters, {MOST_CHARS} at most"
        ));
    }
    Ok(Todo { content, status })
}

const fn status(status: TodoStatus) -> &'static str {
    match status {
        TodoStatus::Pending => "pending",
        TodoStatus::InProgress => "in_progress",
        TodoStatus::Completed => "completed",
    }
}

#[cfg(test)]
mod tests;
