//! One change of a run with all that belongs to it: the run's row, the journal, messages, events and
//! the session's line, in the transaction that the caller is in.
//!
//! Whether it may be made, and what it leaves behind, the domain says. Nothing is written before it has
//! said so.

use hango_domain::Timestamp;
use hango_domain::event::{EVENT_VERSION, Event};
use hango_domain::journal::has_open_answer;
use hango_domain::run::{Applied, Change, Run, TransitionError};
use hango_ports::run_store::{RunStoreError, Standing};
use sqlx::SqliteConnection;
use sqlx::types::Json;

use super::journal;
use super::table::{self, Loaded};
use crate::error::Error;
use crate::{messages, sessions};

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
        tracing::warn!("hango.run.id" = %loaded.run.id, replaced, "characters that cannot be stored");
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
        journal::enter(conn, before.id, &effects, now).await?;
        for message in effects.said {
            let session = before.session_id;
            messages::say(conn, message, session, Some(before.id), &mut line, now).await?;
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
    if let Some(closing @ None) = change.closing_mut()
        && has_open_answer(run)
    {
        *closing = journal::closing(conn, run).await?;
    }
    Ok(change)
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
