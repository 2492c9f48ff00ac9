//! What executors work with: the histories and the open calls of all runs of a claim.
//!
//! They are read when the claim is committed: nobody else adds to the session of a run that is running, and
//! however long it takes, nobody waits for a lock meanwhile. What cannot be read is its session's, or its
//! run's, alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use hango_domain::conversation::Message;
use hango_domain::journal::{ToolCall, has_open_answer};
use hango_domain::run::Run;
use hango_domain::{RunId, SessionId};
use sqlx::PgConnection;

use crate::error::Error;
use crate::pool::Pool;
use crate::rows::{self, integer, small};

/// The most messages that one statement reads, so that no history is too long for its time.
const PIECE: u64 = 500;

/// What was read for each run or session; there is nothing for one whose reading failed for a reason
/// that is not its own.
pub(super) type Read<Id, T> = BTreeMap<Id, Result<Vec<T>, Error>>;

/// A part of a session's messages: behind the first number, up to the second.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Part {
    session: SessionId,
    after: u64,
    until: u64,
}

/// These parts of sessions' messages.
pub(super) const HISTORIES: &str =
    "select m.id, m.session_id, m.run_id, m.seq, m.role, m.content, m.stop_reason, m.usage, \
             m.partial, m.created_at
         from unnest($1::uuid[], $2::bigint[], $3::bigint[]) as s (id, after, until)
         cross join lateral (
             select * from messages
             where session_id = s.id and seq > s.after and seq <= s.until
             order by seq offset 0) m";

/// The journal of one turn of each of these runs.
pub(super) const OPEN_CALLS: &str =
    "select c.id, c.run_id, c.turn, c.position, c.tool_use_id, c.name, c.input, \
             c.invalid_input, c.state, c.executions, c.result, c.started_at, c.finished_at
         from unnest($1::uuid[], $2::int[]) as r (id, turn)
         cross join lateral (
             select * from tool_calls
             where run_id = r.id and turn = r.turn order by position offset 0) c";

/// The first messages of each session, as many as are said to be there, oldest first.
pub(super) async fn histories(
    pool: &Pool,
    lengths: &BTreeMap<SessionId, u64>,
) -> Read<SessionId, Message> {
    let sessions = lengths.keys();
    let mut histories: BTreeMap<_, _> = sessions.map(|id| (*id, Ok(Vec::new()))).collect();
    for piece in pieces(lengths) {
        let piece = Arc::new(piece);
        let wanted = Arc::clone(&piece);
        let read = pool.read(move |conn| {
            let wanted = Arc::clone(&wanted);
            Box::pin(async move { messages(conn, &wanted).await })
        });
        match read.await {
            Ok(messages) => {
                for (session, message) in messages {
                    collect(histories.get_mut(&session), message);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the histories of claimed runs could not be read");
                histories.retain(|id, _| !piece.iter().any(|part| part.session == *id));
            }
        }
    }
    histories
}

/// All messages, in pieces that one statement can read.
fn pieces(lengths: &BTreeMap<SessionId, u64>) -> Vec<Vec<Part>> {
    let mut pieces: Vec<Vec<Part>> = Vec::new();
    let mut room = 0;
    for (session, length) in lengths {
        let mut after = 0;
        while after < *length {
            if room == 0 {
                pieces.push(Vec::new());
                room = PIECE;
            }
            let until = (after + room).min(*length);
            if let Some(piece) = pieces.last_mut() {
                piece.push(Part {
                    session: *session,
                    after,
                    until,
                });
            }
            room -= until - after;
            after = until;
        }
    }
    pieces
}

async fn messages(
    conn: &mut PgConnection,
    parts: &[Part],
) -> Result<Vec<(SessionId, Result<Message, Error>)>, Error> {
    let sessions: Vec<_> = parts.iter().map(|part| part.session.0).collect();
    let afters: Vec<_> = parts.iter().map(|part| integer(part.after)).collect();
    let untils: Vec<_> = parts.iter().map(|part| integer(part.until)).collect();
    let rows = sqlx::query(HISTORIES)
        .bind(sessions)
        .bind(afters)
        .bind(untils)
        .fetch_all(conn)
        .await?;
    rows::all(&rows, |row| {
        Ok((rows::session_of(row)?, rows::message(row)))
    })
}

/// The journal of each run's answered turn that is not complete.
pub(super) async fn open_calls(pool: &Pool, runs: &[&Run]) -> Read<RunId, ToolCall> {
    let open = runs.iter().filter(|run| has_open_answer(run));
    let open: Vec<_> = open
        .map(|run| (run.id, run.progress.answered_turn))
        .collect();
    let mut calls: BTreeMap<_, _> = runs.iter().map(|run| (run.id, Ok(Vec::new()))).collect();
    if open.is_empty() {
        return calls;
    }
    let open = Arc::new(open);
    let wanted = Arc::clone(&open);
    let read = pool.read(move |conn| {
        let wanted = Arc::clone(&wanted);
        Box::pin(async move { calls_of(conn, &wanted).await })
    });
    match read.await {
        Ok(read) => {
            for (run, call) in read {
                collect(calls.get_mut(&run), call);
            }
        }
        Err(error) => {
            tracing::warn!(%error, "the open calls of claimed runs could not be read");
            calls.retain(|id, _| !open.iter().any(|(run, _)| run == id));
        }
    }
    calls
}

/// The journal of one turn of each of these runs.
async fn calls_of(
    conn: &mut PgConnection,
    turns: &[(RunId, u32)],
) -> Result<Vec<(RunId, Result<ToolCall, Error>)>, Error> {
    let runs: Vec<_> = turns.iter().map(|(run, _)| run.0).collect();
    let turns: Vec<_> = turns.iter().map(|(_, turn)| small(*turn)).collect();
    let rows = sqlx::query(OPEN_CALLS)
        .bind(runs)
        .bind(turns)
        .fetch_all(conn)
        .await?;
    rows::all(&rows, |row| Ok((rows::run_of(row)?, rows::tool_call(row))))
}

/// Adds what was read to a list; the first error stands for all of it.
fn collect<T>(list: Option<&mut Result<Vec<T>, Error>>, read: Result<T, Error>) {
    let Some(list) = list else { return };
    match (list.as_mut(), read) {
        (Ok(list), Ok(item)) => list.push(item),
        (Ok(_), Err(error)) => *list = Err(error),
        (Err(_), _) => {}
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn session(n: u128) -> SessionId {
        SessionId(Uuid::from_u128(n))
    }

    fn read(lengths: &[u64]) -> Vec<Vec<(u128, u64, u64)>> {
        let lengths = (1..).zip(lengths).map(|(n, length)| (session(n), *length));
        let pieces = pieces(&lengths.collect());
        let plain = |part: &Part| (part.session.0.as_u128(), part.after, part.until);
        pieces
            .iter()
            .map(|piece| piece.iter().map(plain).collect())
            .collect()
    }

    #[test]
    fn short_histories_are_read_at_once() {
        assert_eq!(read(&[3, 0, 5]), [[(1, 0, 3), (3, 0, 5)]]);
        assert!(read(&[0, 0]).is_empty());
    }

    #[test]
    fn a_long_history_is_read_in_pieces_which_others_share() {
        assert_eq!(
            read(&[PIECE - 1, PIECE + 1]),
            [vec![(1, 0, PIECE - 1), (2, 0, 1)], vec![(2, 1, PIECE + 1)]]
        );
    }
}
