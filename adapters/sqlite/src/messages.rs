//! The statements on `messages`, which are only ever added.

use hango_domain::conversation::{Message, NewMessage, Role, StopReason};
use hango_domain::session::SessionLine;
use hango_domain::{RunId, SessionId, Timestamp};
use hango_ports::session_store::MessageQuery;
use sqlx::SqliteConnection;
use sqlx::sqlite::SqliteExecutor;
use sqlx::types::Json;

use crate::error::Error;
use crate::rows::{self, integer};

/// The columns of a message.
macro_rules! columns {
    () => {
        "id, session_id, run_id, seq, role, content, stop_reason, usage, partial, created_at"
    };
}

/// Appends a message under the number that the line has for it. The line is to be stored with it.
pub(crate) async fn say(
    conn: &mut SqliteConnection,
    message: NewMessage,
    session: SessionId,
    run: Option<RunId>,
    line: &mut SessionLine,
    now: Timestamp,
) -> Result<Message, Error> {
    *line = line.said();
    let message = message.stored(session, run, line.last_seq, now);
    sqlx::query(
        "insert into messages (session_id, seq, id, run_id, role, content, stop_reason, usage, \
             partial, created_at)
         values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(session.to_string())
    .bind(integer(message.seq))
    .bind(message.id.to_string())
    .bind(run.map(|run| run.to_string()))
    .bind(match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    })
    .bind(Json(&message.content))
    .bind(message.stop_reason.map(StopReason::as_str))
    .bind(message.usage.as_ref().map(Json))
    .bind(message.partial)
    .bind(now.as_micros())
    .execute(conn)
    .await?;
    Ok(message)
}

/// Messages of a session, oldest first; one more than asked for, if there are more.
pub(crate) async fn list<'e>(
    executor: impl SqliteExecutor<'e>,
    session: SessionId,
    query: MessageQuery,
) -> Result<Vec<Message>, Error> {
    let rows = sqlx::query(concat!(
        "select ",
        columns!(),
        " from messages
         where session_id = ?1 and seq > ?2 and (?3 is null or run_id = ?3)
         order by seq
         limit ?4"
    ))
    .bind(session.to_string())
    .bind(integer(query.after_seq))
    .bind(query.run.map(|run| run.to_string()))
    .bind(i64::from(query.limit) + 1)
    .fetch_all(executor)
    .await?;
    rows::all(&rows, rows::message)
}

/// Every message of a session, oldest first.
pub(crate) async fn history<'e>(
    executor: impl SqliteExecutor<'e>,
    session: SessionId,
) -> Result<Vec<Message>, Error> {
    let rows = sqlx::query(concat!(
        "select ",
        columns!(),
        " from messages where session_id = ? order by seq"
    ))
    .bind(session.to_string())
    .fetch_all(executor)
    .await?;
    rows::all(&rows, rows::message)
}
