//! Removing what is old: [`hango_domain::retention`], in SQL.
//!
//! It is looked for by the index of each tenant's runs, and sessions, by age: what is old was made long
//! ago. So a look reads what is old, and of the rest only what was made before the cutoff and is not over,
//! or was not then. (An index of when a run ended would cost each run that ends, wherever nothing is ever
//! removed: that write would not be a heap-only update any more.)
//!
//! What others have locked is passed over, so nobody is waited for. A run that ended never changes. A
//! session does: its row is locked first, and the statement that removes it asks the whole rule again,
//! since the first one saw what was there before it got the lock. Whoever accepts a run, or says
//! something, locks that row too: he comes before, and the session stays, or he finds none.

use hango_domain::retention::Retention;
use hango_ports::run_store::{PruneRequest, Pruned};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::clock::StoreClock;
use crate::error::Error;
use crate::idempotency;

/// The cutoff. Parameters: 1 what stands in for the database's time, 2 the retention in microseconds.
macro_rules! cutoff {
    () => {
        "coalesce($1, statement_timestamp()) - $2::bigint * interval '1 microsecond'"
    };
}

/// The rule of [`is_old_session`](hango_domain::retention::Retention::is_old_session) for a session `s`.
/// What it asks of other tables is looked up for each session (`offset 0`): the planner is not to join
/// them whole.
macro_rules! is_old_session {
    () => {
        concat!(
            "s.updated_at <= ",
            cutoff!(),
            " and s.pending_runs = 0
               and not exists (select from runs r where r.session_id = s.id offset 0)
               and not exists (
                   select from messages m
                   where m.session_id = s.id and m.seq = s.last_seq and m.created_at > ",
            cutoff!(),
            " offset 0)"
        )
    };
}

/// Of `$old`, a list of ids with the rows of each, what goes in
/// [`one_step`](hango_domain::retention::one_step), locked; parameter 3 is how many rows. No more is
/// locked than goes.
macro_rules! one_step {
    ($table:literal, $old:expr) => {
        concat!(
            "select locked.id
             from (select id from (
                       select id, sum(own) over (rows unbounded preceding) - own as before
                       from (",
            $old,
            " limit $3) old) step
                   where before < $3) going
             cross join lateral (
                 select id from ",
            $table,
            " where id = going.id for update skip locked) locked"
        )
    };
}

/// Removes old runs: [`is_old_run`](hango_domain::retention::Retention::is_old_run). They take their
/// journal and events with them.
pub(super) const REMOVE_RUNS: &str = concat!(
    "with going as materialized (",
    one_step!(
        "runs",
        concat!(
            "select r.id, 1 + r.last_event as own
             from tenants t
             cross join lateral (
                 select id, last_event from runs
                 where runs.tenant_id = t.id and runs.created_at <= ",
            cutoff!(),
            "      and runs.finished_at <= ",
            cutoff!(),
            "    order by runs.created_at, runs.id
                 limit $3) r"
        )
    ),
    ")
     delete from runs using going where runs.id = going.id"
);

/// Locks old sessions.
pub(super) const LOCK_SESSIONS: &str = one_step!(
    "sessions",
    concat!(
        "select s.id, 1 + s.last_seq as own
         from tenants t
         cross join lateral (
             select id, last_seq from sessions s
             where s.tenant_id = t.id and s.created_at <= ",
        cutoff!(),
        "      and ",
        is_old_session!(),
        "    order by s.created_at, s.id
             limit $3) s"
    )
);

/// Removes these sessions, if they are old still, with their messages.
pub(super) const REMOVE_SESSIONS: &str = concat!(
    "with going as (
         delete from sessions s where s.id = any ($3) and ",
    is_old_session!(),
    "    returning s.id
     ),
     said as (delete from messages using going where messages.session_id = going.id)
     select count(*) from going"
);

/// Removes old answers, and old runs unless there are more of those; or old sessions when there are no
/// runs.
pub(super) async fn prune(
    conn: &mut PgConnection,
    clock: &StoreClock,
    request: PruneRequest,
) -> Result<Pruned, Error> {
    let answers = idempotency::prune(conn, clock, request.rows).await?;
    let pruned = match request.retention {
        Some(retention) if answers < u64::from(request.rows) => {
            prune_sessions(conn, clock, retention, request.rows).await?
        }
        _ => Pruned::default(),
    };
    Ok(Pruned { answers, ..pruned })
}

async fn prune_sessions(
    conn: &mut PgConnection,
    clock: &StoreClock,
    retention: Retention,
    rows: u32,
) -> Result<Pruned, Error> {
    let kept = i64::try_from(retention.span().as_micros()).unwrap_or(i64::MAX);
    let runs = sqlx::query(REMOVE_RUNS)
        .bind(clock.given())
        .bind(kept)
        .bind(i64::from(rows))
        .execute(&mut *conn)
        .await?
        .rows_affected();
    if runs > 0 {
        return Ok(Pruned {
            runs,
            ..Pruned::default()
        });
    }
    let locked: Vec<Uuid> = sqlx::query_scalar(LOCK_SESSIONS)
        .bind(clock.given())
        .bind(kept)
        .bind(i64::from(rows))
        .fetch_all(&mut *conn)
        .await?;
    if locked.is_empty() {
        return Ok(Pruned::default());
    }
    let sessions: i64 = sqlx::query_scalar(REMOVE_SESSIONS)
        .bind(clock.given())
        .bind(kept)
        .bind(locked)
        .fetch_one(conn)
        .await?;
    Ok(Pruned {
        sessions: sessions.unsigned_abs(),
        ..Pruned::default()
    })
}

#[cfg(test)]
mod tests;
