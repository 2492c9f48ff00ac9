//! The statement that writes changed runs, with all that belongs to them: the journal, messages, events
//! and the lines of their sessions. One round trip, whatever the change and however many runs.
//!
//! It carries the fence. A run is written only if its row still is what the change was decided upon: the
//! claim in force, the last event, the last write and whether its end was asked for are compared by the
//! update itself, so also after a wait for whoever had the row. All else is joined to what that update
//! returns: where the fence does not hold, nothing is written, and the run is not in the answer.
//!
//! Of what it leaves alone: while a run stays running its lease is the renewal's, which nothing here
//! remembers, and `sessions.last_seq` is brought up to date when the run leaves its session, not at
//! every turn. Until then nobody else may say anything in it.
//!
//! Every part costs something even where it has nothing to do, and so does taking a run out of a
//! document. Therefore a single run comes as parameters, and the parts that a kind of change never needs
//! are left out ([`Shape`]).

use std::collections::BTreeMap;

use hango_domain::event::EVENT_VERSION;
use hango_domain::{RunId, Timestamp};
use hango_ports::run_store::Standing;
use sqlx::PgConnection;

use super::changed::changed_columns;
use super::writes::Writes;
use crate::error::Error;
use crate::rows::{self, Document, moment, small};

/// What a write is made of. Each parameter is a JSON array, or null for none: see [`Writes`]. Such a
/// document has few rows, which the planner cannot know; the comparison with `v`, which is always 1, has
/// it expect one, so that it never thinks of reading a whole table for it. `$6` is the moment.
macro_rules! part {
    (held) => {
        "held as (
    update runs r set
        state = c.state, owner_id = c.owner_id,
        lease_expires_at = case
            when r.state = 'running' and c.state = 'running' then r.lease_expires_at
            else c.lease_expires_at end,
        attempt = c.attempt, stalled_attempts = c.stalled_attempts, available_at = c.available_at,
        cancel_requested_at = c.cancel_requested_at, started_at = c.started_at,
        finished_at = c.finished_at, resume_turn = c.resume_turn, begun_turn = c.begun_turn,
        answered_turn = c.answered_turn, tries = c.tries, empty_answers = c.empty_answers,
        iterations = c.iterations, last_event = c.last_event, last_write = c.last_write,
        usage = c.usage, usage_discarded = c.usage_discarded, stop_reason = c.stop_reason,
        final_message_id = c.final_message_id, error = c.error, error_message = c.error_message,
        state_json = coalesce(c.state_json, r.state_json),
        state_version = coalesce(c.state_version, r.state_version)
    from changed c
    where r.id = c.id
      and r.state = c.was_state
      and r.owner_id is not distinct from c.was_owner_id
      and r.attempt = c.was_attempt
      and r.last_event = c.was_last_event
      and r.last_write is not distinct from c.was_last_write
      and (r.cancel_requested_at is not null) = c.was_cancelled
    returning r.id, r.tenant_id, r.session_id, r.created_by, r.cancel_requested_at
)"
    };
    (moved) => {
        ", moved as (
    update sessions s set
        pending_runs = s.pending_runs - l.ended,
        running_run = case when l.starts is not null or l.stops then l.starts else s.running_run end,
        last_seq = coalesce(l.last_seq, s.last_seq)
    from json_to_recordset($1) as l (
        v int, session_id uuid, ended int, starts uuid, stops boolean, last_seq bigint)
    where l.v = 1 and s.id = l.session_id
      and exists (select from held where held.session_id = l.session_id)
)"
    };
    (said) => {
        ", said as (
    insert into messages (session_id, seq, id, run_id, role, content, stop_reason, usage, partial, \
        created_at)
    select held.session_id, m.seq, m.id, held.id, m.role, m.content, m.stop_reason, m.usage, \
        m.partial, $6
    from json_to_recordset($2) as m (
        v int, run_id uuid, seq bigint, id uuid, role text, content json, stop_reason text,
        usage json, partial boolean)
    join held on held.id = m.run_id
    where m.v = 1
)"
    };
    (begun) => {
        ", begun as (
    insert into tool_calls (run_id, turn, position, id, tool_use_id, name, state, executions, \
        started_at, invalid_input, input)
    select held.id, b.turn, b.position, b.id, b.tool_use_id, b.name, b.state, b.executions, \
        case when b.executions > 0 then $6 end, b.invalid_input, b.input
    from json_to_recordset($3) as b (
        v int, run_id uuid, turn int, position int, id uuid, tool_use_id text, name text, state text,
        executions int, invalid_input text, input json)
    join held on held.id = b.run_id
    where b.v = 1
)"
    };
    (went_on) => {
        ", went_on as (
    update tool_calls t set
        state = w.state,
        executions = t.executions + w.starts,
        started_at = case when w.starts = 1 then $6 else t.started_at end,
        finished_at = case when w.result is not null then $6 else t.finished_at end,
        result = coalesce(w.result, t.result)
    from json_to_recordset($4) as w (
        v int, run_id uuid, turn int, position int, state text, starts int, result json)
    join held on held.id = w.run_id
    where w.v = 1 and t.run_id = w.run_id and t.turn = w.turn and t.position = w.position
)"
    };
    (told) => {
        ", told as (
    insert into events (run_id, n, attempt, version, at, told)
    select held.id, e.n, e.attempt, $7, $6, e.told
    from json_to_recordset($5) as e (v int, run_id uuid, n bigint, attempt int, told json)
    join held on held.id = e.run_id
    where e.v = 1
)"
    };
}

/// A statement of `held` and the other parts that are named, of the runs that come as `$changed`.
macro_rules! store {
    ($changed:ident, $($part:ident)*) => {
        concat!(
            "with changed as (", changed_columns!($changed), "), ", part!(held), $(part!($part),)* "
select held.id, held.cancel_requested_at, u.status as creator_status, u.role as creator_role, \
    t.status as tenant_status, clock_timestamp() as now
from held
join users u on u.id = held.created_by
join tenants t on t.id = held.tenant_id"
        )
    };
}

/// A single run, as parameters.
macro_rules! parameters {
    ($($n:literal $name:ident $type:ident = $bound:ty;)*) => {
        concat!("select 1 as v" $(, ", $", $n, "::", stringify!($type), " as ", stringify!($name))*)
    };
}

/// Any number of runs, which come as one document.
macro_rules! recordset {
    ($($n:literal $name:ident $type:ident = $bound:ty;)*) => {
        concat!(
            "select * from json_to_recordset($8) as c (v int"
            $(, ", ", stringify!($name), " ", stringify!($type))*,
            ") where c.v = 1"
        )
    };
}

/// Writes any number of runs.
pub(super) const STORE: &str = store!(recordset, moved said begun went_on told);

/// Which parts the write of one run needs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Shape {
    /// The journal grows; the run stays in its place.
    Answer,
    /// Calls of the journal go on; the run stays in its place.
    Results,
    /// The run leaves its place, and no call is open.
    End,
    /// Anything else.
    Any,
}

impl Shape {
    fn of(writes: &Writes) -> Self {
        let moved = !writes.lines.is_empty();
        let (begun, went_on) = (!writes.begun.is_empty(), !writes.went_on.is_empty());
        match (moved, begun, went_on) {
            (false, _, false) => Self::Answer,
            (false, false, true) => Self::Results,
            (true, false, false) => Self::End,
            _ => Self::Any,
        }
    }

    pub(super) const fn statement(self) -> &'static str {
        match self {
            Self::Answer => store!(parameters, said begun told),
            Self::Results => store!(parameters, said went_on told),
            Self::End => store!(parameters, moved said told),
            Self::Any => store!(parameters, moved said begun went_on told),
        }
    }
}

/// What was written.
pub(crate) struct Stored {
    /// The runs whose fence held.
    runs: BTreeMap<RunId, rows::Truth>,
    /// The database's time; `None` where nothing was written.
    pub(crate) now: Option<Timestamp>,
}

impl Stored {
    /// How many runs were written.
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether a run was written.
    pub(crate) fn has(&self, run: RunId) -> bool {
        self.runs.contains_key(&run)
    }

    /// What is true of a run now, if it was written; before, `known` was.
    pub(crate) fn standing(&self, run: RunId, known: Standing) -> Option<Standing> {
        self.runs.get(&run).map(|truth| truth.standing(known))
    }
}

/// Writes those of the runs whose fence holds.
pub(crate) async fn store(conn: &mut PgConnection, writes: &Writes) -> Result<Stored, Error> {
    let lines: Vec<_> = writes.lines.values().collect();
    let one = match writes.changed.as_slice() {
        [one] => Some(one),
        _ => None,
    };
    let query = sqlx::query(one.map_or(STORE, |_| Shape::of(writes).statement()))
        .bind(document(&lines))
        .bind(document(&writes.said))
        .bind(document(&writes.begun))
        .bind(document(&writes.went_on))
        .bind(document(&writes.told))
        .bind(moment(writes.at))
        .bind(small(EVENT_VERSION));
    let query = match one {
        Some(one) => one.bind(query),
        None => query.bind(Document(&writes.changed)),
    };
    let rows = query.fetch_all(conn).await?;
    let runs = rows::all(&rows, |row| Ok((rows::run_id(row)?, rows::truth(row)?)))?;
    Ok(Stored {
        runs: runs.into_iter().collect(),
        now: rows.first().map(rows::now).transpose()?,
    })
}

/// A document that may have no rows.
fn document<T>(rows: &[T]) -> Option<Document<&[T]>> {
    (!rows.is_empty()).then_some(Document(rows))
}
