//! Removing what is old: [`hango_domain::retention`], in SQL.
//!
//! It is looked for beside the writer, by the index of each tenant's runs, and sessions, by age: what is
//! old was made long ago. So a look reads what is old, and of the rest only what was made before the
//! cutoff and is not over, or was not then. The writer has it only where there is something to remove,
//! and asks the rule again.

use hango_domain::Timestamp;
use hango_ports::StoreFailure;
use hango_ports::run_store::{PruneRequest, Pruned};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqlitePool;
use sqlx::types::Json;

use crate::error::Error;
use crate::idempotency;
use crate::writer::{Urgency, Writer};

/// The rule of [`is_old_session`](hango_domain::retention::Retention::is_old_session) for a session `s`.
/// Parameter 1 is the cutoff.
macro_rules! is_old_session {
    () => {
        "s.updated_at <= ?1 and s.pending_runs = 0
           and not exists (
               select 1 from runs r indexed by runs_of_session where r.session_id = s.id)
           and not exists (
               select 1 from messages m
               where m.session_id = s.id and m.seq = s.last_seq and m.created_at > ?1)"
    };
}

/// Of `$old`, a list of ids with the rows of each, what goes in
/// [`one_step`](hango_domain::retention::one_step). Parameter 2 is how many rows.
macro_rules! one_step {
    ($old:expr) => {
        concat!(
            "with old (id, own) as (",
            $old,
            " limit ?2)
             select id from (
                 select id, sum(own) over (rows unbounded preceding) - own as before from old)
             where before < ?2"
        )
    };
}

/// Old runs: [`is_old_run`](hango_domain::retention::Retention::is_old_run).
pub(super) const OLD_RUNS: &str = one_step!(
    "select r.id, 1 + r.last_event
     from tenants t cross join runs r indexed by runs_by_age
     where r.tenant_id = t.id and r.created_at <= ?1 and r.finished_at <= ?1"
);

/// Old sessions.
pub(super) const OLD_SESSIONS: &str = one_step!(concat!(
    "select s.id, 1 + s.last_seq
     from tenants t cross join sessions s indexed by sessions_by_age
     where s.tenant_id = t.id and s.created_at <= ?1 and ",
    is_old_session!()
));

/// Removes these runs, which take their journal and events with them.
pub(super) const REMOVE_RUNS: &str = "delete from runs
     where id in (select value from json_each(?2)) and finished_at <= ?1";

/// Removes these sessions, if they are old still; they take their messages with them.
pub(super) const REMOVE_SESSIONS: &str = concat!(
    "delete from sessions as s where s.id in (select value from json_each(?2)) and ",
    is_old_session!()
);

/// Removes old answers, and old runs unless there are more of those; or old sessions when there are no
/// runs.
pub(super) async fn prune(
    readers: &SqlitePool,
    writer: &Writer,
    request: PruneRequest,
    now: Timestamp,
) -> Result<Pruned, StoreFailure> {
    let answers = idempotency::prune(readers, writer, request.rows, now).await?;
    let pruned = match request.retention {
        Some(retention) if answers < u64::from(request.rows) => {
            prune_sessions(readers, writer, retention.cutoff(now), request.rows).await?
        }
        _ => Pruned::default(),
    };
    Ok(Pruned { answers, ..pruned })
}

async fn prune_sessions(
    readers: &SqlitePool,
    writer: &Writer,
    cutoff: Timestamp,
    rows: u32,
) -> Result<Pruned, StoreFailure> {
    let runs = find(readers, OLD_RUNS, cutoff, rows).await?;
    if !runs.is_empty() {
        return Ok(Pruned {
            runs: remove(writer, REMOVE_RUNS, cutoff, runs).await?,
            ..Pruned::default()
        });
    }
    let sessions = find(readers, OLD_SESSIONS, cutoff, rows).await?;
    if sessions.is_empty() {
        return Ok(Pruned::default());
    }
    Ok(Pruned {
        sessions: remove(writer, REMOVE_SESSIONS, cutoff, sessions).await?,
        ..Pruned::default()
    })
}

async fn find(
    readers: &SqlitePool,
    statement: &'static str,
    cutoff: Timestamp,
    rows: u32,
) -> Result<Vec<String>, Error> {
    let found = sqlx::query_scalar(statement)
        .bind(cutoff.as_micros())
        .bind(rows)
        .fetch_all(readers)
        .await?;
    Ok(found)
}

async fn remove(
    writer: &Writer,
    statement: &'static str,
    cutoff: Timestamp,
    ids: Vec<String>,
) -> Result<u64, StoreFailure> {
    let removing = async move |conn: &mut SqliteConnection| {
        let done = sqlx::query(statement)
            .bind(cutoff.as_micros())
            .bind(Json(ids))
            .execute(conn)
            .await
            .map_err(Error::from)?;
        Ok(done.rows_affected())
    };
    writer.write(Urgency::Normal, removing).await
}
