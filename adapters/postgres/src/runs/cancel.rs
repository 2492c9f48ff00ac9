//! Ending a run on request.
//!
//! A running run is asked with one statement, which waits for whoever writes the run and then has it:
//! however busy its holder is, he is not in the way. A run that waits is ended behind its session's lock.

use std::time::Instant;

use hango_domain::access::Visibility;
use hango_domain::journal::has_open_answer;
use hango_domain::run::{Change, Run, RunStatus};
use hango_domain::{RunId, Timestamp};
use hango_ports::audit_store::NewAudit;
use hango_ports::run_store::{Cancelled, RunStoreError};
use sqlx::PgConnection;

use super::change::decide;
use super::load::{Loaded, load_seen};
use super::writes::Writes;
use super::{Undone, journal, store};
use crate::audit::{self, note};
use crate::clock::StoreClock;
use crate::error::Error;
use crate::rows::{self, run_columns};
use crate::sessions::is_seen;

/// Asks for the end of a running run that the caller sees and that nobody asked to end before, with the
/// audit row: what [`Change::RequestCancel`] does to such a run. Returns it as it is then.
pub(super) const ASK: &str = concat!(
    "with asked as (
         update runs r set cancel_requested_at = coalesce($4, clock_timestamp())
         from sessions s
         where r.id = $1 and r.state = 'running' and r.cancel_requested_at is null
           and s.id = r.session_id and ",
    is_seen!("$2", "$3"),
    " returning ",
    run_columns!(),
    ", r.cancel_requested_at as now
     ),
     noted as (",
    note!("$5", "now", "asked"),
    ")
     select * from asked"
);

/// Asks for the end of a running run; `None` where there is none to be asked.
pub(super) async fn ask(
    conn: &mut PgConnection,
    clock: &StoreClock,
    seen: Visibility,
    run: RunId,
    audit: &NewAudit,
) -> Result<Option<Cancelled>, RunStoreError> {
    let sent = Instant::now();
    let row = sqlx::query(ASK)
        .bind(run.0)
        .bind(seen.tenant.0)
        .bind(seen.creator.map(|user| user.0))
        .bind(clock.given())
        .bind(audit::document(audit))
        .fetch_optional(conn)
        .await
        .map_err(Error::from)?;
    let Some(row) = row else { return Ok(None) };
    let now = rows::now(&row)?;
    clock.told(now, sent);
    let before = Run {
        cancel_requested_at: None,
        ..rows::run(&row)?.run
    };
    asked_of(before, now).map(Some)
}

/// Asks for the end of a run that the caller sees, however it stands.
pub(super) async fn request_cancel(
    conn: &mut PgConnection,
    clock: &StoreClock,
    seen: Visibility,
    run: RunId,
    audit: &NewAudit,
) -> Result<Cancelled, Undone> {
    let loaded = load_seen(conn, clock, seen, run).await?;
    let Loaded {
        run: found, now, ..
    } = loaded.ok_or(RunStoreError::NotFound)?;
    match found.state.status() {
        RunStatus::Queued => end_waiting(conn, clock, seen, run, audit).await,
        RunStatus::Running if found.cancel_requested_at.is_none() => {
            // It was claimed a moment ago.
            let asked = ask(conn, clock, seen, run, audit).await?;
            asked.ok_or(Undone::InTheWay)
        }
        // There is nothing to be written.
        RunStatus::Running | RunStatus::Succeeded | RunStatus::Failed | RunStatus::Cancelled => {
            Ok(asked_of(found, now)?)
        }
    }
}

/// What comes of asking, where it writes no more than the request.
fn asked_of(run: Run, now: Timestamp) -> Result<Cancelled, RunStoreError> {
    let applied = run.apply(&Change::RequestCancel { closing: None }, now);
    let applied = applied.map_err(RunStoreError::Refused)?;
    Ok(Cancelled {
        run: applied.run,
        events: applied.events,
    })
}

/// Ends a run that waits.
async fn end_waiting(
    conn: &mut PgConnection,
    clock: &StoreClock,
    seen: Visibility,
    run: RunId,
    audit: &NewAudit,
) -> Result<Cancelled, Undone> {
    // The session before a run that waits, as a claim does.
    lock_session_of(conn, run).await?;
    let loaded = load_seen(conn, clock, seen, run).await?;
    let loaded = loaded.ok_or(RunStoreError::NotFound)?;
    if loaded.run.state.status() != RunStatus::Queued {
        return Err(Undone::InTheWay);
    }
    let closing = if has_open_answer(&loaded.run) {
        journal::closing(conn, &loaded.run).await?
    } else {
        None
    };
    let change = Change::RequestCancel { closing };
    let mut writes = Writes::new(loaded.now);
    let (applied, _) =
        decide(&mut writes, &loaded.run, loaded.line, change).map_err(RunStoreError::Refused)?;
    if !store::store(conn, &writes).await?.has(run) {
        return Err(Undone::InTheWay);
    }
    audit::add(conn, audit, loaded.now).await?;
    Ok(Cancelled {
        run: applied.run,
        events: applied.events,
    })
}

/// Locks the session of a run.
pub(super) const LOCK_SESSION: &str = "select from sessions s
     where s.id = (select r.session_id from runs r where r.id = $1)
     for no key update";

async fn lock_session_of(conn: &mut PgConnection, run: RunId) -> Result<(), Error> {
    sqlx::query(LOCK_SESSION).bind(run.0).execute(conn).await?;
    Ok(())
}
