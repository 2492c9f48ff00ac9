//! Taking runs in.
//!
//! As a rule one statement does it, which repeats the domain's condition: it is asked again of the
//! session's row as it is when nobody else has it. Where it does not hold, or somebody is to be
//! interrupted, the session is locked and the domain says what is so.

use hango_domain::access::{Visibility, visibility};
use hango_domain::event::{EVENT_VERSION, Event, EventKind};
use hango_domain::journal::has_open_answer;
use hango_domain::run::{Change, MAIN_LANE, StoredMemory};
use hango_domain::session::{OnBusy, SessionLine};
use hango_domain::{RunId, SessionId};
use hango_ports::audit_store::NewAudit;
use hango_ports::run_store::{Accepted, NewRun, RunStoreError};
use sqlx::types::Json;
use sqlx::{PgConnection, Row};

use super::change::decide;
use super::load::{self, Loaded};
use super::writes::Writes;
use super::{Undone, journal, read, store};
use crate::audit::{self, note};
use crate::clock::StoreClock;
use crate::error::Error;
use crate::rows::{self, Document, Told, small};

/// Adds a run to a session that the caller sees and that takes it, with its event, its audit row and the
/// session's line: the condition is [`SessionLine::accept`]. The agent is kept as it is now, once for each
/// of its versions: the domain's `AgentSnapshot`. Returns the session, which is none where it does not
/// take the run, or where that is known.
const TAKE_IN: &str = concat!(
    "with added as (
         update sessions s set pending_runs = s.pending_runs + 1, last_run_no = s.last_run_no + 1
         from agents a
         where s.id = $2 and s.tenant_id = $3 and ($4::uuid is null or s.created_by = $4)
           and a.id = s.agent_id and a.archived_at is null
           and not exists (select from runs where runs.id = $1)
           and s.pending_runs < $5 and (s.pending_runs = 0 or $6)
         returning s.id, s.tenant_id, s.agent_id, s.created_by, s.title, s.metadata, s.created_at, \
             s.updated_at, s.last_run_no, a.version as agent_version, \
             coalesce($7, clock_timestamp()) as now
     ),
     kept as (
         insert into agent_snapshots (agent_id, version, snapshot)
         select a.id, a.version, json_build_object('id', a.id, 'version', a.version, \
             'slug', a.slug, 'name', a.name, 'settings', a.settings)
         from added join agents a on a.id = added.agent_id
         on conflict (agent_id, version) do nothing
     ),
     told as (
         insert into events (run_id, n, attempt, version, at, told)
         select $1, 1, 0, $8, now, $9 from added
     ),
     noted as (",
    note!("$10", "now", "added"),
    "),
     run as (
         insert into runs (id, tenant_id, session_id, state, attempt, stalled_attempts, resume_turn, \
             begun_turn, answered_turn, tries, empty_answers, last_event, iterations, agent_id, \
             agent_version, created_by, created_at, lane, session_no, trace_id, span_id, \
             trace_sampled, created_by_traceparent, input_message_id, metadata, input, state_json, \
             state_version)
         select $1, tenant_id, id, 'queued', 0, 0, 0, 0, 0, 0, 0, 1, 0, agent_id, agent_version, \
             $11, now, $12, last_run_no, $13, $14, $15, $16, $17, $18, $19, $20, $21
         from added
     )
     select * from added"
);

/// Adds a run behind the others of its session, if nothing is in its way.
pub(super) async fn take_in(
    conn: &mut PgConnection,
    clock: &StoreClock,
    new: &NewRun,
    audit: &NewAudit,
) -> Result<Option<Accepted>, Error> {
    let enqueue = new.on_busy == OnBusy::Enqueue;
    match insert(conn, clock, new, enqueue, audit).await {
        // Somebody adds the same run.
        Err(error) if error.constraint() == Some("runs_pkey") => Ok(None),
        added => added,
    }
}

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

async fn insert(
    conn: &mut PgConnection,
    clock: &StoreClock,
    new: &NewRun,
    enqueue: bool,
    audit: &NewAudit,
) -> Result<Option<Accepted>, Error> {
    let seen = visibility(&new.created_by);
    let told = [Told {
        turn: 0,
        kind: EventKind::RunQueued,
    }];
    let memory = StoredMemory::default();
    let row = sqlx::query(TAKE_IN)
        .bind(new.id.0)
        .bind(new.session.0)
        .bind(seen.tenant.0)
        .bind(seen.creator.map(|user| user.0))
        .bind(small(new.max_pending))
        .bind(enqueue)
        .bind(clock.given())
        .bind(small(EVENT_VERSION))
        .bind(Document(told.as_slice()))
        .bind(audit::document(audit))
        .bind(new.created_by.user.0)
        .bind(MAIN_LANE)
        .bind(new.trace.trace_id.to_string())
        .bind(new.trace.span_id.to_string())
        .bind(new.trace.sampled)
        .bind(new.trace.created_by_traceparent.as_deref())
        .bind(new.input_message_id.0)
        .bind(Document(&new.metadata))
        .bind(Json(&new.input))
        .bind(Json(&memory.json))
        .bind(small(memory.version))
        .fetch_optional(conn)
        .await?;
    row.map(|row| {
        let session = rows::session(&row)?;
        let (agent_version, session_no) = rows::place(&row)?;
        let now = rows::now(&row)?;
        clock.told(now);
        let run = new.clone().queued(&session, agent_version, session_no, now);
        let (run, event) = run.accepted();
        Ok(Accepted {
            run,
            interrupted: Vec::new(),
            events: vec![event],
        })
    })
    .transpose()
}

/// What the rules ask of where a run goes.
struct Place {
    line: SessionLine,
    agent_is_archived: bool,
}

/// Locks a session that the caller sees.
async fn lock(
    conn: &mut PgConnection,
    seen: Visibility,
    session: SessionId,
) -> Result<Option<Place>, Error> {
    let row = sqlx::query(
        "select s.id as session_id, s.pending_runs, s.running_run, s.last_run_no, s.last_seq, \
             a.archived_at is not null as agent_is_archived
         from sessions s join agents a on a.id = s.agent_id
         where s.id = $1 and s.tenant_id = $2 and ($3::uuid is null or s.created_by = $3)
         for no key update of s",
    )
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

/// Locks the session's running run: before the session, as every holder's write does. One that stopped
/// running before it was locked is in the way: it may be in a claim's by now, behind the session.
async fn hold_running(
    conn: &mut PgConnection,
    seen: Visibility,
    session: SessionId,
) -> Result<Option<RunId>, Undone> {
    let row = sqlx::query(
        "select r.id, r.state = 'running' as runs
         from sessions s
         cross join lateral (
             select id, state from runs where runs.id = s.running_run for no key update) r
         where s.id = $1 and s.tenant_id = $2 and ($3::uuid is null or s.created_by = $3)",
    )
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
