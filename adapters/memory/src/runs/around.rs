//! Runs among the others that have not ended.

use hango_domain::access::Visibility;
use hango_domain::queue::{Counted, Pending};
use hango_domain::run::{Run, RunStatus};
use hango_domain::{RunId, Timestamp};
use hango_ports::run_store::Situation;

use crate::session_row::SessionRow;
use crate::state::State;

impl State {
    /// A run with all that its state depends on.
    pub(crate) fn situation(
        &self,
        seen: Visibility,
        id: RunId,
        now: Timestamp,
    ) -> Option<Situation> {
        let row = self.session_of_seen(seen, id)?;
        let run = &row.runs.get(&id)?.run;
        let mut before: Vec<&Run> = row.earlier(run.session_no).collect();
        before.retain(|it| !it.state.status().is_terminal());
        before.sort_by_key(|it| it.session_no);
        let running =
            |it: &&Run| it.tenant_id == run.tenant_id && it.state.status() == RunStatus::Running;
        Some(Situation {
            before: before.into_iter().map(|it| it.id).collect(),
            tenant_running: u32::try_from(self.runs().filter(running).count()).unwrap_or(u32::MAX),
            standing: self.standing(&row.session, run),
            run: run.clone(),
            now,
        })
    }

    /// What a census knows of the runs that have not ended.
    pub(crate) fn counted(&self) -> Vec<Counted> {
        let pending = self.pending().into_iter();
        pending.filter_map(|it| self.count(it)).collect()
    }

    fn count(&self, pending: Pending) -> Option<Counted> {
        let session = self.session_of(pending.run)?;
        let row = session.runs.get(&pending.run)?;
        let earlier = session.earlier(pending.session_no);
        let earlier = earlier.max_by_key(|it| it.session_no);
        Some(Counted {
            pending,
            told_at: row.events.last()?.at,
            freed_at: earlier.and_then(|it| it.state.finished_at()),
            tenant_since: self.tenants.get(&pending.tenant)?.updated_at,
            started_at: row.run.started_at,
        })
    }
}

impl SessionRow {
    /// Its runs before that number, in no order that means anything.
    fn earlier(&self, session_no: u64) -> impl Iterator<Item = &Run> {
        let runs = self.runs.values().map(|row| &row.run);
        runs.filter(move |run| run.session_no < session_no)
    }
}
