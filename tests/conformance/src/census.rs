//! Random histories, counted by the store and by [`census`]: both must find the same.

use hango_domain::queue::{Counted, census};
use hango_domain::run::{Change, Run};
use hango_domain::{RunId, TenantId, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::Fixture;
use crate::queue::{Queue, any_move};
use crate::random::for_any;

/// Whatever happened, of whom and since when, a census tells what the rule does.
#[expect(clippy::unused_async, reason = "checks share one signature")]
pub async fn any_census_counts_what_the_rule_counts(fixture: Fixture) {
    let fixture = &fixture;
    let history = (vec(any_move(), 0..30), 0..5_u32);
    for_any(32, &history, async |(moves, most_tenants)| {
        let mut queue = Queue::begin(fixture).await;
        for step in moves {
            queue.make(step).await?;
        }
        let counted = queue.counted().await;
        let expected = census(&counted, most_tenants, fixture.now());

        let found = fixture.stores.runs.census(most_tenants).await;

        let found = found.expect("reads work");
        // A census is of all there is: the next history begins with nothing.
        queue.empty().await;
        prop_assert_eq!(found, expected, "of {:?}", counted);
        Ok(())
    });
}

/// A store in which nothing was ever done has nothing to count, and so has one in which all has ended.
pub async fn where_nothing_waits_or_runs_nothing_is_counted(fixture: Fixture) {
    let counted = async || fixture.stores.runs.census(10).await.expect("reads work");
    assert_eq!(counted().await, hango_domain::queue::Census::default());
    let (_, lease) = fixture.running().await;
    assert_eq!(counted().await.total().running, 1);

    let end = fixture.finish(lease, 1);
    fixture.written(Change::Finish(end)).await;

    assert_eq!(counted().await, hango_domain::queue::Census::default());
}

impl Queue<'_> {
    /// What a census knows of the runs that have not ended.
    async fn counted(&self) -> Vec<Counted> {
        let mut counted = Vec::new();
        for (tenant, id) in &self.runs {
            let Some(pending) = self.pending(*tenant, *id).await else {
                continue;
            };
            let run = self.found(*tenant, *id).await;
            counted.push(Counted {
                pending,
                told_at: self.told_at(*tenant, *id).await,
                freed_at: self.freed_at(*tenant, &run).await,
                tenant_since: self.tenant_since(run.tenant_id).await,
                started_at: run.started_at,
            });
        }
        counted
    }

    async fn told_at(&self, tenant: usize, run: RunId) -> Timestamp {
        let seen = self.tenants[tenant].0.seen();
        let events = self.fixture.stores.runs.events(seen, run, 0, 100_000).await;
        let events = events.expect("reads work").expect("the run is there");
        events.last().expect("it told something").at
    }

    async fn freed_at(&self, tenant: usize, run: &Run) -> Option<Timestamp> {
        let mut before: Option<Run> = None;
        for (of, id) in &self.runs {
            let other = self.found(*of, *id).await;
            let stands_before = *of == tenant
                && other.session_id == run.session_id
                && other.session_no < run.session_no
                && before
                    .as_ref()
                    .is_none_or(|it| it.session_no < other.session_no);
            if stands_before {
                before = Some(other);
            }
        }
        before?.state.finished_at()
    }

    async fn tenant_since(&self, tenant: TenantId) -> Timestamp {
        let found = self.fixture.stores.identities.tenant(tenant).await;
        found.expect("reads work").expect("it is there").updated_at
    }

    /// Ends whatever has not ended.
    async fn empty(self) {
        for lease in &self.held {
            let mut change = self.fixture.finish(*lease, 1);
            change.turn = None;
            self.fixture.written(Change::Finish(change)).await;
        }
        for (tenant, run) in &self.runs {
            // An ended one refuses.
            let asked = self.fixture.cancel(&self.tenants[*tenant].0.owner, *run);
            let _ = asked.await;
        }
    }
}
