//! One change of a run with all that belongs to it: the run's row, the journal, messages, events and
//! the session's line, in the transaction that the caller is in.
//!
//! Whether it may be made, and what it leaves behind, the domain says. Nothing is written before it has
//! said so.

use hango_domain::event::{EVENT_VERSION, Event};
use hango_domain::journal::{self, CallState, NewToolCall, ToolCall};
use hango_domain::run::{Applied, Change, Closing, Effects, Run, StartedCall, TransitionError};
use hango_domain::{RunId, Timestamp};
use hango_ports::run_store::{RunStoreError, Standing};
use sqlx::SqliteConnection;
use sqlx::types::Json;

use super::read;
use super::table::{self, Loaded};
use crate::error::Error;
use crate::sessions;

/// A change that was made, now or before.
pub(crate) struct Made {
    pub(crate) applied: Applied,
    pub(crate) standing: Standing,
}

/// Makes a change.
pub(crate) async fn make(
    conn: &mut SqliteConnection,
    loaded: Loaded,
    mut change: Change,
    now: Timestamp,
) -> Result<Made, RunStoreError> {
    let replaced = change.clean();
    if replaced > 0 {
        tracing::warn!(run.id = %loaded.run.id, replaced, "characters that cannot be stored");
    }
    let before = loaded.run;
    let change = with_closing(conn, &before, change).await?;
    let applied = before
        .clone()
        .apply(&change, now)
        .map_err(RunStoreError::Refused)?;
    let standing = Standing {
        cancel_requested: applied.run.cancel_requested_at.is_some(),
        ..loaded.standing
    };
    if !applied.repeated {
        store(conn, &before, &applied.run, &change).await?;
        let effects = change.effects(&before, &applied.run);
        let mut line =
            loaded
                .line
                .moved(before.id, before.state.status(), applied.run.state.status());
        enter(conn, before.id, &effects, now).await?;
        for message in effects.said {
            let session = before.session_id;
            sessions::say(conn, message, session, Some(before.id), &mut line, now).await?;
        }
        tell(conn, &applied.events).await?;
        if line != loaded.line {
            sessions::store_line(conn, before.session_id, &line).await?;
        }
    }
    Ok(Made { applied, standing })
}

/// The change, with what closes the open turn should it end the run without its holder.
async fn with_closing(
    conn: &mut SqliteConnection,
    run: &Run,
    mut change: Change,
) -> Result<Change, Error> {
    let closing = match &mut change {
        Change::GiveBack(change) => &mut change.closing,
        Change::Reclaim(change) => &mut change.closing,
        Change::RequestCancel { closing } => closing,
        Change::Claim { .. }
        | Change::Renew { .. }
        | Change::Repair(_)
        | Change::Answer(_)
        | Change::Resume(_)
        | Change::Record(_)
        | Change::CompleteTurn(_)
        | Change::Retry(_)
        | Change::Finish(_) => return Ok(change),
    };
    if closing.is_none() && journal::has_open_answer(run) {
        *closing = close(conn, run).await?;
    }
    Ok(change)
}

/// What closes the open turn; `None` where its journal cannot be read: the run ends all the same, and
/// what it left open is repaired by the session's next one.
async fn close(conn: &mut SqliteConnection, run: &Run) -> Result<Option<Closing>, Error> {
    let turn = run.progress.answered_turn;
    match read::tool_calls(conn, run.id, Some(turn)).await {
        Ok(calls) => {
            let message = journal::closing_message_id(run.id);
            Ok(Some(journal::close(&calls, message)))
        }
        Err(error @ Error::Unreadable { .. }) => {
            tracing::error!(run.id = %run.id, %error, "open calls cannot be answered");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Writes the run's row. The statement repeats the fence: it holds even if the domain's were lost.
async fn store(
    conn: &mut SqliteConnection,
    before: &Run,
    after: &Run,
    change: &Change,
) -> Result<(), RunStoreError> {
    let new_memory = match change {
        Change::CompleteTurn(change) => change.memory.is_some(),
        Change::Finish(change) => change.memory.is_some(),
        Change::Claim { .. }
        | Change::Renew { .. }
        | Change::Repair(_)
        | Change::Answer(_)
        | Change::Resume(_)
        | Change::Record(_)
        | Change::Retry(_)
        | Change::GiveBack(_)
        | Change::RequestCancel { .. }
        | Change::Reclaim(_) => false,
    };
    let (stored, refusal) = match change.lease().or_else(|| before.lease()) {
        Some(lease) => (
            table::store_held(conn, after, new_memory, lease).await?,
            TransitionError::LeaseLost {
                owner: lease.owner,
                presented: lease.attempt,
            },
        ),
        None => (
            table::store_queued(conn, after).await?,
            TransitionError::NotQueued {
                found: before.state.status(),
            },
        ),
    };
    if stored {
        Ok(())
    } else {
        Err(RunStoreError::Refused(refusal))
    }
}

/// Brings the journal up to date, as [`Effects::enter`] says.
async fn enter(
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

/// Appends events, which all are of one run, in one statement.
pub(crate) async fn tell(conn: &mut SqliteConnection, events: &[Event]) -> Result<(), Error> {
    if events.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "insert into events (run_id, n, turn, attempt, at, version, kind)
         select value ->> 'run_id', value ->> 'n', value ->> 'turn', value ->> 'attempt', \
             value ->> 'at', ?, value -> 'kind'
         from json_each(?)",
    )
    .bind(EVENT_VERSION)
    .bind(Json(events))
    .execute(conn)
    .await?;
    Ok(())
}
