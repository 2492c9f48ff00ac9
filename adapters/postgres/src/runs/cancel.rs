//! Ending a run on request.

use hango_domain::RunId;
use hango_domain::access::Visibility;
use hango_domain::run::{Change, RunStatus};
use hango_ports::audit_store::NewAudit;
use hango_ports::run_store::{Cancelled, RunStoreError};
use sqlx::PgConnection;

use super::change::{decide, needs_closing};
use super::load::load_seen;
use super::writes::Writes;
use super::{Undone, journal, store};
use crate::audit;
use crate::clock::StoreClock;
use crate::error::Error;

/// Asks for the end of a run that the caller sees.
pub(super) async fn request_cancel(
    conn: &mut PgConnection,
    clock: &StoreClock,
    seen: Visibility,
    run: RunId,
    audit: &NewAudit,
) -> Result<Cancelled, Undone> {
    let loaded = load_seen(conn, clock, seen, run).await?;
    let mut loaded = loaded.ok_or(RunStoreError::NotFound)?;
    if loaded.run.state.status() == RunStatus::Queued {
        // The session before a run that waits, as a claim does.
        lock_session_of(conn, run).await?;
        let again = load_seen(conn, clock, seen, run).await?;
        loaded = again.ok_or(RunStoreError::NotFound)?;
        if loaded.run.state.status() != RunStatus::Queued {
            return Err(Undone::InTheWay);
        }
    }
    let asked_before = loaded.run.cancel_requested_at.is_some();
    let mut change = Change::RequestCancel { closing: None };
    if needs_closing(&mut change, &loaded.run) && loaded.run.state.status() == RunStatus::Queued {
        let closing = journal::closing(conn, &loaded.run).await?;
        change = Change::RequestCancel { closing };
    }
    let mut writes = Writes::new(loaded.now);
    let (applied, _) =
        decide(&mut writes, &loaded.run, loaded.line, change).map_err(RunStoreError::Refused)?;
    if !asked_before {
        if !store::store(conn, &writes).await?.has(run) {
            return Err(Undone::InTheWay);
        }
        audit::add(conn, audit, loaded.now).await?;
    }
    Ok(Cancelled {
        run: applied.run,
        events: applied.events,
    })
}

async fn lock_session_of(conn: &mut PgConnection, run: RunId) -> Result<(), Error> {
    sqlx::query(
        "select from sessions s
         where s.id = (select r.session_id from runs r where r.id = $1)
         for no key update",
    )
    .bind(run.0)
    .execute(conn)
    .await?;
    Ok(())
}
