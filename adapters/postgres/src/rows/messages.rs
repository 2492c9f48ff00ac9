//! Rows of `messages` and `tool_calls`.

use hango_domain::conversation::Message;
use hango_domain::journal::ToolCall;
use sqlx::postgres::PgRow;

use super::Columns;
use crate::error::Error;

/// A message.
pub(crate) fn message(row: &PgRow) -> Result<Message, Error> {
    let columns = Columns::new(row, "messages", "id");
    Ok(Message {
        id: columns.id("id")?,
        session_id: columns.id("session_id")?,
        run_id: columns.maybe_id("run_id")?,
        seq: columns.big_number("seq")?,
        role: columns.word("role")?,
        content: columns.json("content")?,
        stop_reason: columns.maybe_word("stop_reason")?,
        usage: columns.maybe_json("usage")?,
        partial: columns.get("partial")?,
        created_at: columns.time("created_at")?,
    })
}

/// An entry of the journal.
pub(crate) fn tool_call(row: &PgRow) -> Result<ToolCall, Error> {
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
