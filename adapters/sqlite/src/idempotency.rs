//! What came of requests that carry an idempotency key: the port's [`idempotency`](hango_ports::idempotency).
//!
//! All that writes is one after the other, so nobody ever waits for the first request with a key: either it
//! was committed, or it made nothing.

use hango_domain::Timestamp;
use hango_domain::retention::ANSWERS_KEPT;
use hango_ports::StoreFailure;
use hango_ports::idempotency::{IdempotencyKey, Repeated};
use serde::Serialize;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqlitePool};
use sqlx::types::Json;
use sqlx::{Sqlite, SqliteConnection};

use crate::error::Error;
use crate::rows;
use crate::writer::{Urgency, Writer};

/// What came of the first request with a key, if it was not long ago.
const FIRST: &str = "select user_id, body, answer from idempotency_keys
     where tenant_id = ?1 and user_id = ?2 and call = ?3 and key = ?4 and created_at > ?5";

/// Keeps what came of a key, in the place of what came of it long ago.
const KEEP: &str = "insert or replace into idempotency_keys (tenant_id, user_id, call, key, \
         created_at, body, answer)
     values (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// One that is old; looked for beside the writer.
const FIND_OLD: &str = "select 1 from idempotency_keys where created_at <= ?1 limit 1";

/// Removes old ones, so many at most.
const REMOVE: &str = "delete from idempotency_keys where rowid in (
         select rowid from idempotency_keys where created_at <= ?1 order by created_at limit ?2)";

/// Refuses a key, if there is one, for which something was made before.
pub(crate) async fn begin<E>(
    conn: &mut SqliteConnection,
    once: Option<&IdempotencyKey>,
    now: Timestamp,
) -> Result<(), E>
where
    E: From<Error> + From<Repeated>,
{
    let Some(key) = once else { return Ok(()) };
    let query = of(key, FIRST).bind(now.minus(ANSWERS_KEPT).as_micros());
    let first = query.fetch_optional(conn).await.map_err(Error::from)?;
    match first {
        Some(first) => Err(Repeated::Answered(rows::first_answer(&first)?).into()),
        None => Ok(()),
    }
}

/// Keeps what was made for a key, if there is one, as its answer.
pub(crate) async fn keep(
    conn: &mut SqliteConnection,
    once: Option<&IdempotencyKey>,
    made: &impl Serialize,
    now: Timestamp,
) -> Result<(), Error> {
    if let Some(key) = once {
        of(key, KEEP)
            .bind(now.as_micros())
            .bind(key.body.to_vec())
            .bind(Json(made))
            .execute(conn)
            .await?;
    }
    Ok(())
}

/// Removes so many old answers at most; tells how many.
pub(crate) async fn prune(
    readers: &SqlitePool,
    writer: &Writer,
    rows: u32,
    now: Timestamp,
) -> Result<u64, StoreFailure> {
    let cutoff = now.minus(ANSWERS_KEPT).as_micros();
    let found = sqlx::query(FIND_OLD)
        .bind(cutoff)
        .fetch_optional(readers)
        .await
        .map_err(Error::from)?;
    if found.is_none() {
        return Ok(0);
    }
    let removing = async move |conn: &mut SqliteConnection| {
        let removed = sqlx::query(REMOVE)
            .bind(cutoff)
            .bind(rows)
            .execute(conn)
            .await
            .map_err(Error::from)?;
        Ok(removed.rows_affected())
    };
    writer.write(Urgency::Normal, removing).await
}

/// A statement on the row of a key.
fn of<'q>(key: &IdempotencyKey, statement: &'static str) -> Query<'q, Sqlite, SqliteArguments> {
    sqlx::query(statement)
        .bind(key.tenant.to_string())
        .bind(key.user.to_string())
        .bind(key.call.clone())
        .bind(key.key.clone())
}
