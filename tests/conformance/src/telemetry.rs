//! What every telemetry sink must do, as `ports/src/telemetry.rs` says it.

use std::sync::Arc;
use std::time::Duration;

use hango_domain::model::{CallContext, FailureCause, ModelFailureKind};
use hango_domain::note::Note;
use hango_domain::queue::{Census, Counts};
use hango_domain::run::{Lease, RunStatus};
use hango_domain::{AgentId, OwnerId, RunId, RunTrace, SessionId, SpanId, TenantId, TraceId};
use hango_ports::Telemetry;
use hango_ports::telemetry::{FailedTry, Observation};
use uuid::Uuid;

use crate::told;

mod facts;

/// One of every kind, with values at the edges of what they can be.
fn every_kind() -> Vec<Observation> {
    let lease = Lease {
        run: RunId(Uuid::max()),
        owner: OwnerId(Uuid::nil()),
        attempt: u32::MAX,
    };
    let context = Arc::new(CallContext {
        tenant: TenantId(Uuid::nil()),
        agent: AgentId(Uuid::nil()),
        session: SessionId(Uuid::nil()),
        run: RunId(Uuid::nil()),
        turn: u32::MAX,
        attempt: 0,
        trace: RunTrace {
            trace_id: TraceId([0xff; 16]),
            span_id: SpanId([0xff; 8]),
            sampled: true,
            created_by_traceparent: Some("not one".to_owned()),
        },
    });
    let layer = "todo";
    let notes = [
        Note::RequestRewritten { layer, reason: "" },
        Note::ShortCircuited { layer, reason: "" },
        Note::Retried { layer, reason: "" },
        Note::RepeatCallBlocked {
            tool: "t".repeat(4096),
        },
        Note::TodosUpdated {
            pending: usize::MAX,
            in_progress: 0,
            completed: usize::MAX,
        },
        Note::StateMissing { layer },
        Note::HistoryRepaired {
            repairs: usize::MAX,
        },
        Note::ToolRefused {
            layer,
            tool: String::new(),
        },
    ];
    let noted = notes.map(|note| Observation::Noted {
        context: Arc::clone(&context),
        note,
    });
    let ended = |status| Observation::RunEnded {
        run: lease.run,
        status,
        end: None,
    };
    let mut kinds = vec![
        Observation::ClaimWon {
            lease,
            waited: Duration::MAX,
        },
        Observation::ClaimLost { owner: lease.owner },
        Observation::Reclaimed {
            previous: lease,
            resume_turn: u32::MAX,
            status: RunStatus::Queued,
        },
        Observation::LeaseLost { lease },
        Observation::ModelCalled {
            context: Arc::clone(&context),
            took: Duration::MAX,
            failure: Some(FailedTry {
                kind: ModelFailureKind::Protocol,
                cause: FailureCause::Status(u16::MAX),
                retry_after: Some(Duration::MAX),
                shown: true,
            }),
        },
        Observation::ModelCalled {
            context: Arc::clone(&context),
            took: Duration::ZERO,
            failure: None,
        },
        Observation::ToolCalled {
            context: Arc::clone(&context),
            tool: "\u{0}\u{1f600}".to_owned(),
            took: Duration::MAX,
            is_error: true,
            facts: None,
        },
        ended(RunStatus::Succeeded),
        ended(RunStatus::Failed),
        ended(RunStatus::Cancelled),
    ];
    kinds.extend(noted);
    kinds.extend(of_all_runs());
    kinds.extend(facts::every_kind(&context));
    kinds
}

/// What is told of all runs together, and of the process.
fn of_all_runs() -> [Observation; 3] {
    let many = Counts {
        queued: u64::MAX / 2,
        running: 0,
    };
    let most = Census {
        tenants: vec![(TenantId(Uuid::max()), many)],
        others: many,
        claimable_for: Some(Duration::MAX),
        running_for: Some(Duration::ZERO),
    };
    [
        Observation::Census(Census::default()),
        Observation::Census(most),
        Observation::Workers {
            busy: usize::MAX,
            limit: 0,
        },
    ]
}

/// What is told has no order that a sink may rely on: runs are executed side by side, and processes die.
pub async fn it_bears_any_order<G>(sink: impl AsyncFn() -> (Arc<dyn Telemetry>, G)) {
    let (sink, _guard) = sink().await;

    told::bears_any_order(&every_kind(), move |what| sink.observe(what));
}

/// Telling is all: a sink whose other end is stuck drops what it cannot hold.
pub async fn it_never_waits<G>(sink: impl AsyncFn() -> (Arc<dyn Telemetry>, G)) {
    let (sink, _guard) = sink().await;

    told::never_waits(&every_kind(), move |what| sink.observe(what));
}

/// Runs are executed on many threads, and no port promises a runtime.
pub async fn it_is_told_from_any_number_of_threads<G>(
    sink: impl AsyncFn() -> (Arc<dyn Telemetry>, G),
) {
    let (sink, _guard) = sink().await;

    told::bears_threads(&every_kind(), move |what| sink.observe(what));
}
