//! What came of requests that carry an idempotency key: the port's [`idempotency`](hango_ports::idempotency).
//!
//! The key's row is the first thing that the transaction of a change writes, and its answer the last. So
//! whoever comes with the same key meanwhile waits for the row, and then has the first one's answer; or it
//! is his own turn, where the first one failed.

use hango_domain::retention::ANSWERS_KEPT;
use hango_ports::idempotency::{IdempotencyKey, Repeated};
use serde::Serialize;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres};

use crate::clock::StoreClock;
use crate::error::{Error, is_lock_timeout};
use crate::rows::{self, Document};

/// Takes a key that nobody used, or not lately; waits for the first one with it as long as a request may, and
/// leaves the transaction the patience that it had for others.
const TAKE: &str = "with patience as materialized (
         select current_setting('lock_timeout') as before, set_config('lock_timeout', '2s', true))
     insert into idempotency_keys as taken (tenant_id, user_id, call, key, body, created_at)
     select $1, $2, $3, $4, $5, coalesce($6, clock_timestamp()) from patience
     on conflict (tenant_id, user_id, call, key) do update
     set body = excluded.body, answer = null, created_at = excluded.created_at
     where taken.created_at <= excluded.created_at - $7::bigint * interval '1 microsecond'
     returning (select set_config('lock_timeout', before, true) from patience)";

/// What came of the first request with a key.
const FIRST: &str = "select user_id, body, answer from idempotency_keys
     where tenant_id = $1 and user_id = $2 and call = $3 and key = $4 and answer is not null";

/// Notes what came of a key.
const KEEP: &str = "update idempotency_keys set answer = $5
     where tenant_id = $1 and user_id = $2 and call = $3 and key = $4";

/// Removes answers of another day. What others have locked is passed over.
const REMOVE: &str = "delete from idempotency_keys where ctid = any (array(
         select ctid from idempotency_keys
         where created_at
             <= coalesce($1, statement_timestamp()) - $2::bigint * interval '1 microsecond'
         order by created_at
         limit $3
         for update skip locked))";

/// Begins a change that is made once for its key, if it has one: the transaction's first statement.
pub(crate) async fn begin<E>(
    conn: &mut PgConnection,
    clock: &StoreClock,
    once: Option<&IdempotencyKey>,
) -> Result<(), E>
where
    E: From<Error> + From<Repeated>,
{
    let Some(key) = once else { return Ok(()) };
    let taken = of(key, TAKE)
        .bind(key.body.as_slice())
        .bind(clock.given())
        .bind(kept())
        .execute(&mut *conn)
        .await;
    match taken {
        Ok(taken) if taken.rows_affected() == 1 => return Ok(()),
        Ok(_) => {}
        Err(error) if is_lock_timeout(&error) => return Err(Repeated::InFlight.into()),
        Err(error) => return Err(Error::from(error).into()),
    }
    let first = of(key, FIRST).fetch_optional(conn).await;
    let first = first.map_err(Error::from)?;
    // Where it is gone, it was removed a moment ago.
    let first = first.ok_or(Repeated::InFlight)?;
    Err(Repeated::Answered(rows::first_answer(&first)?).into())
}

/// Keeps what was made for a key, if there is one, as its answer.
pub(crate) async fn keep<T: Serialize + Sync>(
    conn: &mut PgConnection,
    once: Option<&IdempotencyKey>,
    made: &T,
) -> Result<(), Error> {
    if let Some(key) = once {
        of(key, KEEP).bind(Document(made)).execute(conn).await?;
    }
    Ok(())
}

/// Removes so many old answers at most; tells how many.
pub(crate) async fn prune(
    conn: &mut PgConnection,
    clock: &StoreClock,
    rows: u32,
) -> Result<u64, Error> {
    let removed = sqlx::query(REMOVE)
        .bind(clock.given())
        .bind(kept())
        .bind(i64::from(rows))
        .execute(conn)
        .await?;
    Ok(removed.rows_affected())
}

/// A statement on the row of a key.
fn of<'q>(key: &IdempotencyKey, statement: &'static str) -> Query<'q, Postgres, PgArguments> {
    sqlx::query(statement)
        .bind(key.tenant.0)
        .bind(key.user.0)
        .bind(key.call.clone())
        .bind(key.key.clone())
}

/// How long an answer is kept, in microseconds.
fn kept() -> i64 {
    i64::try_from(ANSWERS_KEPT.as_micros()).unwrap_or(i64::MAX)
}
