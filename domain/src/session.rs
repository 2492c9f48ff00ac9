//! Sessions, and the counters by which a session's runs stay in line.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::run::RunStatus;
use crate::{AgentId, RunId, SessionId, TenantId, Timestamp, UserId};

/// A conversation with an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Its identity.
    pub id: SessionId,
    /// The tenant.
    pub tenant_id: TenantId,
    /// The agent.
    pub agent_id: AgentId,
    /// Who created it; a member sees no other's.
    pub created_by: UserId,
    /// Its name for people; empty for none.
    pub title: String,
    /// The caller's own data.
    pub metadata: Map<String, Value>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

/// What a session's row knows of its runs and messages. Rules over several runs are conditions on
/// this one row, so that no two callers can both be right.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SessionLine {
    /// Runs that have not ended.
    pub pending_runs: u32,
    /// The run that is running.
    pub running_run: Option<RunId>,
    /// The number of the last accepted run.
    pub last_run_no: u64,
    /// The number of the last message.
    pub last_seq: u64,
}

/// What happens to a new run of a session that has pending ones.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnBusy {
    /// It waits behind them.
    #[default]
    Enqueue,
    /// It is refused.
    Reject,
    /// They are cancelled, and it runs when they have ended.
    Interrupt,
}

/// Why a session takes no more.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum LineError {
    /// It has pending runs, and the caller wanted none.
    #[error("the session has {pending} pending runs")]
    Busy {
        /// How many.
        pending: u32,
    },
    /// It has as many pending runs as it may have.
    #[error("the session has {pending} pending runs, and may have {most}")]
    Full {
        /// How many.
        pending: u32,
        /// The most.
        most: u32,
    },
}

impl SessionLine {
    /// The line with one more run, which gets the number `last_run_no`.
    ///
    /// With [`OnBusy::Interrupt`] the caller cancels the pending runs first, so that queued ones do not
    /// count any more.
    ///
    /// # Errors
    ///
    /// [`LineError`]; the line is as it was.
    pub const fn accept(self, on_busy: OnBusy, most: u32) -> Result<Self, LineError> {
        let pending = self.pending_runs;
        if matches!(on_busy, OnBusy::Reject) && pending > 0 {
            return Err(LineError::Busy { pending });
        }
        if pending >= most {
            return Err(LineError::Full { pending, most });
        }
        Ok(Self {
            pending_runs: pending + 1,
            last_run_no: self.last_run_no + 1,
            ..self
        })
    }

    /// The line after a run of it went from one status to another.
    #[must_use]
    pub fn moved(mut self, run: RunId, from: RunStatus, to: RunStatus) -> Self {
        if to.is_terminal() && !from.is_terminal() {
            self.pending_runs = self.pending_runs.saturating_sub(1);
        }
        if to == RunStatus::Running {
            self.running_run = Some(run);
        } else if self.running_run == Some(run) {
            self.running_run = None;
        }
        self
    }

    /// The line after one more message, which gets the number `last_seq`.
    #[must_use]
    pub const fn said(self) -> Self {
        Self {
            last_seq: self.last_seq + 1,
            ..self
        }
    }
}

#[cfg(test)]
mod tests;
