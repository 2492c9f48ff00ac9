//! A change as any store can keep it: whatever a model or a tool said in it is clean text.

use super::{Change, Closing, Outcome, StartedCall, StoredMemory, Todo};
use crate::conversation::NewMessage;
use crate::journal::{CallResult, NewToolCall};
use crate::text;

impl Change {
    /// Cleans all text of the change, as [`text`] says, and tells how many characters it replaced.
    /// A clean change stays as it is.
    pub fn clean(&mut self) -> usize {
        match self {
            Self::Claim { .. } | Self::Renew { .. } | Self::Retry(_) => 0,
            Self::Repair(change) => message(&mut change.message),
            Self::Answer(change) => message(&mut change.message) + each(&mut change.calls, call),
            Self::Resume(change) => {
                each(&mut change.in_doubt, result) + each(&mut change.starts, start)
            }
            Self::Record(change) => result(&mut change.result) + each(&mut change.starts, start),
            Self::CompleteTurn(change) => {
                each(&mut change.results, result)
                    + message(&mut change.message)
                    + each(&mut change.memory, memory)
                    + each(change.todos.iter_mut().flatten(), todo)
            }
            Self::GiveBack(change) => each(&mut change.closing, closing),
            Self::Finish(change) => {
                each(&mut change.results, result)
                    + each(&mut change.messages, message)
                    + each(&mut change.memory, memory)
                    + each(change.todos.iter_mut().flatten(), todo)
                    + match &mut change.outcome {
                        Outcome::Failed(error) => text::clean_string(&mut error.message),
                        Outcome::Succeeded | Outcome::Cancelled => 0,
                    }
            }
            Self::RequestCancel { closing: it } => each(it, closing),
            Self::Reclaim(change) => each(&mut change.closing, closing),
        }
    }
}

fn each<'a, T: 'a>(
    all: impl IntoIterator<Item = &'a mut T>,
    clean: impl FnMut(&'a mut T) -> usize,
) -> usize {
    all.into_iter().map(clean).sum()
}

fn message(message: &mut NewMessage) -> usize {
    text::clean_blocks(&mut message.content)
}

fn call(call: &mut NewToolCall) -> usize {
    text::clean_string(&mut call.tool_use_id)
        + text::clean_string(&mut call.name)
        + text::clean_map(&mut call.input)
        + each(&mut call.invalid_input, text::clean_string)
}

fn result(result: &mut CallResult) -> usize {
    text::clean_string(&mut result.tool_use_id)
        + text::clean_string(&mut result.name)
        + text::clean_string(&mut result.result.for_llm)
        + each(&mut result.result.for_user, text::clean_string)
}

fn start(start: &mut StartedCall) -> usize {
    text::clean_string(&mut start.tool_use_id) + text::clean_string(&mut start.name)
}

fn closing(closing: &mut Closing) -> usize {
    message(&mut closing.message) + each(&mut closing.results, result)
}

fn memory(memory: &mut StoredMemory) -> usize {
    text::clean_value(&mut memory.json)
}

fn todo(todo: &mut Todo) -> usize {
    text::clean_string(&mut todo.content)
}
