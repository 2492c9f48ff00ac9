//! Rows of `runs`, alone and with what a change of a run has to know besides.

use hango_domain::access::Role;
use hango_domain::agent::AgentSnapshot;
use hango_domain::people::{TenantStatus, UserStatus, creator_now};
use hango_domain::run::{
    Lease, Progress, Run, RunError, RunState, RunStatus, StoredMemory, WriteId,
};
use hango_domain::session::SessionLine;
use hango_domain::{RunId, RunTrace, UserId};
use hango_ports::page::Position;
use hango_ports::run_store::Standing;
use serde::de::DeserializeOwned;
use sqlx::sqlite::SqliteRow;

use super::Columns;
use crate::error::Error;

/// The columns of a run, for `select … from runs r`.
macro_rules! run_columns {
    () => {
        "r.id, r.tenant_id, r.session_id, r.state, r.owner_id, r.lease_expires_at, r.attempt, \
         r.stalled_attempts, r.available_at, r.cancel_requested_at, r.started_at, r.finished_at, \
         r.resume_turn, r.begun_turn, r.answered_turn, r.tries, r.empty_answers, r.last_event, \
         r.last_write, r.iterations, r.usage, r.usage_discarded, r.stop_reason, r.final_message_id, \
         r.error, r.error_message, r.agent_id, r.agent_version, r.created_by, r.created_at, r.lane, \
         r.session_no, r.trace_id, r.span_id, r.trace_sampled, r.created_by_traceparent, \
         r.input_message_id, r.metadata, r.input, r.state_json, r.state_version"
    };
}
pub(crate) use run_columns;

/// A run as it was read.
pub(crate) struct ReadRun {
    /// The run; what is damaged of it is empty.
    pub(crate) run: Run,
    /// What is damaged, where a change can do without it: such a run can still be ended.
    pub(crate) damage: Option<Error>,
}

impl ReadRun {
    /// The run, if it is as it was stored.
    pub(crate) fn whole(self) -> Result<Run, Error> {
        self.damage.map_or(Ok(self.run), Err)
    }
}

/// A run.
pub(crate) fn run(row: &SqliteRow) -> Result<ReadRun, Error> {
    let columns = Columns::new(row, "runs", "id");
    let mut damage = None;
    let run = Run {
        id: columns.id("id")?,
        tenant_id: columns.id("tenant_id")?,
        session_id: columns.id("session_id")?,
        agent_id: columns.id("agent_id")?,
        agent_version: columns.number("agent_version")?,
        created_by: columns.id("created_by")?,
        lane: columns.get("lane")?,
        session_no: columns.number("session_no")?,
        state: state(&columns)?,
        attempt: columns.number("attempt")?,
        stalled_attempts: columns.number("stalled_attempts")?,
        available_at: columns.maybe_time("available_at")?,
        progress: Progress {
            resume_turn: columns.number("resume_turn")?,
            begun_turn: columns.number("begun_turn")?,
            answered_turn: columns.number("answered_turn")?,
            tries: columns.number("tries")?,
            empty_answers: columns.number("empty_answers")?,
            last_event: columns.number("last_event")?,
            last_write: columns.maybe_id("last_write")?.map(WriteId),
        },
        input: sound(&columns, "input", &mut damage),
        input_message_id: columns.id("input_message_id")?,
        metadata: sound(&columns, "metadata", &mut damage),
        iterations: columns.number("iterations")?,
        usage: sound(&columns, "usage", &mut damage),
        usage_discarded: sound(&columns, "usage_discarded", &mut damage),
        stop_reason: columns.maybe_word("stop_reason")?,
        final_message_id: columns.maybe_id("final_message_id")?,
        memory: StoredMemory {
            version: columns.number("state_version")?,
            json: sound(&columns, "state_json", &mut damage),
        },
        trace: RunTrace {
            trace_id: columns.form("trace_id")?,
            span_id: columns.form("span_id")?,
            sampled: columns.get("trace_sampled")?,
            created_by_traceparent: columns.get("created_by_traceparent")?,
        },
        cancel_requested_at: columns.maybe_time("cancel_requested_at")?,
        started_at: columns.maybe_time("started_at")?,
        created_at: columns.time("created_at")?,
    };
    Ok(ReadRun { run, damage })
}

/// The id of a run alone.
pub(crate) fn run_id(row: &SqliteRow) -> Result<RunId, Error> {
    Columns::new(row, "runs", "id").id("id")
}

/// The place of a run in a list.
pub(crate) fn position(row: &SqliteRow) -> Result<Position, Error> {
    let columns = Columns::new(row, "runs", "id");
    Ok(Position {
        at: columns.time("created_at")?,
        id: columns.id("id")?,
    })
}

/// The claim in force of a running run.
pub(crate) fn lease(row: &SqliteRow) -> Result<Lease, Error> {
    let columns = Columns::new(row, "runs", "id");
    Ok(Lease {
        run: columns.id("id")?,
        owner: columns.id("owner_id")?,
        attempt: columns.number("attempt")?,
    })
}

/// The agent as it was when the run was accepted.
pub(crate) fn agent_snapshot(row: &SqliteRow) -> Result<AgentSnapshot, Error> {
    Columns::new(row, "runs", "id").json("agent_snapshot")
}

/// What the run's session knows, under the names it has in `sessions`.
pub(crate) fn session_line(row: &SqliteRow) -> Result<SessionLine, Error> {
    let columns = Columns::new(row, "sessions", "session_id");
    Ok(SessionLine {
        pending_runs: columns.number("pending_runs")?,
        running_run: columns.maybe_id("running_run")?,
        last_run_no: columns.number("last_run_no")?,
        last_seq: columns.number("last_seq")?,
    })
}

/// What is true now of the creator and the tenant of a run, out of columns that say whose they are.
pub(crate) fn standing(row: &SqliteRow) -> Result<Standing, Error> {
    let columns = Columns::new(row, "runs", "id");
    let creator: UserId = columns.id("created_by")?;
    let session_creator: UserId = columns.id("session_created_by")?;
    let status: UserStatus = columns.word("creator_status")?;
    let role: Role = columns.word("creator_role")?;
    let tenant: TenantStatus = columns.word("tenant_status")?;
    Ok(Standing {
        cancel_requested: columns.maybe_time("cancel_requested_at")?.is_some(),
        creator: creator_now(status, role, creator == session_creator),
        tenant_active: tenant == TenantStatus::Active,
    })
}

fn state(columns: &Columns<'_>) -> Result<RunState, Error> {
    Ok(match columns.word("state")? {
        RunStatus::Queued => RunState::Queued,
        RunStatus::Running => RunState::Running {
            owner: columns.id("owner_id")?,
            expires_at: columns.time("lease_expires_at")?,
        },
        RunStatus::Succeeded => RunState::Succeeded {
            at: columns.time("finished_at")?,
        },
        RunStatus::Failed => RunState::Failed {
            at: columns.time("finished_at")?,
            error: RunError {
                code: columns.word("error")?,
                message: columns.get("error_message")?,
            },
        },
        RunStatus::Cancelled => RunState::Cancelled {
            at: columns.time("finished_at")?,
        },
    })
}

/// A structure, or an empty one where it is damaged; the first damage is remembered.
fn sound<T: DeserializeOwned + Default>(
    columns: &Columns<'_>,
    column: &'static str,
    damage: &mut Option<Error>,
) -> T {
    columns.json(column).unwrap_or_else(|error| {
        damage.get_or_insert(error);
        T::default()
    })
}
