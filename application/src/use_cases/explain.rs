//! Why a run is in its state.

use hango_domain::RunId;
use hango_domain::access::visibility;
use hango_domain::explain::{Attempts, Explanation, explain};

use super::{Caller, Input, UseCaseError, UseCases};

/// How many events are read at once.
const PIECE: u32 = 500;

impl UseCases {
    /// Says why a run is in its state: all of it as of one moment, for events are only ever added.
    pub async fn explain_run(
        &self,
        caller: &Caller,
        run: RunId,
        sent: Input<()>,
    ) -> Result<Explanation, UseCaseError> {
        self.on_run(caller, run, sent).await?;
        let (runs, seen) = (&self.stores.runs, visibility(&caller.scope));
        let situation = runs.situation(seen, run).await?;
        let situation = situation.ok_or(UseCaseError::NotFound)?;
        let mut attempts = Attempts::default();
        let (mut after, last) = (0, situation.run.progress.last_event);
        while after < last {
            let events = runs.events(seen, run, after, PIECE).await?;
            let events = events.ok_or(UseCaseError::NotFound)?;
            // None is missing as long as the run is there.
            let Some(end) = events.last() else { break };
            after = end.n;
            let known = events.iter().filter(|event| event.n <= last);
            known.for_each(|event| attempts.take(event));
        }
        let cap = self.settings.running_per_tenant;
        Ok(explain(&situation, attempts.all(), cap))
    }
}
