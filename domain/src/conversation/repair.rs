//! Makes a conversation legal to send, and closes what a crash left open at its end.
//!
//! [`repair`] works on a copy for the provider; what is stored is never rewritten. It is a function of
//! the conversation alone, so every attempt sends the same bytes, and it changes nothing twice. It
//! drops as little as the [rules](super::validate) allow: a user's text is never lost.
//!
//! Two ends of a conversation have no answer in the rules:
//!
//! * an assistant's message before the first user's is dropped, together with what answers it: there is
//!   nobody whom it answers;
//! * an assistant's message at the end, if it asks for no tool, is dropped: providers refuse it or
//!   continue it, and neither is meant. Runs don't come here, each begins with a user's message.

use std::borrow::Cow;
use std::mem;

use super::validate::{belongs_to, is_blank, is_silent, validate};
use super::{Block, Message, Role, UniqueIds};
use crate::journal::NOT_EXECUTED;
use crate::tool::{MAX_TOOL_NAME, is_name_char, is_tool_name};

/// A conversation that is legal to send, or empty if nothing of it can be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Repaired<'a> {
    /// The messages; borrowed if they were legal. One that answers calls for which no message stood is
    /// a copy of the record that asked, apart from its role and content.
    pub messages: Cow<'a, [Message]>,
    /// What was done, in the order of the conversation as far as it goes; empty if it was legal.
    pub repairs: Vec<Repair>,
}

/// One thing that was changed. `seq` is the message's place in its session.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Repair {
    /// What was left of a broken answer was dropped.
    PartialDropped {
        /// The message.
        seq: u64,
    },
    /// A blank text was dropped.
    BlankTextDropped {
        /// Its message.
        seq: u64,
    },
    /// A block that its role never says was dropped.
    MisplacedDropped {
        /// Its message.
        seq: u64,
    },
    /// A message that says nothing was dropped.
    EmptyDropped {
        /// The message.
        seq: u64,
    },
    /// An assistant's message before the first user's was dropped.
    LeadingDropped {
        /// The message.
        seq: u64,
    },
    /// An assistant's message after the last user's was dropped.
    TrailingDropped {
        /// The message.
        seq: u64,
    },
    /// A message was joined to the one before, which has the same role.
    Merged {
        /// The message.
        seq: u64,
    },
    /// A call that had no result was answered with [`NOT_EXECUTED`].
    ResultAdded {
        /// The message that has the result now.
        seq: u64,
        /// The call.
        id: String,
    },
    /// A result that answers no call of the message before, or one again, was dropped.
    ResultDropped {
        /// Its message.
        seq: u64,
        /// The call that it names.
        id: String,
    },
    /// Results were put in the order of the calls, before any other block.
    ResultsMoved {
        /// Their message.
        seq: u64,
    },
    /// A call that had no id, or one that was used before, has another, and so has its result.
    IdChanged {
        /// The call's message.
        seq: u64,
        /// The id as it is stored.
        from: String,
        /// The id as it is sent.
        to: String,
    },
    /// A tool's name was made legal.
    NameChanged {
        /// The call's message.
        seq: u64,
        /// The name as it is stored.
        from: String,
        /// The name as it is sent.
        to: String,
    },
}

/// Makes `messages` legal to send. A legal conversation comes back borrowed.
#[must_use]
pub fn repair(messages: &[Message]) -> Repaired<'_> {
    let mut repairs = Vec::new();
    let messages = if validate(messages).is_ok() {
        Cow::Borrowed(messages)
    } else {
        let tidy = tidy(messages, &mut repairs);
        Cow::Owned(answer_all(tidy, &mut repairs))
    };
    Repaired { messages, repairs }
}

/// The results that are missing at the end of a stored conversation: one user's message of them, to be
/// appended, answers what the last whole answer asked for. `None` if nothing is open.
///
/// What follows that answer is searched whole, because a run's input is stored before its history is
/// looked at.
#[must_use]
pub fn dangling_results(history: &[Message]) -> Option<Vec<Block>> {
    let asked = history
        .iter()
        .rposition(|message| message.role == Role::Assistant && !message.partial)?;
    let mut answered: Vec<&str> = history[asked + 1..]
        .iter()
        .filter(|message| message.role == Role::User && !message.partial)
        .flat_map(|message| message.content.iter().filter_map(answered_id))
        .collect();
    let open: Vec<Block> = history[asked]
        .content
        .iter()
        .filter_map(Block::tool_use_id)
        .filter(|id| {
            let result = answered.iter().position(|answered| answered == id);
            result.map(|at| answered.swap_remove(at)).is_none()
        })
        .map(|id| not_executed(id.to_owned()))
        .collect();
    (!open.is_empty()).then_some(open)
}

/// A call that waits for its result: its id as it is stored and as it is sent.
struct OpenCall {
    stored: String,
    sent: String,
}

/// Leaves out what can't be sent, and joins what then stands side by side with the same role.
fn tidy(messages: &[Message], repairs: &mut Vec<Repair>) -> Vec<Message> {
    let mut tidy = Vec::new();
    for message in messages {
        let seq = message.seq;
        if message.partial {
            repairs.push(Repair::PartialDropped { seq });
            continue;
        }
        let mut message = message.clone();
        message.content.retain(|block| {
            let fault = if !belongs_to(message.role, block) {
                Repair::MisplacedDropped { seq }
            } else if block.as_text().is_some_and(is_blank) {
                Repair::BlankTextDropped { seq }
            } else {
                return true;
            };
            repairs.push(fault);
            false
        });
        if is_silent(&message.content) {
            repairs.push(Repair::EmptyDropped { seq });
        } else {
            push(&mut tidy, message, repairs);
        }
    }
    tidy
}

/// Brings calls and results together. `messages` alternate, but a user's message of nothing but orphan
/// results vanishes, so assistant's messages may have to be joined once more.
fn answer_all(messages: Vec<Message>, repairs: &mut Vec<Repair>) -> Vec<Message> {
    let mut sent: Vec<Message> = Vec::with_capacity(messages.len() + 1);
    let mut ids = UniqueIds::default();
    let mut open = Vec::new();
    for mut message in messages {
        let seq = message.seq;
        match message.role {
            Role::Assistant if sent.is_empty() => repairs.push(Repair::LeadingDropped { seq }),
            Role::Assistant => {
                open.extend(begin_calls(&mut message, &mut ids, repairs));
                push(&mut sent, message, repairs);
            }
            Role::User => {
                answer(&mut message, mem::take(&mut open), repairs);
                if message.content.is_empty() {
                    repairs.push(Repair::EmptyDropped { seq });
                } else {
                    sent.push(message);
                }
            }
        }
    }
    if let Some(last) = sent.pop_if(|last| last.role == Role::Assistant) {
        if open.is_empty() {
            repairs.push(Repair::TrailingDropped { seq: last.seq });
        } else {
            let mut results = Message {
                role: Role::User,
                content: Vec::new(),
                ..last.clone()
            };
            answer(&mut results, open, repairs);
            sent.extend([last, results]);
        }
    }
    sent
}

fn push(messages: &mut Vec<Message>, message: Message, repairs: &mut Vec<Repair>) {
    match messages.last_mut() {
        Some(last) if last.role == message.role => {
            repairs.push(Repair::Merged { seq: message.seq });
            last.content.extend(message.content);
        }
        Some(_) | None => messages.push(message),
    }
}

/// Makes ids and names of a message's calls legal, and tells the calls.
fn begin_calls(
    message: &mut Message,
    ids: &mut UniqueIds,
    repairs: &mut Vec<Repair>,
) -> Vec<OpenCall> {
    let seq = message.seq;
    let mut calls = Vec::new();
    for block in &mut message.content {
        let Block::ToolUse { id, name, .. } = block else {
            continue;
        };
        if !is_tool_name(name) {
            let from = mem::replace(name, legal_name(name));
            let to = name.clone();
            repairs.push(Repair::NameChanged { seq, from, to });
        }
        let sent = ids.claim(if id.is_empty() { "call" } else { id });
        let stored = mem::replace(id, sent.clone());
        if stored != sent {
            let (from, to) = (stored.clone(), sent.clone());
            repairs.push(Repair::IdChanged { seq, from, to });
        }
        calls.push(OpenCall { stored, sent });
    }
    calls
}

/// Gives a user's message exactly the results of `calls`, in their order and before its other blocks.
fn answer(message: &mut Message, calls: Vec<OpenCall>, repairs: &mut Vec<Repair>) {
    let seq = message.seq;
    let (mut results, others): (Vec<_>, Vec<_>) = mem::take(&mut message.content)
        .into_iter()
        .enumerate()
        .partition(|(_, block)| answered_id(block).is_some());
    let mut places = Vec::new();
    for OpenCall { stored, sent } in calls {
        let found = results
            .iter()
            .position(|(_, result)| answered_id(result) == Some(&stored));
        if let Some(found) = found {
            let (place, mut result) = results.remove(found);
            if let Block::ToolResult { tool_use_id, .. } = &mut result {
                *tool_use_id = sent;
            }
            places.push(place);
            message.content.push(result);
        } else {
            message.content.push(not_executed(sent.clone()));
            repairs.push(Repair::ResultAdded { seq, id: sent });
        }
    }
    for (_, orphan) in results {
        let id = answered_id(&orphan).unwrap_or_default().to_owned();
        repairs.push(Repair::ResultDropped { seq, id });
    }
    for (place, other) in others {
        places.push(place);
        message.content.push(other);
    }
    if !places.is_sorted() {
        repairs.push(Repair::ResultsMoved { seq });
    }
}

fn answered_id(block: &Block) -> Option<&str> {
    match block {
        Block::ToolResult { tool_use_id, .. } => Some(tool_use_id),
        Block::Text { .. }
        | Block::ToolUse { .. }
        | Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::Provider(_) => None,
    }
}

fn not_executed(tool_use_id: String) -> Block {
    Block::ToolResult {
        tool_use_id,
        content: NOT_EXECUTED.to_owned(),
        for_user: None,
        is_error: true,
    }
}

/// The nearest name that every provider takes.
fn legal_name(name: &str) -> String {
    if name.is_empty() {
        return "unnamed".to_owned();
    }
    name.chars()
        .take(MAX_TOOL_NAME)
        .map(|char| if is_name_char(char) { char } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests;
