//! What executors work with: the histories and the open calls of all runs of a claim, in one statement
//! each. What cannot be read is its session's, or its run's, alone.

use std::collections::BTreeMap;

use hango_domain::conversation::Message;
use hango_domain::journal::{ToolCall, has_open_answer};
use hango_domain::run::Run;
use hango_domain::{RunId, SessionId};
use sqlx::PgConnection;

use crate::error::Error;
use crate::rows::{self, small};

/// Every message of each of these sessions.
pub(super) const HISTORIES: &str =
    "select m.id, m.session_id, m.run_id, m.seq, m.role, m.content, m.stop_reason, m.usage, \
             m.partial, m.created_at
         from unnest($1::uuid[]) as s (id)
         cross join lateral (
             select * from messages where session_id = s.id order by seq offset 0) m";

/// The journal of one turn of each of these runs.
pub(super) const OPEN_CALLS: &str =
    "select c.id, c.run_id, c.turn, c.position, c.tool_use_id, c.name, c.input, \
             c.invalid_input, c.state, c.executions, c.result, c.started_at, c.finished_at
         from unnest($1::uuid[], $2::int[]) as r (id, turn)
         cross join lateral (
             select * from tool_calls
             where run_id = r.id and turn = r.turn order by position offset 0) c";

/// Every message of each run's session, oldest first.
pub(super) async fn histories(
    conn: &mut PgConnection,
    runs: &[&Run],
) -> Result<BTreeMap<SessionId, Result<Vec<Message>, Error>>, Error> {
    let sessions: Vec<_> = runs.iter().map(|run| run.session_id.0).collect();
    let rows = sqlx::query(HISTORIES)
        .bind(sessions)
        .fetch_all(conn)
        .await?;
    let mut histories = BTreeMap::new();
    for row in &rows {
        let session = rows::session_of(row)?;
        collect(
            histories.entry(session).or_insert(Ok(Vec::new())),
            rows::message(row),
        );
    }
    Ok(histories)
}

/// The journal of each run's answered turn that is not complete.
pub(super) async fn open_calls(
    conn: &mut PgConnection,
    runs: &[&Run],
) -> Result<BTreeMap<RunId, Result<Vec<ToolCall>, Error>>, Error> {
    let open: Vec<_> = runs.iter().filter(|run| has_open_answer(run)).collect();
    if open.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids: Vec<_> = open.iter().map(|run| run.id.0).collect();
    let turns: Vec<_> = open
        .iter()
        .map(|run| small(run.progress.answered_turn))
        .collect();
    let rows = sqlx::query(OPEN_CALLS)
        .bind(ids)
        .bind(turns)
        .fetch_all(conn)
        .await?;
    let mut calls = BTreeMap::new();
    for row in &rows {
        let run = rows::run_of(row)?;
        collect(
            calls.entry(run).or_insert(Ok(Vec::new())),
            rows::tool_call(row),
        );
    }
    Ok(calls)
}

/// Adds what was read to a list; the first error stands for all of it.
fn collect<T>(list: &mut Result<Vec<T>, Error>, read: Result<T, Error>) {
    match (list.as_mut(), read) {
        (Ok(list), Ok(item)) => list.push(item),
        (Ok(_), Err(error)) => *list = Err(error),
        (Err(_), _) => {}
    }
}
