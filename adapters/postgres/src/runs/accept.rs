//! Taking runs in.
//!
//! The session's row is locked first, and the domain decides upon its line as it is then.

use hango_domain::access::{Visibility, visibility};
use hango_domain::event::{EVENT_VERSION, Event};
use hango_domain::journal::has_open_answer;
use hango_domain::run::{Change, Run};
use hango_domain::session::{OnBusy, Session, SessionLine};
use hango_domain::{RunId, SessionId, Timestamp};
use hango_ports::audit_store::NewAudit;
use hango_ports::run_store::{Accepted, NewRun, RunStoreError};
use sqlx::{PgConnection, Row};

use super::change::decide;
use super::load::{self, Loaded};
use super::writes::Writes;
use super::{Undone, journal, read, store};
use crate::audit::{self, note};
use crate::clock::StoreClock;
use crate::error::Error;
use crate::rows::{self, Document, Told, integer, moment, small};

/// Adds a run behind the others of its session.
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
    let place = lock(conn, clock, seen, new).await?;
    let place = place.ok_or(RunStoreError::NotFound)?;
    if place.run_is_known {
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
    let line = line
        .accept(new.on_busy, new.max_pending)
        .map_err(RunStoreError::from)?;

    let Place { session, now, .. } = place;
    let run = new
        .clone()
        .queued(&session, place.agent_version, line.last_run_no, now);
    let (run, event) = run.accepted();
    let added = insert(conn, &run, &event, &line, audit).await;
    added.map_err(|error| match error.constraint() {
        Some("runs_pkey") => Undone::InTheWay,
        _ => error.into(),
    })?;
    ended.events.push(event);
    Ok(Accepted {
        run,
        interrupted: ended.asked,
        events: ended.events,
    })
}

/// What a new run has to know of where it goes.
struct Place {
    session: Session,
    line: SessionLine,
    agent_version: u32,
    agent_is_archived: bool,
    run_is_known: bool,
    now: Timestamp,
}

/// Locks a session that the caller sees. What is not the session's own was read before the wait for the
/// lock; of that only a run of the same id can be another than it seems, and then it is found a second
/// time when it is added.
async fn lock(
    conn: &mut PgConnection,
    clock: &StoreClock,
    seen: Visibility,
    new: &NewRun,
) -> Result<Option<Place>, Error> {
    let row = sqlx::query(
        "select s.id, s.tenant_id, s.agent_id, s.created_by, s.title, s.metadata, s.created_at, \
             s.updated_at, s.id as session_id, s.pending_runs, s.running_run, s.last_run_no, \
             s.last_seq, a.version as agent_version, a.archived_at is not null as agent_archived, \
             exists (select from runs where id = $2) as known, \
             coalesce($1, clock_timestamp()) as now
         from sessions s join agents a on a.id = s.agent_id
         where s.id = $3 and s.tenant_id = $4 and ($5::uuid is null or s.created_by = $5)
         for no key update of s",
    )
    .bind(clock.given())
    .bind(new.id.0)
    .bind(new.session.0)
    .bind(seen.tenant.0)
    .bind(seen.creator.map(|user| user.0))
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        let version: i32 = row.try_get("agent_version")?;
        Ok(Place {
            session: rows::session(&row)?,
            line: rows::session_line(&row)?,
            agent_version: u32::try_from(version).unwrap_or_default(),
            agent_is_archived: row.try_get("agent_archived")?,
            run_is_known: row.try_get("known")?,
            now: rows::now(&row)?,
        })
    })
    .transpose()
}

/// Adds a run with its event, its audit row and the line of its session, which is locked. The agent is
/// kept as it is now, once for each of its versions: the domain's `AgentSnapshot`.
async fn insert(
    conn: &mut PgConnection,
    run: &Run,
    event: &Event,
    line: &SessionLine,
    audit: &NewAudit,
) -> Result<(), Error> {
    let told = [Told {
        turn: event.turn,
        kind: event.kind.clone(),
    }];
    sqlx::query(concat!(
        "with counted as (
             update sessions set pending_runs = $2, last_run_no = $3 where id = $4
         ),
         kept as (
             insert into agent_snapshots (agent_id, version, snapshot)
             select id, version, json_build_object('id', id, 'version', version, 'slug', slug, \
                 'name', name, 'settings', settings)
             from agents where id = $5
             on conflict (agent_id, version) do nothing
         ),
         told as (
             insert into events (run_id, n, attempt, version, at, told)
             values ($1, $6, 0, $7, $8, $9)
         ),
         noted as (",
        note!("$10", "$8", "(values (1)) as once"),
        ")
         insert into runs (id, tenant_id, session_id, state, attempt, stalled_attempts, resume_turn, \
             begun_turn, answered_turn, tries, empty_answers, last_event, iterations, agent_id, \
             agent_version, created_by, created_at, lane, session_no, trace_id, span_id, \
             trace_sampled, created_by_traceparent, input_message_id, metadata, input, state_json, \
             state_version)
         values ($1, $11, $4, 'queued', 0, 0, 0, 0, 0, 0, 0, $6, 0, $5, $12, $13, $8, $14, $3, $15, \
             $16, $17, $18, $19, $20, $21, $22, $23)"
    ))
    .bind(run.id.0)
    .bind(small(line.pending_runs))
    .bind(integer(line.last_run_no))
    .bind(run.session_id.0)
    .bind(run.agent_id.0)
    .bind(integer(run.progress.last_event))
    .bind(small(EVENT_VERSION))
    .bind(moment(run.created_at))
    .bind(Document(told.as_slice()))
    .bind(audit::document(audit))
    .bind(run.tenant_id.0)
    .bind(small(run.agent_version))
    .bind(run.created_by.0)
    .bind(&run.lane)
    .bind(run.trace.trace_id.to_string())
    .bind(run.trace.span_id.to_string())
    .bind(run.trace.sampled)
    .bind(run.trace.created_by_traceparent.as_deref())
    .bind(run.input_message_id.0)
    .bind(Document(&run.metadata))
    .bind(sqlx::types::Json(&run.input))
    .bind(sqlx::types::Json(&run.memory.json))
    .bind(small(run.memory.version))
    .execute(conn)
    .await?;
    Ok(())
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
    if stored.runs.len() == runs {
        Ok(line)
    } else {
        Err(Undone::InTheWay)
    }
}
