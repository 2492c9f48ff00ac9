//! Removing what is old: [`hango_domain::retention`].

use hango_domain::retention::{one_step, rows_of_run, rows_of_session};
use hango_domain::{RunId, SessionId, Timestamp};
use hango_ports::run_store::{PruneRequest, Pruned};

use crate::state::State;

impl State {
    /// Removes old runs, or old sessions when there are none.
    pub(crate) fn prune(&mut self, request: PruneRequest, now: Timestamp) -> Pruned {
        let runs = self.old_runs(request, now);
        for (session, run) in &runs {
            if let Some(row) = self.sessions.get_mut(session) {
                row.runs.remove(run);
            }
        }
        if !runs.is_empty() {
            return Pruned {
                runs: runs.len() as u64,
                sessions: 0,
            };
        }
        let sessions = self.old_sessions(request, now);
        for session in &sessions {
            self.sessions.remove(session);
        }
        Pruned {
            runs: 0,
            sessions: sessions.len() as u64,
        }
    }

    fn old_runs(&self, request: PruneRequest, now: Timestamp) -> Vec<(SessionId, RunId)> {
        let old = self
            .runs()
            .filter(|run| request.retention.is_old_run(run, now))
            .map(|run| ((run.session_id, run.id), rows_of_run(run)));
        one_step(old, request.rows).collect()
    }

    fn old_sessions(&self, request: PruneRequest, now: Timestamp) -> Vec<SessionId> {
        let old = self.sessions.values().filter(|row| {
            let said = row.messages.last().map(|message| message.created_at);
            let runs = row.runs.len();
            request
                .retention
                .is_old_session(&row.session, runs, said, now)
        });
        let old = old.map(|row| (row.session.id, rows_of_session(&row.line)));
        one_step(old, request.rows).collect()
    }
}
