//! Taking runs in, and ending them on request.

use hango_domain::access::{Visibility, visibility};
use hango_domain::event::Event;
use hango_domain::run::Change;
use hango_domain::session::{OnBusy, Session, SessionLine};
use hango_domain::{RunId, SessionId, Timestamp};
use hango_ports::agent_store::AgentRef;
use hango_ports::audit_store::NewAudit;
use hango_ports::run_store::{Accepted, Cancelled, NewRun, RunStoreError};
use sqlx::SqliteConnection;

use super::{change, read, table};
use crate::error::Error;
use crate::{agents, audit, sessions};

/// Adds a run behind the others of its session.
pub(crate) async fn accept(
    conn: &mut SqliteConnection,
    new: NewRun,
    audit: NewAudit,
    now: Timestamp,
) -> Result<Accepted, RunStoreError> {
    let seen = visibility(&new.created_by);
    if table::exists(conn, new.id).await? {
        let known = read::find(&mut *conn, seen, new.id).await?;
        return Ok(Accepted {
            run: known.ok_or(RunStoreError::NotFound)?,
            interrupted: Vec::new(),
            events: Vec::new(),
        });
    }
    let (session, line) = seen_session(conn, seen, new.session).await?;
    let agent = AgentRef::Id(session.agent_id);
    let agent = agents::find(&mut *conn, session.tenant_id, &agent).await?;
    let agent = agent.ok_or(RunStoreError::NotFound)?;
    if agent.archived_at.is_some() {
        return Err(RunStoreError::AgentArchived);
    }

    let interrupts = new.on_busy == OnBusy::Interrupt && line.pending_runs > 0;
    let (mut interrupted, mut events) = (Vec::new(), Vec::new());
    let line = if interrupts {
        (interrupted, events) = interrupt(conn, new.session, now).await?;
        seen_session(conn, seen, new.session).await?.1
    } else {
        line
    };
    let line = line.accept(new.on_busy, new.max_pending)?;

    let run = new.queued(agent.id, agent.version, line.last_run_no, now);
    let (run, event) = run.accepted();
    table::insert(conn, &run, &agent.snapshot()).await?;
    change::tell(conn, std::slice::from_ref(&event)).await?;
    events.push(event);
    sessions::store_line(conn, session.id, &line).await?;
    audit::note(conn, &audit.with_agent(agent.id), now).await?;
    Ok(Accepted {
        run,
        interrupted,
        events,
    })
}

/// Asks for the end of a run that the caller sees.
pub(crate) async fn request_cancel(
    conn: &mut SqliteConnection,
    seen: Visibility,
    run: RunId,
    audit: &NewAudit,
    now: Timestamp,
) -> Result<Cancelled, RunStoreError> {
    if !read::is_seen(&mut *conn, seen, run).await? {
        return Err(RunStoreError::NotFound);
    }
    let loaded = table::load(conn, run).await?;
    let loaded = loaded.ok_or(RunStoreError::NotFound)?;
    let asked_before = loaded.run.cancel_requested_at.is_some();
    let change = Change::RequestCancel { closing: None };
    let made = change::make(conn, loaded, change, now).await?;
    if !asked_before {
        audit::note(conn, audit, now).await?;
    }
    Ok(Cancelled {
        run: made.applied.run,
        events: made.applied.events,
    })
}

/// Asks for the end of every pending run of a session; returns those that someone has to end, and the
/// events of the others.
async fn interrupt(
    conn: &mut SqliteConnection,
    session: SessionId,
    now: Timestamp,
) -> Result<(Vec<RunId>, Vec<Event>), RunStoreError> {
    let (mut interrupted, mut events) = (Vec::new(), Vec::new());
    for run in table::pending(conn, session).await? {
        let Some(loaded) = table::load(conn, run).await? else {
            continue;
        };
        let change = Change::RequestCancel { closing: None };
        let made = change::make(conn, loaded, change, now).await?;
        if !made.applied.run.state.status().is_terminal() {
            interrupted.push(run);
        }
        events.extend(made.applied.events);
    }
    Ok((interrupted, events))
}

async fn seen_session(
    conn: &mut SqliteConnection,
    seen: Visibility,
    session: SessionId,
) -> Result<(Session, SessionLine), RunStoreError> {
    let found: Result<_, Error> = sessions::find(conn, seen, session).await;
    found?.ok_or(RunStoreError::NotFound)
}
