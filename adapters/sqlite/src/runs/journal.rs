//! The statements on `tool_calls`: the journal of the runs' tool calls.

use hango_domain::journal::{CallState, NewToolCall, ToolCall, close, closing_message_id};
use hango_domain::run::{Closing, Effects, Run, StartedCall};
use hango_domain::{RunId, Timestamp};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteExecutor;
use sqlx::types::Json;

use crate::error::Error;
use crate::rows;

/// The journal of a run, or of one turn of it, by turn and position.
pub(crate) async fn calls<'e>(
    executor: impl SqliteExecutor<'e>,
    run: RunId,
    turn: Option<u32>,
) -> Result<Vec<ToolCall>, Error> {
    let rows = sqlx::query(
        "select id, run_id, turn, position, tool_use_id, name, input, invalid_input, state, \
             executions, result, started_at, finished_at
         from tool_calls
         where run_id = ?1 and (?2 is null or turn = ?2)
         order by turn, position",
    )
    .bind(run.to_string())
    .bind(turn)
    .fetch_all(executor)
    .await?;
    rows::all(&rows, rows::tool_call)
}

/// What closes the open turn; `None` where its journal cannot be read: the run ends all the same, and
/// what it left open is repaired by the session's next one.
pub(crate) async fn closing(
    conn: &mut SqliteConnection,
    run: &Run,
) -> Result<Option<Closing>, Error> {
    let turn = run.progress.answered_turn;
    match calls(&mut *conn, run.id, Some(turn)).await {
        Ok(calls) => {
            let message = closing_message_id(run.id);
            Ok(Some(close(&calls, message)))
        }
        Err(error @ Error::Unreadable { .. }) => {
            tracing::error!("hango.run.id" = %run.id, %error, "open calls cannot be answered");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Brings the journal up to date, as [`Effects::enter`] says.
pub(crate) async fn enter(
    conn: &mut SqliteConnection,
    run: RunId,
    effects: &Effects,
    now: Timestamp,
) -> Result<(), Error> {
    for call in &effects.begun {
        begin(conn, run, effects.turn, call.clone(), now).await?;
    }
    for call in &effects.settled {
        // ToolCall::settled
        let state = if call.in_doubt {
            CallState::InDoubt
        } else {
            CallState::Finished
        };
        sqlx::query(
            "update tool_calls set state = ?, result = ?, finished_at = ?
             where run_id = ? and turn = ? and position = ?",
        )
        .bind(state.as_str())
        .bind(Json(&call.result))
        .bind(now.as_micros())
        .bind(run.to_string())
        .bind(effects.turn)
        .bind(call.position)
        .execute(&mut *conn)
        .await?;
    }
    for call in &effects.started {
        start(conn, run, effects.turn, call, now).await?;
    }
    Ok(())
}

async fn begin(
    conn: &mut SqliteConnection,
    run: RunId,
    turn: u32,
    call: NewToolCall,
    now: Timestamp,
) -> Result<(), Error> {
    let call = ToolCall::begin(run, turn, call, now);
    sqlx::query(
        "insert into tool_calls (run_id, turn, position, id, tool_use_id, name, state, executions, \
             started_at, invalid_input, input)
         values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(run.to_string())
    .bind(turn)
    .bind(call.position)
    .bind(call.id.to_string())
    .bind(&call.tool_use_id)
    .bind(&call.name)
    .bind(call.state.as_str())
    .bind(call.executions)
    .bind(call.started_at.map(Timestamp::as_micros))
    .bind(call.invalid_input.as_deref())
    .bind(Json(&call.input))
    .execute(conn)
    .await?;
    Ok(())
}

async fn start(
    conn: &mut SqliteConnection,
    run: RunId,
    turn: u32,
    call: &StartedCall,
    now: Timestamp,
) -> Result<(), Error> {
    // ToolCall::started
    sqlx::query(
        "update tool_calls set state = 'started', executions = executions + 1, started_at = ?
         where run_id = ? and turn = ? and position = ?",
    )
    .bind(now.as_micros())
    .bind(run.to_string())
    .bind(turn)
    .bind(call.position)
    .execute(conn)
    .await?;
    Ok(())
}
