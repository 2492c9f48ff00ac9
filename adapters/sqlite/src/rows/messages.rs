//! Rows of `messages`, `tool_calls` and `events`.

use hango_domain::conversation::Message;
use hango_domain::event::{Event, EventKind};
use hango_domain::journal::ToolCall;
use sqlx::sqlite::SqliteRow;

use super::Columns;
use crate::error::Error;

/// A message.
pub(crate) fn message(row: &SqliteRow) -> Result<Message, Error> {
    let columns = Columns::new(row, "messages", "id");
    Ok(Message {
        id: columns.id("id")?,
        session_id: columns.id("session_id")?,
        run_id: columns.maybe_id("run_id")?,
        seq: columns.number("seq")?,
        role: columns.word("role")?,
        content: columns.json("content")?,
        stop_reason: columns.maybe_word("stop_reason")?,
        usage: columns.maybe_json("usage")?,
        partial: columns.get("partial")?,
        created_at: columns.time("created_at")?,
    })
}

/// An entry of the journal.
pub(crate) fn tool_call(row: &SqliteRow) -> Result<ToolCall, Error> {
    let columns = Columns::new(row, "tool_calls", "id");
    Ok(ToolCall {
        id: columns.id("id")?,
        run_id: columns.id("run_id")?,
        turn: columns.number("turn")?,
        position: columns.number("position")?,
        tool_use_id: columns.get("tool_use_id")?,
        name: columns.get("name")?,
        input: columns.json("input")?,
        invalid_input: columns.get("invalid_input")?,
        state: columns.word("state")?,
        executions: columns.number("executions")?,
        result: columns.maybe_json("result")?,
        started_at: columns.maybe_time("started_at")?,
        finished_at: columns.maybe_time("finished_at")?,
    })
}

/// An event, of any format.
pub(crate) fn event(row: &SqliteRow) -> Result<Event, Error> {
    let columns = Columns::new(row, "events", "run_id");
    let told = columns.json("kind")?;
    let kind = EventKind::from_stored(columns.number("version")?, told);
    Ok(Event {
        run_id: columns.id("run_id")?,
        n: columns.number("n")?,
        turn: columns.number("turn")?,
        attempt: columns.number("attempt")?,
        at: columns.time("at")?,
        kind: columns.parsed("kind", kind)?,
    })
}
