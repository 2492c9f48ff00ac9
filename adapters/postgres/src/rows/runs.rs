//! Rows of `runs`, alone and with what a change of a run has to know besides, and of its
//! events.

use hango_domain::access::Role;
use hango_domain::agent::AgentSnapshot;
use hango_domain::event::{Event, EventKind};
use hango_domain::people::{TenantStatus, UserStatus, creator_now};
use hango_domain::run::{
    Lease, Progress, Run, RunError, RunState, RunStatus, StoredMemory, WriteId,
};
use hango_domain::{AgentId, RunId, RunTrace, SessionId, Timestamp, UserId};
use hango_ports::page::Position;
use hango_ports::run_store::Standing;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sqlx::postgres::PgRow;

use super::Columns;
use crate::error::Error;
use crate::runs::Outcome;

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
pub(crate) fn run(row: &PgRow) -> Result<ReadRun, Error> {
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
        session_no: columns.big_number("session_no")?,
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
            last_event: columns.big_number("last_event")?,
            last_write: columns.maybe_id("last_write")?.map(WriteId),
        },
        input: sound(&columns, "input", &mut damage),
        input_message_id: columns.id("input_message_id")?,
        metadata: sound(&columns, "metadata", &mut damage),
        iterations: columns.number("iterations")?,
        usage: sound::<Option<_>>(&columns, "usage", &mut damage).unwrap_or_default(),
        usage_discarded: sound::<Option<_>>(&columns, "usage_discarded", &mut damage)
            .unwrap_or_default(),
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
pub(crate) fn run_id(row: &PgRow) -> Result<RunId, Error> {
    Columns::new(row, "runs", "id").id("id")
}

/// The place of a run in a list.
pub(crate) fn position(row: &PgRow) -> Result<Position, Error> {
    let columns = Columns::new(row, "runs", "id");
    Ok(Position {
        at: columns.time("created_at")?,
        id: columns.id("id")?,
    })
}

/// The claim in force of a running run.
pub(crate) fn lease(row: &PgRow) -> Result<Lease, Error> {
    let columns = Columns::new(row, "runs", "id");
    Ok(Lease {
        run: columns.id("id")?,
        owner: columns.id("owner_id")?,
        attempt: columns.number("attempt")?,
    })
}

/// What a renewal did to a claim in force.
pub(crate) fn renewed(row: &PgRow) -> Result<Outcome, Error> {
    let columns = Columns::new(row, "runs", "id");
    let (renewed, ran_out) = (columns.get("renewed")?, columns.get("ran_out")?);
    Ok(match (renewed, ran_out) {
        (true, _) => Outcome::Renewed,
        (false, true) => Outcome::RanOut,
        (false, false) => Outcome::Locked,
    })
}

/// The session that a message is of.
pub(crate) fn session_of(row: &PgRow) -> Result<SessionId, Error> {
    Columns::new(row, "messages", "id").id("session_id")
}

/// The run that an entry of the journal is of.
pub(crate) fn run_of(row: &PgRow) -> Result<RunId, Error> {
    Columns::new(row, "tool_calls", "id").id("run_id")
}

/// The agent as it was when the run `id` was accepted.
pub(crate) fn agent_snapshot(row: &PgRow) -> Result<AgentSnapshot, Error> {
    Columns::new(row, "agent_snapshots", "agent_id").json("snapshot")
}

/// The agent, its version, and the number in its session, that a new run gets.
pub(crate) fn place(row: &PgRow) -> Result<(AgentId, u32, u64), Error> {
    let columns = Columns::new(row, "sessions", "id");
    Ok((
        columns.id("agent_id")?,
        columns.number("agent_version")?,
        columns.big_number("last_run_no")?,
    ))
}

/// The database's time, or what stands in for it.
pub(crate) fn now(row: &PgRow) -> Result<Timestamp, Error> {
    Columns::new(row, "the clock", "id").time("now")
}

/// What is true now of a run's creator and tenant, and whether its end was asked for.
pub(crate) struct Truth {
    cancel_requested: bool,
    creator_status: UserStatus,
    creator_role: Role,
    tenant_status: TenantStatus,
}

impl Truth {
    /// What a write tells the holder; `known` was true before, and who created the session stays so.
    pub(crate) fn standing(&self, known: Standing) -> Standing {
        self.of(known.creator.created_session)
    }

    fn of(&self, created_session: bool) -> Standing {
        Standing {
            cancel_requested: self.cancel_requested,
            creator: creator_now(self.creator_status, self.creator_role, created_session),
            tenant_active: self.tenant_status == TenantStatus::Active,
        }
    }
}

/// What is true now, out of columns that say whose they are.
pub(crate) fn truth(row: &PgRow) -> Result<Truth, Error> {
    let columns = Columns::new(row, "runs", "id");
    Ok(Truth {
        cancel_requested: columns.maybe_time("cancel_requested_at")?.is_some(),
        creator_status: columns.word("creator_status")?,
        creator_role: columns.word("creator_role")?,
        tenant_status: columns.word("tenant_status")?,
    })
}

/// The same as what a holder is told, with who created the session.
pub(crate) fn standing(row: &PgRow) -> Result<Standing, Error> {
    let columns = Columns::new(row, "runs", "id");
    let creator: UserId = columns.id("created_by")?;
    let session_creator: UserId = columns.id("session_created_by")?;
    Ok(truth(row)?.of(creator == session_creator))
}

/// An event as `events.told` has it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Told<K = EventKind> {
    pub(crate) turn: u32,
    #[serde(flatten)]
    pub(crate) kind: K,
}

/// The events of a write, of any format.
pub(crate) fn events(row: &PgRow) -> Result<Vec<Event>, Error> {
    let columns = Columns::new(row, "events", "run_id");
    let (run_id, attempt, at) = (
        columns.id("run_id")?,
        columns.number("attempt")?,
        columns.time("at")?,
    );
    let version = columns.number("version")?;
    let last: u64 = columns.big_number("n")?;
    let told: Vec<Told<Map<String, Value>>> = columns.json("told")?;
    let numbers = last.saturating_sub(told.len() as u64) + 1..;
    let event = |(n, Told { turn, kind })| {
        let kind = columns.parsed("told", EventKind::from_stored(version, kind))?;
        Ok(Event {
            run_id,
            n,
            turn,
            attempt,
            at,
            kind,
        })
    };
    numbers.zip(told).map(event).collect()
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
    let read = columns.maybe_json(column).and_then(|value| match value {
        Some(value) => Ok(value),
        None => columns.parsed(column, serde_json::from_str("null")),
    });
    read.unwrap_or_else(|error| {
        damage.get_or_insert(error);
        T::default()
    })
}
