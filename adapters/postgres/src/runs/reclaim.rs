//! Taking runs from those who fell silent: what may be taken is locked, read, decided and written, in one
//! transaction for the whole batch.

use std::time::Instant;

use hango_domain::RunId;
use hango_domain::queue::SetAside;
use hango_domain::run::{Change, Reclaim};
use hango_ports::run_store::{ReclaimRequest, Reclaimed, RunStoreError};
use sqlx::PgConnection;

use super::change::decide;
use super::load::{Loaded, loaded_columns, loaded_joins, looked_up};
use super::writes::Writes;
use super::{journal, store};
use crate::clock::StoreClock;
use crate::error::Error;
use crate::rows;

/// Locks the runs that the sweep may take, with their sessions: of [`Change::Reclaim`] what concerns the
/// lease. What others have locked is passed over. Parameters: 1 what stands in for the database's time, 2
/// whether the lease must have run out, 3 how many, 4 what is set aside.
pub(super) const SILENT: &str = concat!(
    "with silent as materialized (
         select r.id, r.lease_expires_at
         from running_runs x",
    looked_up!("runs", "x.run_id", "r"),
    "    where (not $2 or r.lease_expires_at <= coalesce($1, statement_timestamp()))
           and x.run_id <> all ($4)
         order by r.lease_expires_at, r.id
         limit $3
     )
     select r.id
     from silent
     cross join lateral (
         select * from runs where runs.id = silent.id for no key update skip locked) r
     cross join lateral (
         select from sessions where sessions.id = r.session_id for no key update skip locked) s
     order by silent.lease_expires_at, silent.id"
);

/// Reads the runs that were locked, the longest silent first.
pub(super) const LOCKED: &str = concat!(
    "select ",
    loaded_columns!(),
    " from unnest($2::uuid[]) with ordinality as locked (id, place)",
    looked_up!("runs", "locked.id", "r"),
    loaded_joins!(),
    " order by locked.place"
);

/// Takes runs back, the longest silent first. One whose row cannot be read is left where it is, and set
/// aside.
pub(super) async fn reclaim(
    conn: &mut PgConnection,
    clock: &StoreClock,
    aside: &SetAside,
    request: ReclaimRequest,
) -> Result<Vec<Reclaimed>, RunStoreError> {
    let silent = silent(conn, clock, aside, request).await?;
    let Some(now) = silent.first().map(|it| it.now) else {
        return Ok(Vec::new());
    };
    let mut writes = Writes::new(now);
    let mut reclaimed = Vec::with_capacity(silent.len());
    for Loaded { run, line, .. } in silent {
        let (Some(previous), Some(expired_at)) = (run.lease(), run.lease_expires_at()) else {
            continue;
        };
        let mut change = Change::Reclaim(Reclaim {
            max_stalled: request.max_stalled,
            expired_only: request.expired_only,
            closing: None,
        });
        let ends = run.clone().apply(&change, now);
        if ends.is_ok_and(|ends| ends.run.state.status().is_terminal())
            && change.needs_closing(&run)
            && let Some(closing) = change.closing_mut()
        {
            *closing = journal::closing(conn, &run).await?;
        }
        // Who was renewed, or gave it up, before it was locked is left alone.
        let Ok((applied, _)) = decide(&mut writes, &run, line, change) else {
            continue;
        };
        reclaimed.push(Reclaimed {
            previous,
            expired_at,
            resume_turn: applied.run.progress.resume_turn,
            status: applied.run.state.status(),
            events: applied.events,
        });
    }
    let stored = store::store(conn, &writes).await?;
    reclaimed.retain(|it| stored.has(it.previous.run));
    Ok(reclaimed)
}

/// Locks what is silent, and reads it then: a statement that locks reads the messages as they were
/// before it got the lock.
async fn silent(
    conn: &mut PgConnection,
    clock: &StoreClock,
    aside: &SetAside,
    request: ReclaimRequest,
) -> Result<Vec<Loaded>, Error> {
    let left_out = aside.runs(Instant::now());
    let left_out: Vec<_> = left_out.into_iter().map(|run| run.0).collect();
    let rows = sqlx::query(SILENT)
        .bind(clock.given())
        .bind(request.expired_only)
        .bind(i64::from(request.limit))
        .bind(left_out)
        .fetch_all(&mut *conn)
        .await?;
    let locked: Vec<RunId> = rows::all(&rows, rows::run_id)?;
    if locked.is_empty() {
        return Ok(Vec::new());
    }
    let locked: Vec<_> = locked.into_iter().map(|run| run.0).collect();
    let rows = sqlx::query(LOCKED)
        .bind(clock.given())
        .bind(locked)
        .fetch_all(conn)
        .await?;
    let rows = rows.iter();
    rows.filter_map(|row| Loaded::or_aside(row, aside, "a run cannot be taken back").transpose())
        .collect()
}
