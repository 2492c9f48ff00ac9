//! The statements on `runs`.

use std::time::Instant;

use hango_domain::RunId;
use hango_domain::agent::AgentSnapshot;
use hango_domain::conversation::StopReason;
use hango_domain::queue::SetAside;
use hango_domain::run::{Lease, Run, RunState};
use hango_domain::session::SessionLine;
use hango_domain::{OwnerId, SessionId, Timestamp};
use hango_ports::run_store::Standing;
use sqlx::Sqlite;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection};
use sqlx::types::Json;

use crate::error::Error;
use crate::rows::{self, ReadRun, integer, run_columns};

/// A run with all that a change of it has to know.
pub(crate) struct Loaded {
    pub(crate) run: Run,
    /// See [`ReadRun::damage`].
    pub(crate) damage: Option<Error>,
    pub(crate) line: SessionLine,
    pub(crate) standing: Standing,
}

/// Reads a run to change it.
pub(crate) async fn load(conn: &mut SqliteConnection, run: RunId) -> Result<Option<Loaded>, Error> {
    let row = sqlx::query(concat!(
        "select ",
        run_columns!(),
        ", s.pending_runs, s.running_run, s.last_run_no, s.last_seq, \
             s.created_by as session_created_by, \
             u.status as creator_status, u.role as creator_role, t.status as tenant_status
         from runs r
         join sessions s on s.id = r.session_id
         join users u on u.id = r.created_by
         join tenants t on t.id = r.tenant_id
         where r.id = ?"
    ))
    .bind(run.to_string())
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        let ReadRun { run, damage } = rows::run(&row)?;
        Ok(Loaded {
            run,
            damage,
            line: rows::session_line(&row)?,
            standing: rows::standing(&row)?,
        })
    })
    .transpose()
}

/// The same; `None` for one that is gone, and for one that cannot be read, which is set aside, and said
/// in the log as `what`.
pub(crate) async fn load_or_aside(
    conn: &mut SqliteConnection,
    run: RunId,
    aside: &SetAside,
    what: &str,
) -> Result<Option<Loaded>, Error> {
    match load(conn, run).await {
        Err(error @ Error::Unreadable { .. }) => {
            if aside.add(run, Instant::now()) {
                tracing::error!("hango.run.id" = %run, %error, "{what}");
            }
            Ok(None)
        }
        loaded => loaded,
    }
}

/// Adds an accepted run.
pub(crate) async fn insert(
    conn: &mut SqliteConnection,
    run: &Run,
    agent: &AgentSnapshot,
) -> Result<(), Error> {
    sqlx::query(
        "insert into runs (id, tenant_id, session_id, state, attempt, stalled_attempts, \
             resume_turn, begun_turn, answered_turn, tries, empty_answers, last_event, iterations, \
             usage, usage_discarded, agent_id, agent_version, created_by, created_at, lane, \
             session_no, trace_id, span_id, trace_sampled, created_by_traceparent, \
             input_message_id, metadata, input, agent_snapshot, state_json, state_version)
         values (?, ?, ?, 'queued', 0, 0, 0, 0, 0, 0, 0, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, \
             ?, ?, ?, ?, ?)",
    )
    .bind(run.id.to_string())
    .bind(run.tenant_id.to_string())
    .bind(run.session_id.to_string())
    .bind(integer(run.progress.last_event))
    .bind(Json(&run.usage))
    .bind(Json(&run.usage_discarded))
    .bind(run.agent_id.to_string())
    .bind(run.agent_version)
    .bind(run.created_by.to_string())
    .bind(run.created_at.as_micros())
    .bind(&run.lane)
    .bind(integer(run.session_no))
    .bind(run.trace.trace_id.to_string())
    .bind(run.trace.span_id.to_string())
    .bind(run.trace.sampled)
    .bind(run.trace.created_by_traceparent.as_deref())
    .bind(run.input_message_id.to_string())
    .bind(Json(&run.metadata))
    .bind(Json(&run.input))
    .bind(Json(agent))
    .bind(Json(&run.memory.json))
    .bind(run.memory.version)
    .execute(conn)
    .await?;
    Ok(())
}

/// What a change can change of a run, as parameters 1 to 25.
macro_rules! changed_columns {
    () => {
        "state = ?1, owner_id = ?2, lease_expires_at = ?3, attempt = ?4, stalled_attempts = ?5, \
         available_at = ?6, cancel_requested_at = ?7, started_at = ?8, finished_at = ?9, \
         resume_turn = ?10, begun_turn = ?11, answered_turn = ?12, tries = ?13, \
         empty_answers = ?14, last_event = ?15, last_write = ?16, iterations = ?17, usage = ?18, \
         usage_discarded = ?19, stop_reason = ?20, final_message_id = ?21, error = ?22, \
         error_message = ?23, state_json = coalesce(?24, state_json), \
         state_version = coalesce(?25, state_version)"
    };
}

/// Stores a run after a change that only the holder of `lease` may make. False if it does not hold.
pub(crate) async fn store_held(
    conn: &mut SqliteConnection,
    run: &Run,
    new_memory: bool,
    lease: Lease,
) -> Result<bool, Error> {
    let query = sqlx::query(concat!(
        "update runs set ",
        changed_columns!(),
        " where id = ?26 and state = 'running' and owner_id = ?27 and attempt = ?28"
    ));
    let done = bind_changed(query, run, new_memory)
        .bind(lease.run.to_string())
        .bind(lease.owner.to_string())
        .bind(lease.attempt)
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Stores a run after a change of one that waits in the queue. False if it does not.
pub(crate) async fn store_queued(conn: &mut SqliteConnection, run: &Run) -> Result<bool, Error> {
    let query = sqlx::query(concat!(
        "update runs set ",
        changed_columns!(),
        " where id = ?26 and state = 'queued'"
    ));
    let done = bind_changed(query, run, false)
        .bind(run.id.to_string())
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

fn bind_changed<'q>(
    query: Query<'q, Sqlite, SqliteArguments>,
    run: &'q Run,
    new_memory: bool,
) -> Query<'q, Sqlite, SqliteArguments> {
    let (owner, expires_at) = match run.state {
        RunState::Running { owner, expires_at } => (Some(owner), Some(expires_at)),
        RunState::Queued
        | RunState::Succeeded { .. }
        | RunState::Failed { .. }
        | RunState::Cancelled { .. } => (None, None),
    };
    let error = run.state.error();
    let progress = &run.progress;
    let memory = new_memory.then_some(&run.memory);
    query
        .bind(run.state.status().as_str())
        .bind(owner.map(|owner: OwnerId| owner.to_string()))
        .bind(expires_at.map(Timestamp::as_micros))
        .bind(run.attempt)
        .bind(run.stalled_attempts)
        .bind(run.available_at.map(Timestamp::as_micros))
        .bind(run.cancel_requested_at.map(Timestamp::as_micros))
        .bind(run.started_at.map(Timestamp::as_micros))
        .bind(run.state.finished_at().map(Timestamp::as_micros))
        .bind(progress.resume_turn)
        .bind(progress.begun_turn)
        .bind(progress.answered_turn)
        .bind(progress.tries)
        .bind(progress.empty_answers)
        .bind(integer(progress.last_event))
        .bind(
            progress
                .last_write
                .map(|write| write.0.hyphenated().to_string()),
        )
        .bind(run.iterations)
        .bind(Json(&run.usage))
        .bind(Json(&run.usage_discarded))
        .bind(run.stop_reason.map(StopReason::as_str))
        .bind(run.final_message_id.map(|id| id.to_string()))
        .bind(error.map(|error| error.code.as_str()))
        .bind(error.map(|error| error.message.as_str()))
        .bind(memory.map(|memory| Json(&memory.json)))
        .bind(memory.map(|memory| memory.version))
}

/// Whether there is such a run, whoever may see it.
pub(crate) async fn exists(conn: &mut SqliteConnection, run: RunId) -> Result<bool, Error> {
    let found: Option<String> = sqlx::query_scalar("select id from runs where id = ?")
        .bind(run.to_string())
        .fetch_optional(conn)
        .await?;
    Ok(found.is_some())
}

/// The runs of a session that have not ended, in their order.
pub(crate) async fn pending(
    conn: &mut SqliteConnection,
    session: SessionId,
) -> Result<Vec<RunId>, Error> {
    let rows = sqlx::query(
        "select id from runs indexed by runs_pending
         where session_id = ? and state in ('queued', 'running')
         order by session_no",
    )
    .bind(session.to_string())
    .fetch_all(conn)
    .await?;
    rows::all(&rows, rows::run_id)
}
