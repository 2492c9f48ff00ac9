//! Waiting for what must come true, and looking at what did.

use std::time::{Duration, Instant};

use hango_conformance::{OnRecord, Place};
use hango_domain::RunId;
use hango_domain::run::{Change, ChangeKind, Run, RunState, RunStatus};
use hango_ports::page::PageRequest;
use hango_ports::run_store::RunFilter;

use super::world::World;

/// How long a condition may take to come true, in real time: nobody waits that long unless a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(5);

impl World {
    /// All that is on record of a run of the place.
    pub(crate) async fn on_record(&self, run: RunId) -> OnRecord {
        self.fixture.on_record(&self.place, run).await
    }

    /// The run, as it is now.
    pub(crate) async fn now(&self, run: RunId) -> Run {
        self.on_record(run).await.run
    }

    /// Waits until the run has ended, and says all that is on record of it.
    pub(crate) async fn ended(&self, run: RunId) -> OnRecord {
        self.ended_in(&self.place, run).await
    }

    /// The same in another place.
    pub(crate) async fn ended_in(&self, place: &Place, run: RunId) -> OnRecord {
        let ended = |it: &OnRecord| it.run.state.status().is_terminal();
        self.reaches_in(place, run, ended).await
    }

    /// Waits until the run waits in the queue, after it was claimed.
    pub(crate) async fn given_back(&self, run: RunId) -> OnRecord {
        let waits = |it: &OnRecord| it.run.attempt > 0 && it.run.state == RunState::Queued;
        self.reaches_in(&self.place, run, waits).await
    }

    /// Waits until what is on record of the run is as `asked`.
    pub(crate) async fn reaches_in(
        &self,
        place: &Place,
        run: RunId,
        asked: impl Fn(&OnRecord) -> bool,
    ) -> OnRecord {
        let patience = Instant::now() + PATIENCE;
        loop {
            let record = self.fixture.on_record(place, run).await;
            if asked(&record) {
                return record;
            }
            let late = Instant::now() > patience;
            assert!(!late, "the run does not come that far: {record:#?}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until every run of the place has ended, as it should.
    pub(crate) async fn all_ended(&self, place: &Place, how: RunStatus) {
        let session = place.session.id;
        let seen = place.seen();
        let request = PageRequest {
            limit: 1000,
            after: None,
        };
        let filter = RunFilter {
            session: Some(session),
            ..RunFilter::default()
        };
        let runs = &self.fixture.stores.runs;
        let page = runs.list(seen, filter, request).await.expect("reads work");
        for run in page.items {
            let record = self.ended_in(place, run.id).await;
            assert_eq!(record.run.state.status(), how);
        }
    }

    /// Waits until something was claimed, or might have been, that often from now on.
    pub(crate) async fn polls_after(&self, count: usize) -> usize {
        let before = self.store.asked(ChangeKind::Claim);
        let claims = || self.store.asked(ChangeKind::Claim) >= before + count;
        self.until("the queue is looked at", claims).await;
        count
    }

    /// The kinds of the fenced writes that were asked for, in their order.
    pub(crate) fn kinds_written(&self) -> Vec<ChangeKind> {
        self.store.writes().iter().map(Change::kind).collect()
    }

    /// Waits until something is true.
    pub(crate) async fn until(&self, what: &str, is_true: impl Fn() -> bool) {
        let patience = Instant::now() + PATIENCE;
        while !is_true() {
            let late = Instant::now() > patience;
            assert!(!late, "it does not come true that {what}");
            tokio::time::sleep(LOOK).await;
        }
    }
}
