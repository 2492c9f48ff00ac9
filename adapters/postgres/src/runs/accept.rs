//! Taking a run in where one statement ([`take_in`](super::take_in)) does not do it: the session does not
//! take it, or others are to be interrupted for it. The session is locked, and the domain says what is so.

use hango_domain::access::{Visibility, visibility};
use hango_domain::event::Event;
use hango_domain::journal::has_open_answer;
use hango_domain::run::Change;
use hango_domain::session::{OnBusy, SessionLine};
use hango_domain::{RunId, SessionId};
use hango_ports::audit_store::NewAudit;
use hango_ports::idempotency::IdempotencyKey;
use hango_ports::run_store::{Accepted, NewRun, RunStoreError};
use sqlx::{PgConnection, Row};

use super::change::decide;
use super::load::{self, Loaded};
use super::take_in::insert;
use super::writes::Writes;
use super::{Undone, journal, read, store};
use crate::clock::StoreClock;
use crate::error::Error;
use crate::sessions::is_seen;
use crate::{idempotency, rows};

/// Adds a run behind the others of its session, which is locked first.
pub(super) async fn accept(
    conn: &mut PgConnection,
    clock: &StoreClock,
    new: &NewRun,
    audit: &NewAudit,
) -> Result<Accepted, Undone> {
    let seen = visibility(&new.created_by);
    let interrupted = match new.on_busy {
        OnBusy::Interrupt => hold_running(conn, seen, new.session).await?,
        OnBusy::Enqueue | OnBusy::Reject => None,
    };
    let place = lock(conn, seen, new.session).await?;
    let place = place.ok_or(RunStoreError::NotFound)?;
    if load::exists(conn, new.id).await? {
        let known = read::find(conn, seen, new.id).await?;
        return Ok(Accepted {
            run: known.ok_or(RunStoreError::NotFound)?,
            interrupted: Vec::new(),
            events: Vec::new(),
        });
    }
    if place.agent_is_archived {
        return Err(RunStoreError::AgentArchived.into());
    }

    let mut ended = Ended::default();
    let mut line = place.line;
    if new.on_busy == OnBusy::Interrupt && line.pending_runs > 0 {
        if line.running_run != interrupted {
            return Err(Undone::InTheWay);
        }
        line = interrupt(conn, clock, new.session, line, &mut ended).await?;
    }
    line.accept(new.on_busy, new.max_pending)
        .map_err(RunStoreError::from)?;
    let added = insert(conn, clock, new, true, audit).await?;
    let Accepted { run, events, .. } = added.ok_or(Undone::InTheWay)?;
    ended.events.extend(events);
    Ok(Accepted {
        run,
        interrupted: ended.asked,
        events: ended.events,
    })
}

/// The same, once for a key.
pub(super) async fn once(
    conn: &mut PgConnection,
    clock: &StoreClock,
    key: &IdempotencyKey,
    new: &NewRun,
    audit: &NewAudit,
) -> Result<Accepted, Undone> {
    idempotency::begin::<Undone>(conn, clock, Some(key)).await?;
    let accepted = accept(conn, clock, new, audit).await?;
    idempotency::keep(conn, Some(key), &accepted.run).await?;
    Ok(accepted)
}

/// What the rules ask of where a run goes.
struct Place {
    line: SessionLine,
    agent_is_archived: bool,
}

/// Locks a session that the caller sees.
pub(super) const LOCK: &str = concat!(
    "select s.id as session_id, s.pending_runs, s.running_run, s.last_run_no, s.last_seq, \
         a.archived_at is not null as agent_is_archived
     from sessions s join agents a on a.id = s.agent_id
     where s.id = $1 and ",
    is_seen!("$2", "$3"),
    " for no key update of s"
);

async fn lock(
    conn: &mut PgConnection,
    seen: Visibility,
    session: SessionId,
) -> Result<Option<Place>, Error> {
    let row = sqlx::query(LOCK)
        .bind(session.0)
        .bind(seen.tenant.0)
        .bind(seen.creator.map(|user| user.0))
        .fetch_optional(conn)
        .await?;
    row.map(|row| {
        Ok(Place {
            line: rows::session_line(&row)?,
            agent_is_archived: row.try_get("agent_is_archived")?,
        })
    })
    .transpose()
}

/// What an interruption did.
#[derive(Default)]
struct Ended {
    /// Runs that someone has to end.
    asked: Vec<RunId>,
    /// The events of the others.
    events: Vec<Event>,
}

/// Locks the running run of a session that the caller sees.
pub(super) const HOLD_RUNNING: &str = concat!(
    "select r.id, r.state = 'running' as runs
     from sessions s
     cross join lateral (
         select id, state from runs where runs.id = s.running_run for no key update) r
     where s.id = $1 and ",
    is_seen!("$2", "$3")
);

/// Locks the session's running run: before the session, as every holder's write does. One that stopped
/// running before it was locked is in the way: it may be in a claim's by now, behind the session.
async fn hold_running(
    conn: &mut PgConnection,
    seen: Visibility,
    session: SessionId,
) -> Result<Option<RunId>, Undone> {
    let row = sqlx::query(HOLD_RUNNING)
        .bind(session.0)
        .bind(seen.tenant.0)
        .bind(seen.creator.map(|user| user.0))
        .fetch_optional(conn)
        .await
        .map_err(Error::from)?;
    let Some(row) = row else { return Ok(None) };
    if row.try_get("runs").map_err(Error::from)? {
        Ok(Some(rows::run_id(&row)?))
    } else {
        Err(Undone::InTheWay)
    }
}

/// Asks for the end of every pending run of a session; the session is locked, and so is the running one.
/// Returns where the session stands then.
async fn interrupt(
    conn: &mut PgConnection,
    clock: &StoreClock,
    session: SessionId,
    mut line: SessionLine,
    ended: &mut Ended,
) -> Result<SessionLine, Undone> {
    let pending = load::pending(conn, clock, session).await?;
    let Some(first) = pending.first() else {
        return Ok(line);
    };
    let mut writes = Writes::new(first.now);
    line.last_seq = first.line.last_seq;
    let mut runs = 0;
    for Loaded { run, .. } in &pending {
        let closing = if has_open_answer(run) {
            journal::closing(conn, run).await?
        } else {
            None
        };
        let change = Change::RequestCancel { closing };
        let (applied, after) =
            decide(&mut writes, run, line, change).map_err(RunStoreError::Refused)?;
        line = after;
        runs += 1;
        if !applied.run.state.status().is_terminal() {
            ended.asked.push(run.id);
        }
        ended.events.extend(applied.events);
    }
    let stored = store::store(conn, &writes).await?;
    if stored.len() == runs {
        Ok(line)
    } else {
        Err(Undone::InTheWay)
    }
}
