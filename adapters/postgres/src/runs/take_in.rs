//! Taking a run in with one statement, which repeats the domain's condition: it is asked again of the
//! session's row as it is when nobody else has it.

use std::time::Instant;

use hango_domain::access::visibility;
use hango_domain::event::{EVENT_VERSION, EventKind};
use hango_domain::run::{MAIN_LANE, StoredMemory};
use hango_domain::session::OnBusy;
use hango_ports::audit_store::NewAudit;
use hango_ports::run_store::{Accepted, NewRun};
use sqlx::PgConnection;
use sqlx::types::Json;

use crate::audit::{self, note};
use crate::clock::StoreClock;
use crate::error::Error;
use crate::rows::{self, Document, Told, small};
use crate::sessions::is_seen;

/// Adds a run to a session that the caller sees and that takes it, with its event, its audit row and the
/// session's line: the condition is [`SessionLine::accept`]. The agent is kept as it is now, once for each
/// of its versions: the domain's `AgentSnapshot`. Returns nothing where the session does not take the run,
/// or where that is known.
pub(super) const TAKE_IN: &str = concat!(
    "with added as (
         update sessions s set pending_runs = s.pending_runs + 1, last_run_no = s.last_run_no + 1
         from agents a
         where s.id = $2 and ",
    is_seen!("$3", "$4"),
    "      and a.id = s.agent_id and a.archived_at is null
           and not exists (select from runs where runs.id = $1)
           and s.pending_runs < $5 and (s.pending_runs = 0 or $6)
         returning s.id, s.tenant_id, s.agent_id, s.last_run_no, a.version as agent_version, \
             coalesce($7, clock_timestamp()) as now
     ),
     kept as (
         insert into agent_snapshots (agent_id, version, snapshot)
         select a.id, a.version, json_build_object('id', a.id, 'version', a.version, \
             'slug', a.slug, 'name', a.name, 'settings', a.settings)
         from added join agents a on a.id = added.agent_id
         where not exists (
             select from agent_snapshots k where k.agent_id = a.id and k.version = a.version)
         on conflict (agent_id, version) do nothing
     ),
     told as (
         insert into events (run_id, n, attempt, version, at, told)
         select $1, 1, 0, $8, now, $9 from added
     ),
     noted as (",
    note!(
        "$10",
        "now",
        "added",
        "(audit.detail::jsonb || jsonb_build_object('agent_id', added.agent_id))::json"
    ),
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
     select agent_id, agent_version, last_run_no, now from added"
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

/// Adds the run, where `enqueue` also behind others, if the session takes it.
pub(super) async fn insert(
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
    let asked = Instant::now();
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
        let (agent, agent_version, session_no) = rows::place(&row)?;
        let now = rows::now(&row)?;
        clock.told(now, asked);
        let run = new.clone().queued(agent, agent_version, session_no, now);
        let (run, event) = run.accepted();
        Ok(Accepted {
            run,
            interrupted: Vec::new(),
            events: vec![event],
        })
    })
    .transpose()
}
