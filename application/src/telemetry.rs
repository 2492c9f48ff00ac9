//! What the engine observes, as log lines. The run's ids are on the line's span.

use hango_domain::note::Note;
use hango_domain::tool::told_name;
use hango_ports::Telemetry;
use hango_ports::telemetry::{ErrorType, Observation};

/// Writes observations to the log.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogLines;

impl Telemetry for LogLines {
    fn observe(&self, what: Observation) {
        match what {
            Observation::Census(census) => {
                let total = census.total();
                tracing::debug!(
                    queued = total.queued,
                    running = total.running,
                    claimable_for_ms = census.claimable_for.map(millis),
                    running_for_ms = census.running_for.map(millis),
                    "counted"
                );
            }
            Observation::Workers { busy, limit } => tracing::debug!(busy, limit, "workers"),
            Observation::ClaimWon { lease, waited } => tracing::debug!(
                "hango.run.id" = %lease.run,
                attempt = lease.attempt,
                waited_ms = millis(waited),
                "run.claimed"
            ),
            Observation::ClaimLost { owner } => tracing::debug!(%owner, "claim lost"),
            Observation::Reclaimed {
                previous,
                resume_turn,
                status,
            } => tracing::warn!(
                "hango.run.id" = %previous.run,
                previous_owner = %previous.owner,
                attempt = previous.attempt,
                resume_turn,
                %status,
                "run.reclaimed"
            ),
            Observation::LeaseLost { lease } => tracing::warn!(
                "hango.run.id" = %lease.run,
                attempt = lease.attempt,
                "lease lost: the run is not executed here any more"
            ),
            Observation::Noted { context, note } => log_note(context.turn, &note),
            Observation::ModelCalled {
                context,
                took,
                failure: None,
            } => tracing::info!(turn = context.turn, took_ms = millis(took), "model called"),
            Observation::ModelCalled {
                context,
                took,
                failure: Some(failed),
            } => tracing::warn!(
                turn = context.turn,
                took_ms = millis(took),
                failure = ?failed.kind,
                cause = ErrorType::from(failed.cause).as_str(),
                retry_after_ms = failed.retry_after.map(millis),
                discarded = failed.shown,
                "a model call brought no answer"
            ),
            Observation::ToolCalled {
                context,
                tool,
                took,
                is_error,
                facts: _,
            } => tracing::info!(
                turn = context.turn,
                tool = told_name(&tool),
                took_ms = millis(took),
                is_error,
                "tool called"
            ),
            Observation::RunEnded {
                run,
                status,
                end: _,
            } => tracing::debug!("hango.run.id" = %run, %status, "run.ended"),
            // The lines above say as much of them as a log should.
            Observation::HooksRan(_)
            | Observation::ModelTried(_)
            | Observation::ToolSettled(_)
            | Observation::TurnEnded(_)
            | Observation::RequestServed(_) => {}
        }
    }
}

fn log_note(turn: u32, note: &Note) {
    match note {
        Note::RequestRewritten { layer, reason } => {
            tracing::debug!(turn, layer, reason, "middleware.request_rewritten");
        }
        Note::ShortCircuited { layer, reason } => {
            tracing::info!(turn, layer, reason, "middleware.short_circuited");
        }
        Note::Retried { layer, reason } => {
            tracing::info!(turn, layer, reason, "middleware.retried");
        }
        Note::RepeatCallBlocked { tool } => {
            let tool = told_name(tool);
            tracing::info!(turn, tool, "middleware.repeat_call_blocked");
        }
        Note::TodosUpdated {
            pending,
            in_progress,
            completed,
        } => tracing::debug!(turn, pending, in_progress, completed, "agent.todos_updated"),
        Note::StateMissing { layer } => {
            tracing::warn!(turn, layer, "middleware.state_missing");
        }
        Note::HistoryRepaired { repairs } => {
            tracing::info!(turn, repairs, "the history was repaired for this call");
        }
        Note::ToolRefused { layer, tool } => {
            let tool = told_name(tool);
            tracing::info!(turn, layer, tool, "a tool call was refused");
        }
    }
}

fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
