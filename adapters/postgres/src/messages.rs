//! The statements on `messages`, which are only ever added.

use hango_domain::SessionId;
use hango_domain::access::Visibility;
use hango_domain::conversation::{Message, Role, StopReason};
use hango_ports::session_store::MessageQuery;
use sqlx::PgConnection;

use crate::error::Error;
use crate::rows::{self, Document, integer, moment};
use crate::sessions::is_seen;

/// Adds a message of a client under the number that it has, and notes that number in its session's
/// line. The session is locked.
pub(crate) async fn append(conn: &mut PgConnection, message: &Message) -> Result<(), Error> {
    sqlx::query(
        "with line as (update sessions set last_seq = $2 where id = $1)
         insert into messages (session_id, seq, id, run_id, role, content, stop_reason, usage, \
             partial, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(message.session_id.0)
    .bind(integer(message.seq))
    .bind(message.id.0)
    .bind(message.run_id.map(|run| run.0))
    .bind(match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    })
    .bind(Document(&message.content))
    .bind(message.stop_reason.map(StopReason::as_str))
    .bind(message.usage.as_ref().map(Document))
    .bind(message.partial)
    .bind(moment(message.created_at))
    .execute(conn)
    .await?;
    Ok(())
}

/// Messages of a session that the caller sees: at most 6 behind number 4, those of run 5 if there is one.
pub(crate) const LIST: &str = concat!(
    "select m.* from sessions s
     left join lateral (
         select id, session_id, run_id, seq, role, content, stop_reason, usage, partial, created_at
         from messages
         where session_id = s.id and seq > $4 and ($5::uuid is null or run_id = $5)
         order by seq
         limit $6) m on true
     where s.id = $1 and ",
    is_seen!("$2", "$3"),
    " order by m.seq"
);

/// Messages of a session, oldest first; one more than asked for, if there are more. `None` where the
/// caller sees no such session.
pub(crate) async fn list(
    conn: &mut PgConnection,
    seen: Visibility,
    session: SessionId,
    query: MessageQuery,
) -> Result<Option<Vec<Message>>, Error> {
    let rows = sqlx::query(LIST)
        .bind(session.0)
        .bind(seen.tenant.0)
        .bind(seen.creator.map(|user| user.0))
        .bind(integer(query.after_seq))
        .bind(query.run.map(|run| run.0))
        .bind(i64::from(query.limit) + 1)
        .fetch_all(conn)
        .await?;
    rows::under(&rows, "id", rows::message)
}
