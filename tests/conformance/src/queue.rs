//! Random queues, claimed from the store and by [`eligible`]: both must hand out the same runs.

use std::time::Duration;

use hango_domain::people::TenantStatus;
use hango_domain::queue::{ClaimLimits, Pending, eligible};
use hango_domain::run::{Change, Lease, Run, RunState};
use hango_domain::{RunId, SessionId};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestCaseError;

use crate::random::for_any;
use crate::{Fixture, Place, no_limits, owner};

/// Whatever waits, for whom and until when, a claim gets what the rule of the queue names.
#[expect(clippy::unused_async, reason = "checks share one signature")]
pub async fn any_claim_gets_what_the_queues_rule_names(fixture: Fixture) {
    let fixture = &fixture;
    for_any(24, &vec(any_move(), 1..40), async |moves| {
        let mut queue = Queue::begin(fixture).await;
        for step in moves {
            queue.make(step).await?;
        }
        queue.end().await;
        Ok(())
    });
}

/// What may happen to a queue; tenants and their sessions are named by number.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    Accept { tenant: usize, session: usize },
    Claim(ClaimLimits),
    GiveBack(Index, u64),
    Finish(Index),
    Cancel(Index),
    Toggle { tenant: usize },
    Pass(u64),
}

const TENANTS: usize = 3;
const SESSIONS: usize = 3;

pub(crate) fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        8 => (0..TENANTS, 0..SESSIONS).prop_map(|(tenant, session)| Move::Accept { tenant, session }),
        5 => (1..5_u32, 0..4_u32).prop_map(|(runs, running_per_tenant)| Move::Claim(ClaimLimits {
            runs,
            running_per_tenant,
            ..no_limits()
        })),
        3 => (any::<Index>(), 0..20_u64).prop_map(|(run, delay)| Move::GiveBack(run, delay)),
        3 => any::<Index>().prop_map(Move::Finish),
        1 => any::<Index>().prop_map(Move::Cancel),
        1 => (0..TENANTS).prop_map(|tenant| Move::Toggle { tenant }),
        2 => (1..10_u64).prop_map(Move::Pass),
    ]
}

/// Tenants at work, and what became of their runs.
pub(crate) struct Queue<'a> {
    pub(crate) fixture: &'a Fixture,
    pub(crate) tenants: Vec<(Place, [SessionId; SESSIONS], TenantStatus)>,
    /// The runs, each with the number of its tenant.
    pub(crate) runs: Vec<(usize, RunId)>,
    /// The claims in force.
    pub(crate) held: Vec<Lease>,
}

impl<'a> Queue<'a> {
    pub(crate) async fn begin(fixture: &'a Fixture) -> Self {
        let mut tenants = Vec::new();
        for _ in 0..TENANTS {
            let mut place = fixture.place().await;
            // Runs come in whether the tenant is suspended or not: nobody here comes with a key.
            place.owner.key = None;
            let mut sessions = [place.session.id; SESSIONS];
            for session in sessions.iter_mut().skip(1) {
                *session = fixture.session(&place.owner, place.agent.id).await.id;
            }
            tenants.push((place, sessions, TenantStatus::Active));
        }
        Self {
            fixture,
            tenants,
            runs: Vec::new(),
            held: Vec::new(),
        }
    }

    pub(crate) async fn make(&mut self, step: Move) -> Result<(), TestCaseError> {
        match step {
            Move::Accept { tenant, session } => {
                let (place, sessions, _) = &self.tenants[tenant];
                let new = self.fixture.new_run(&place.owner, sessions[session]);
                let run = self.fixture.accept(new).await;
                self.runs.push((tenant, run.id));
            }
            Move::Claim(limits) => self.claim(limits).await?,
            Move::GiveBack(which, delay) if !self.held.is_empty() => {
                let lease = self.held.remove(which.index(self.held.len()));
                let delay = Duration::from_secs(delay);
                let change = self.fixture.give_back(lease, delay);
                self.fixture.written(Change::GiveBack(change)).await;
            }
            Move::Finish(which) if !self.held.is_empty() => {
                let lease = self.held.remove(which.index(self.held.len()));
                let mut change = self.fixture.finish(lease, 1);
                change.turn = None;
                self.fixture.written(Change::Finish(change)).await;
            }
            Move::Cancel(which) if !self.runs.is_empty() => {
                let (tenant, run) = *which.get(&self.runs);
                // An ended one refuses; either way the rule is asked afterwards.
                let asked = self.fixture.cancel(&self.tenants[tenant].0.owner, run);
                let _ = asked.await;
            }
            Move::GiveBack(..) | Move::Finish(_) | Move::Cancel(_) => {}
            Move::Toggle { tenant } => {
                let (place, _, status) = &mut self.tenants[tenant];
                *status = match status {
                    TenantStatus::Active => TenantStatus::Suspended,
                    TenantStatus::Suspended => TenantStatus::Active,
                };
                self.fixture.set_tenant(&place.owner, *status).await;
            }
            Move::Pass(seconds) => self.fixture.clock.advance(Duration::from_secs(seconds)),
        }
        Ok(())
    }

    async fn claim(&mut self, limits: ClaimLimits) -> Result<(), TestCaseError> {
        let mut pending = Vec::new();
        for (tenant, run) in &self.runs {
            pending.extend(self.pending(*tenant, *run).await);
        }
        let mut expected = eligible(&pending, limits, self.fixture.now());
        expected.sort_unstable();

        let claimed = self.fixture.claim_all(owner(1), None, limits).await;
        let mut runs: Vec<RunId> = claimed.iter().map(|claimed| claimed.run.id).collect();
        runs.sort_unstable();
        self.held
            .extend(claimed.iter().map(|claimed| claimed.lease));
        prop_assert_eq!(runs, expected, "{:?} of {:?}", limits, pending);
        Ok(())
    }

    /// What the queue's rule knows of the run; `None` once it ended.
    pub(crate) async fn pending(&self, tenant: usize, run: RunId) -> Option<Pending> {
        let (_, _, status) = &self.tenants[tenant];
        let run = self.found(tenant, run).await;
        let open = !run.state.status().is_terminal();
        open.then(|| Pending {
            run: run.id,
            tenant: run.tenant_id,
            tenant_active: *status == TenantStatus::Active,
            session: run.session_id,
            session_no: run.session_no,
            running: matches!(run.state, RunState::Running { .. }),
            available_at: run.available_at,
            created_at: run.created_at,
            memory_version: run.memory.version,
        })
    }

    /// A run as it is now.
    pub(crate) async fn found(&self, tenant: usize, run: RunId) -> Run {
        let seen = self.tenants[tenant].0.seen();
        let found = self.fixture.stores.runs.find(seen, run).await;
        found.expect("reads work").expect("the run is there")
    }

    /// Leaves nothing behind that another case could claim.
    async fn end(self) {
        for (place, _, _) in &self.tenants {
            let set = self
                .fixture
                .set_tenant(&place.owner, TenantStatus::Suspended);
            set.await;
        }
    }
}
