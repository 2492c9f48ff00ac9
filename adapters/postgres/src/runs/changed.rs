//! What a change can change of a run, and what it was decided upon: one table, from which come the row of
//! the document that [`STORE`](super::store::STORE) takes of many runs, and the parameters that it takes of
//! a single one.

use chrono::{DateTime, Utc};
use hango_domain::Timestamp;
use hango_domain::conversation::{StopReason, Usage};
use hango_domain::run::{Run, RunState};
use serde::Serialize;
use serde_json::Value;
use sqlx::types::Json;
use uuid::Uuid;

use crate::rows::{integer, moment, small};
use crate::statement::Statement;

/// Each column: its parameter where a single run comes as such, its name, its type in the database, and
/// what is bound of it.
macro_rules! changed_columns {
    ($then:ident) => {
        $then! {
            8 id uuid = Uuid;
            9 was_state text = &'static str;
            10 was_owner_id uuid = Option<Uuid>;
            11 was_attempt int = i32;
            12 was_last_event bigint = i64;
            13 was_last_write uuid = Option<Uuid>;
            14 was_cancelled boolean = bool;
            15 state text = &'static str;
            16 owner_id uuid = Option<Uuid>;
            17 lease_expires_at timestamptz = Option<DateTime<Utc>>;
            18 attempt int = i32;
            19 stalled_attempts int = i32;
            20 available_at timestamptz = Option<DateTime<Utc>>;
            21 cancel_requested_at timestamptz = Option<DateTime<Utc>>;
            22 started_at timestamptz = Option<DateTime<Utc>>;
            23 finished_at timestamptz = Option<DateTime<Utc>>;
            24 resume_turn int = i32;
            25 begun_turn int = i32;
            26 answered_turn int = i32;
            27 tries int = i32;
            28 empty_answers int = i32;
            29 iterations int = i32;
            30 last_event bigint = i64;
            31 last_write uuid = Option<Uuid>;
            32 usage jsonb = Option<Json<Usage>>;
            33 usage_discarded jsonb = Option<Json<Usage>>;
            34 stop_reason text = Option<&'static str>;
            35 final_message_id uuid = Option<Uuid>;
            36 error text = Option<&'static str>;
            37 error_message text = Option<String>;
            38 state_json jsonb = Option<Json<Value>>;
            39 state_version int = Option<i32>;
        }
    };
}
pub(super) use changed_columns;

macro_rules! changed {
    ($($n:literal $name:ident $type:ident = $bound:ty;)*) => {
        /// See [`changed`](self).
        #[derive(Serialize)]
        pub(super) struct Changed {
            /// Always 1.
            v: u8,
            $($name: $bound,)*
        }

        impl Changed {
            /// Binds it as parameters, which come behind those that are bound.
            pub(super) fn bind(&self, query: Statement) -> Statement {
                query$(.bind(&self.$name))*
            }
        }
    };
}
changed_columns!(changed);

impl Changed {
    pub(super) fn new(before: &Run, after: &Run) -> Self {
        let (was, progress) = (&before.progress, &after.progress);
        let (was_owner_id, _) = holder(before);
        let (owner_id, expires_at) = holder(after);
        let error = after.state.error();
        let memory = (before.memory != after.memory).then_some(&after.memory);
        Self {
            v: 1,
            id: before.id.0,
            was_state: before.state.status().as_str(),
            was_owner_id,
            was_attempt: small(before.attempt),
            was_last_event: integer(was.last_event),
            was_last_write: was.last_write.map(|write| write.0),
            was_cancelled: before.cancel_requested_at.is_some(),
            state: after.state.status().as_str(),
            owner_id,
            lease_expires_at: expires_at.map(moment),
            attempt: small(after.attempt),
            stalled_attempts: small(after.stalled_attempts),
            available_at: after.available_at.map(moment),
            cancel_requested_at: after.cancel_requested_at.map(moment),
            started_at: after.started_at.map(moment),
            finished_at: after.state.finished_at().map(moment),
            resume_turn: small(progress.resume_turn),
            begun_turn: small(progress.begun_turn),
            answered_turn: small(progress.answered_turn),
            tries: small(progress.tries),
            empty_answers: small(progress.empty_answers),
            iterations: small(after.iterations),
            last_event: integer(progress.last_event),
            last_write: progress.last_write.map(|write| write.0),
            usage: something(after.usage),
            usage_discarded: something(after.usage_discarded),
            stop_reason: after.stop_reason.map(StopReason::as_str),
            final_message_id: after.final_message_id.map(|message| message.0),
            error: error.map(|error| error.code.as_str()),
            error_message: error.map(|error| error.message.clone()),
            state_json: memory.map(|memory| Json(memory.json.clone())),
            state_version: memory.map(|memory| small(memory.version)),
        }
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
fn something(usage: Usage) -> Option<Json<Usage>> {
    (usage != Usage::default()).then_some(Json(usage))
}
