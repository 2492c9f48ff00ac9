//! The journal of a run's open turn; [`store`](super::store) writes it.

use hango_domain::RunId;
use hango_domain::journal::{ToolCall, close, closing_message_id};
use hango_domain::run::{Closing, Run};
use sqlx::PgConnection;

use crate::error::Error;
use crate::rows;

/// The journal of one turn of a run, by position.
pub(super) const CALLS: &str = "select id, run_id, turn, position, tool_use_id, name, input, \
         invalid_input, state, executions, result, started_at, finished_at
     from tool_calls
     where run_id = $1 and turn = $2
     order by position";

async fn calls(conn: &mut PgConnection, run: RunId, turn: u32) -> Result<Vec<ToolCall>, Error> {
    let rows = sqlx::query(CALLS)
        .bind(run.0)
        .bind(rows::small(turn))
        .fetch_all(conn)
        .await?;
    rows::all(&rows, rows::tool_call)
}

/// What closes the open turn; `None` where its journal cannot be read: the run ends all the same, and
/// what it left open is repaired by the session's next one.
pub(crate) async fn closing(conn: &mut PgConnection, run: &Run) -> Result<Option<Closing>, Error> {
    let turn = run.progress.answered_turn;
    match calls(conn, run.id, turn).await {
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
