//! Removing what is old: [`hango_domain::retention`].

use hango_domain::retention::{Retention, one_step, rows_of_run, rows_of_session};
use hango_domain::{RunId, SessionId, Timestamp};
use hango_ports::run_store::{PruneRequest, Pruned};

use crate::state::State;

impl State {
    /// Removes old answers, and old runs unless there are more of those; or old sessions when there are no
    /// runs.
    pub(crate) fn prune(&mut self, request: PruneRequest, now: Timestamp) -> Pruned {
        let answers = self.prune_answers(request.rows, now);
        let pruned = match request.retention {
            Some(retention) if answers < u64::from(request.rows) => {
                self.prune_sessions(retention, request.rows, now)
            }
            _ => Pruned::default(),
        };
        Pruned { answers, ..pruned }
    }

    fn prune_sessions(&mut self, retention: Retention, rows: u32, now: Timestamp) -> Pruned {
        let runs = self.old_runs(retention, rows, now);
        for (session, run) in &runs {
            if let Some(row) = self.sessions.get_mut(session) {
                row.runs.remove(run);
            }
        }
        if !runs.is_empty() {
            return Pruned {
                runs: runs.len() as u64,
                ..Pruned::default()
            };
        }
        let sessions = self.old_sessions(retention, rows, now);
        for session in &sessions {
            self.sessions.remove(session);
        }
        Pruned {
            sessions: sessions.len() as u64,
            ..Pruned::default()
        }
    }

    fn old_runs(&self, retention: Retention, rows: u32, now: Timestamp) -> Vec<(SessionId, RunId)> {
        let old = self
            .runs()
            .filter(|run| retention.is_old_run(run, now))
            .map(|run| ((run.session_id, run.id), rows_of_run(run)));
        one_step(old, rows).collect()
    }

    fn old_sessions(&self, retention: Retention, rows: u32, now: Timestamp) -> Vec<SessionId> {
        let old = self.sessions.values().filter(|row| {
            let said = row.messages.last().map(|message| message.created_at);
            retention.is_old_session(&row.session, row.runs.len(), said, now)
        });
        let old = old.map(|row| (row.session.id, rows_of_session(&row.line)));
        one_step(old, rows).collect()
    }
}
