//! The rows of the documents that [`STORE`](super::store::STORE) takes, under the names it has for their
//! columns. Each has `v`, which is always 1.

use chrono::{DateTime, Utc};
use hango_domain::conversation::{Block, NewMessage, Role, StopReason, Usage};
use hango_domain::event::Event;
use hango_domain::journal::{CallState, ToolCall};
use hango_domain::run::{Run, RunState, RunStatus};
use hango_domain::tool::ToolResult;
use hango_domain::{MessageId, RunId, SessionId, Timestamp, ToolCallId};
use serde::Serialize;
use serde_json::{Map, Value};
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::types::Json;
use uuid::Uuid;

use crate::rows::{Told, integer, moment, small};

type Query<'q> = sqlx::query::Query<'q, Postgres, PgArguments>;

/// What a change can change of a run, and what it was decided upon.
#[derive(Serialize)]
pub(super) struct Changed {
    v: u8,
    id: RunId,
    was_state: RunStatus,
    was_owner_id: Option<Uuid>,
    was_attempt: u32,
    was_last_event: u64,
    was_last_write: Option<Uuid>,
    was_cancelled: bool,
    state: RunStatus,
    owner_id: Option<Uuid>,
    lease_expires_at: Option<DateTime<Utc>>,
    attempt: u32,
    stalled_attempts: u32,
    available_at: Option<DateTime<Utc>>,
    cancel_requested_at: Option<DateTime<Utc>>,
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
    resume_turn: u32,
    begun_turn: u32,
    answered_turn: u32,
    tries: u32,
    empty_answers: u32,
    iterations: u32,
    last_event: u64,
    last_write: Option<Uuid>,
    usage: Option<Usage>,
    usage_discarded: Option<Usage>,
    stop_reason: Option<StopReason>,
    final_message_id: Option<MessageId>,
    error: Option<&'static str>,
    error_message: Option<String>,
    state_json: Option<Value>,
    state_version: Option<u32>,
}

impl Changed {
    pub(super) fn new(before: &Run, after: &Run) -> Self {
        let (was, progress) = (&before.progress, &after.progress);
        let (was_owner_id, _) = holder(before);
        let (owner_id, expires_at) = holder(after);
        let error = after.state.error();
        let memory = (before.memory != after.memory).then_some(&after.memory);
        Self {
            v: 1,
            id: before.id,
            was_state: before.state.status(),
            was_owner_id,
            was_attempt: before.attempt,
            was_last_event: was.last_event,
            was_last_write: was.last_write.map(|write| write.0),
            was_cancelled: before.cancel_requested_at.is_some(),
            state: after.state.status(),
            owner_id,
            lease_expires_at: expires_at.map(moment),
            attempt: after.attempt,
            stalled_attempts: after.stalled_attempts,
            available_at: after.available_at.map(moment),
            cancel_requested_at: after.cancel_requested_at.map(moment),
            started_at: after.started_at.map(moment),
            finished_at: after.state.finished_at().map(moment),
            resume_turn: progress.resume_turn,
            begun_turn: progress.begun_turn,
            answered_turn: progress.answered_turn,
            tries: progress.tries,
            empty_answers: progress.empty_answers,
            iterations: after.iterations,
            last_event: progress.last_event,
            last_write: progress.last_write.map(|write| write.0),
            usage: something(after.usage),
            usage_discarded: something(after.usage_discarded),
            stop_reason: after.stop_reason,
            final_message_id: after.final_message_id,
            error: error.map(|error| error.code.as_str()),
            error_message: error.map(|error| error.message.clone()),
            state_json: memory.map(|memory| memory.json.clone()),
            state_version: memory.map(|memory| memory.version),
        }
    }

    /// Binds it as [`store_one!`](super::store) takes it.
    pub(super) fn bind<'q>(&'q self, query: Query<'q>) -> Query<'q> {
        query
            .bind(self.id.0)
            .bind(self.was_state.as_str())
            .bind(self.was_owner_id)
            .bind(small(self.was_attempt))
            .bind(integer(self.was_last_event))
            .bind(self.was_last_write)
            .bind(self.was_cancelled)
            .bind(self.state.as_str())
            .bind(self.owner_id)
            .bind(self.lease_expires_at)
            .bind(small(self.attempt))
            .bind(small(self.stalled_attempts))
            .bind(self.available_at)
            .bind(self.cancel_requested_at)
            .bind(self.started_at)
            .bind(self.finished_at)
            .bind(small(self.resume_turn))
            .bind(small(self.begun_turn))
            .bind(small(self.answered_turn))
            .bind(small(self.tries))
            .bind(small(self.empty_answers))
            .bind(small(self.iterations))
            .bind(integer(self.last_event))
            .bind(self.last_write)
            .bind(self.usage.map(Json))
            .bind(self.usage_discarded.map(Json))
            .bind(self.stop_reason.map(StopReason::as_str))
            .bind(self.final_message_id.map(|message| message.0))
            .bind(self.error)
            .bind(self.error_message.as_deref())
            .bind(self.state_json.as_ref().map(Json))
            .bind(self.state_version.map(small))
    }
}

/// Who holds a run, and until when.
fn holder(run: &Run) -> (Option<Uuid>, Option<Timestamp>) {
    match run.state {
        RunState::Running { owner, expires_at } => (Some(owner.0), Some(expires_at)),
        RunState::Queued
        | RunState::Succeeded { .. }
        | RunState::Failed { .. }
        | RunState::Cancelled { .. } => (None, None),
    }
}

/// A usage as its column has it, which is null for none.
fn something(usage: Usage) -> Option<Usage> {
    (usage != Usage::default()).then_some(usage)
}

/// What the changes do to the line of a session, in terms that hold whatever else changes it: see
/// [`SessionLine::moved`](hango_domain::session::SessionLine::moved).
#[derive(Serialize)]
pub(super) struct Line {
    v: u8,
    session_id: SessionId,
    /// How many of its runs ended.
    pub(super) ended: i32,
    /// The run that is running from now on.
    pub(super) starts: Option<RunId>,
    /// Whether the one that was running is so no more.
    pub(super) stops: bool,
    /// The number of its last message; `None` leaves it as it is.
    pub(super) last_seq: Option<u64>,
}

impl Line {
    pub(super) const fn new(session_id: SessionId) -> Self {
        Self {
            v: 1,
            session_id,
            ended: 0,
            starts: None,
            stops: false,
            last_seq: None,
        }
    }
}

/// A message of a run.
#[derive(Serialize)]
pub(super) struct Said {
    v: u8,
    run_id: RunId,
    seq: u64,
    id: MessageId,
    role: Role,
    content: Vec<Block>,
    stop_reason: Option<StopReason>,
    usage: Option<Usage>,
    partial: bool,
}

impl Said {
    pub(super) fn new(run_id: RunId, message: NewMessage, seq: u64) -> Self {
        Self {
            v: 1,
            run_id,
            seq,
            id: message.id,
            role: message.role,
            content: message.content,
            stop_reason: message.stop_reason,
            usage: message.usage,
            partial: message.partial,
        }
    }
}

/// A call that enters the journal.
#[derive(Serialize)]
pub(super) struct Begun {
    v: u8,
    run_id: RunId,
    turn: u32,
    position: u32,
    id: ToolCallId,
    tool_use_id: String,
    name: String,
    state: CallState,
    executions: u32,
    invalid_input: Option<String>,
    input: Map<String, Value>,
}

impl Begun {
    pub(super) fn new(call: ToolCall) -> Self {
        Self {
            v: 1,
            run_id: call.run_id,
            turn: call.turn,
            position: call.position,
            id: call.id,
            tool_use_id: call.tool_use_id,
            name: call.name,
            state: call.state,
            executions: call.executions,
            invalid_input: call.invalid_input,
            input: call.input,
        }
    }
}

/// A call of the journal of which more is known.
#[derive(Serialize)]
pub(super) struct WentOn {
    pub(super) v: u8,
    pub(super) run_id: RunId,
    pub(super) turn: u32,
    pub(super) position: u32,
    pub(super) state: CallState,
    /// 1 where its execution begins with this.
    pub(super) starts: u8,
    pub(super) result: Option<ToolResult>,
}

/// What a run told with one write.
#[derive(Serialize)]
pub(super) struct ToldBy {
    v: u8,
    run_id: RunId,
    n: u64,
    attempt: u32,
    told: Vec<Told>,
}

impl ToldBy {
    pub(super) fn new(after: &Run, events: &[Event]) -> Option<Self> {
        let last = events.last()?;
        let told = |event: &Event| Told {
            turn: event.turn,
            kind: event.kind.clone(),
        };
        Some(Self {
            v: 1,
            run_id: after.id,
            n: last.n,
            attempt: last.attempt,
            told: events.iter().map(told).collect(),
        })
    }
}
