//! Why a run is in its state, as callers see it.

use hango_domain::explain::{Attempt, Explanation, Holder, QueuePlace};
use hango_domain::run::{RunError, RunStatus};
use hango_domain::{OwnerId, explain};
use serde::Serialize;
use utoipa::ToSchema;

use crate::openapi::schema;
use crate::time::Time;

/// Why a run is in its state.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Explanation)]
pub(crate) struct ExplanationBody {
    #[schema(schema_with = schema::run_state)]
    state: RunStatus,
    /// All of it in a few words for a person.
    summary: String,
    /// Null unless the run is queued.
    queue: Option<QueueBody>,
    /// Null unless the run is running.
    lease: Option<LeaseBody>,
    /// The claims of the run, in their order; of more than a hundred the last.
    attempts: Vec<AttemptBody>,
    /// Before this nobody claims the run.
    available_at: Option<Time>,
    #[schema(schema_with = schema::run_error)]
    error: Option<RunError>,
}

/// Where a queued run stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QueuePlace)]
struct QueueBody {
    /// Its place among the runs of its session that have not ended; 1 is the first.
    #[schema(minimum = 1)]
    position: usize,
    #[schema(schema_with = schema::blocked_by)]
    blocked_by: Option<String>,
    /// How many runs of its tenant are running.
    tenant_running: u32,
    /// How many may be at once; null for any number.
    tenant_cap: Option<u32>,
}

/// Who holds a running run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunLease)]
struct LeaseBody {
    /// The process.
    #[schema(value_type = Uuid)]
    owner_id: OwnerId,
    attempt: u32,
    /// Until when, if it does not renew that.
    expires_at: Time,
    /// When it renewed that last; null if it never did, or where that is not known.
    renewed_at: Option<Time>,
}

/// A claim of a run, and what became of it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunAttempt)]
struct AttemptBody {
    attempt: u32,
    /// The process; null where a build told of it that does not tell which.
    #[schema(value_type = Option<Uuid>)]
    owner_id: Option<OwnerId>,
    started_at: Time,
    /// Null while it goes on.
    ended_at: Option<Time>,
    /// What ended it: why the run went back to the queue, or how it ended, a failure by its code.
    #[schema(schema_with = schema::attempt_cause)]
    cause: Option<&'static str>,
}

impl From<Explanation> for ExplanationBody {
    fn from(explanation: Explanation) -> Self {
        let Explanation {
            state,
            summary,
            queue,
            lease,
            attempts,
            available_at,
            error,
        } = explanation;
        Self {
            state,
            summary,
            queue: queue.map(QueueBody::from),
            lease: lease.map(LeaseBody::from),
            attempts: attempts.into_iter().map(AttemptBody::from).collect(),
            available_at: available_at.map(Time),
            error,
        }
    }
}

impl From<QueuePlace> for QueueBody {
    fn from(place: QueuePlace) -> Self {
        Self {
            position: place.position,
            blocked_by: place.blocked_by.name(),
            tenant_running: place.tenant_running,
            tenant_cap: place.tenant_cap,
        }
    }
}

impl From<Holder> for LeaseBody {
    fn from(holder: Holder) -> Self {
        Self {
            owner_id: holder.owner,
            attempt: holder.attempt,
            expires_at: Time(holder.expires_at),
            renewed_at: holder.renewed_at.map(Time),
        }
    }
}

impl From<Attempt> for AttemptBody {
    fn from(attempt: Attempt) -> Self {
        Self {
            attempt: attempt.attempt,
            owner_id: attempt.owner,
            started_at: Time(attempt.started_at),
            ended_at: attempt.ended_at.map(Time),
            cause: attempt.cause.map(explain::Cause::as_str),
        }
    }
}
