//! One history, made twice.

use std::time::Duration;

use hango_domain::OwnerId;
use hango_domain::event::Event;
use hango_domain::run::{Applied, Change, Lease, Reclaim, RunStatus, TransitionError};
use hango_ports::run_store::{
    Cancelled, Claimed, Held, ReclaimRequest, Reclaimed, Renewal, RunContext, RunStoreError,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::moves::{Move, Presented, Turn};
use crate::{Fixture, OnRecord, Place, TTL, owner};

type Checked = Result<(), TestCaseError>;

/// The most claims of a turn in these histories.
const MAX_STALLED: u32 = 5;

/// A run in the store, and what it ought to be.
pub(super) struct Replay<'a> {
    pub(super) fixture: &'a Fixture,
    place: Place,
    pub(super) model: OnRecord,
    /// One that was never handed out, then every one that was.
    leases: Vec<Lease>,
    sent: Vec<Change>,
}

impl<'a> Replay<'a> {
    /// A run that was accepted.
    pub(super) async fn begin(fixture: &'a Fixture) -> Self {
        let place = fixture.place().await;
        let run = fixture.run(&place).await;
        let model = fixture.on_record(&place, run.id).await;
        let forged = Lease {
            run: run.id,
            owner: owner(9),
            attempt: 1,
        };
        Self {
            fixture,
            place,
            model,
            leases: vec![forged],
            sent: Vec::new(),
        }
    }

    /// Makes one move in the store and in the model.
    pub(super) async fn make(&mut self, step: Move) -> Checked {
        match step {
            Move::Claim { owner: n } => self.claim(owner(n)).await?,
            Move::Renew(lease) => self.renew(self.lease(lease)).await?,
            Move::Cancel => self.cancel().await?,
            Move::Reclaim { expired_only } => self.reclaim(expired_only).await?,
            Move::Pass(seconds) => self.fixture.clock.advance(Duration::from_secs(seconds)),
            Move::Again(which) => {
                let repeats = self.sent.iter().filter(|change| self.may_repeat(change));
                let repeats: Vec<Change> = repeats.cloned().collect();
                if !repeats.is_empty() {
                    self.write(which.get(&repeats).clone()).await?;
                }
            }
            Move::Repair(_)
            | Move::Answer(..)
            | Move::Resume(..)
            | Move::Record(..)
            | Move::CompleteTurn(..)
            | Move::Retry(..)
            | Move::GiveBack(..)
            | Move::Finish(..) => {
                if let Some(change) = self.fenced(&step) {
                    self.sent.push(change.clone());
                    self.write(change).await?;
                }
            }
        }
        self.compare().await
    }

    /// Ends the run, so that the next history has the store for itself.
    pub(super) async fn end(mut self) -> Checked {
        self.cancel().await?;
        self.fixture.clock.advance(TTL);
        self.reclaim(true).await?;
        self.compare().await?;
        prop_assert!(self.model.run.state.status().is_terminal());
        Ok(())
    }

    /// A lease that somebody may present.
    pub(super) fn lease(&self, presented: Presented) -> Lease {
        match presented {
            Some(which) => *which.get(&self.leases),
            None => self.leases[self.leases.len() - 1],
        }
    }

    /// A turn that somebody may believe to be in.
    pub(super) const fn turn(&self, turn: Turn) -> u32 {
        let completed = self.model.run.progress.resume_turn;
        match turn {
            Turn::Last => completed,
            Turn::Next => completed + 1,
            Turn::AfterNext => completed + 2,
        }
    }

    /// A holder repeats his last write, or one that was refused; he never goes back behind one that
    /// was made.
    fn may_repeat(&self, change: &Change) -> bool {
        let last = self.model.run.progress.last_write;
        change.write_id() == last || change.lease() != self.model.run.lease()
    }

    async fn write(&mut self, change: Change) -> Checked {
        let repeat = change.write_id() == self.model.run.progress.last_write;
        let newest = change.lease() == self.leases.last().copied();
        let made = self.fixture.write(change.clone()).await;
        let made = verdict(made)?.map(|written| (written.status, written.events));
        // The fence, said once more without the rules' own help.
        prop_assert!(made.is_err() || newest || repeat, "{:?}", change);

        let expected = self.model.apply(change.clone(), self.fixture.now());
        let expected: Result<(RunStatus, Vec<Event>), TransitionError> =
            expected.map(|applied| (applied.run.state.status(), applied.events));
        prop_assert_eq!(made, expected, "{:?}", change);
        Ok(())
    }

    async fn claim(&mut self, owner: OwnerId) -> Checked {
        let claimed = self.fixture.claim(self.model.run.id, owner).await;
        let change = Change::Claim { owner, ttl: TTL };
        let expected = self.model.apply(change, self.fixture.now()).ok();
        prop_assert_eq!(claimed.is_some(), expected.is_some());
        let Some((claimed, expected)) = claimed.zip(expected) else {
            return Ok(());
        };
        self.leases.push(claimed.lease);
        let Claimed {
            lease,
            run,
            elapsed,
            standing,
            events,
            context,
        } = claimed;
        prop_assert_eq!(Some(lease), self.model.run.lease());
        let started = run.started_at.map(|at| self.fixture.now().since(at));
        prop_assert_eq!(Some(elapsed), started);
        prop_assert_eq!(standing.cancel_requested, false);
        prop_assert_eq!(&run, &self.model.run);
        prop_assert_eq!(events, expected.events);
        let expected = RunContext {
            agent: self.place.agent.snapshot(),
            history: self.model.messages.clone(),
            calls: self.model.open_turn(),
        };
        prop_assert_eq!(context.ok(), Some(expected));
        Ok(())
    }

    async fn renew(&mut self, lease: Lease) -> Checked {
        let held = Held {
            run: lease.run,
            attempt: lease.attempt,
        };
        let runs = &self.fixture.stores.runs;
        let renewal = runs.renew(lease.owner, vec![held], TTL).await;
        let renewal = renewal.expect("losing a lease is not an error");
        let forgotten =
            self.model.run.lease().filter(|in_force| {
                in_force.owner == lease.owner && in_force.attempt != lease.attempt
            });
        let change = Change::Renew { lease, ttl: TTL };
        let expected = self.model.apply(change, self.fixture.now());
        let standing = renewal.renewed.first().map(|(_, standing)| *standing);
        let expected = Renewal {
            renewed: standing.map(|it| (held, it)).into_iter().collect(),
            lost: expected.err().map(|_| held).into_iter().collect(),
            orphans: forgotten.into_iter().collect(),
        };
        prop_assert_eq!(renewal, expected);
        Ok(())
    }

    async fn cancel(&mut self) -> Checked {
        let asked = self
            .fixture
            .try_cancel(&self.place.owner, self.model.run.id);
        let asked = verdict(asked.await)?;
        let change = Change::RequestCancel { closing: None };
        let expected = self.model.apply(change, self.fixture.now());
        let expected = expected.map(|Applied { run, events, .. }| Cancelled { run, events });
        prop_assert_eq!(asked, expected);
        Ok(())
    }

    async fn reclaim(&mut self, expired_only: bool) -> Checked {
        let request = ReclaimRequest {
            limit: 10,
            max_stalled: MAX_STALLED,
            expired_only,
        };
        let taken = self.fixture.stores.runs.reclaim(request).await;
        let run = &self.model.run;
        let previous = run.lease().zip(run.lease_expires_at());
        let change = Change::Reclaim(Reclaim {
            max_stalled: MAX_STALLED,
            expired_only,
            closing: None,
        });
        let expected = self.model.apply(change, self.fixture.now()).ok();
        let expected = previous.zip(expected);
        let expected = expected.map(|((previous, expired_at), applied)| Reclaimed {
            previous,
            expired_at,
            resume_turn: applied.run.progress.resume_turn,
            status: applied.run.state.status(),
            events: applied.events,
        });
        let expected: Vec<Reclaimed> = expected.into_iter().collect();
        prop_assert_eq!(taken.expect("the sweep works"), expected);
        Ok(())
    }

    /// All that is on record, against the model and against rules that need no model.
    async fn compare(&self) -> Checked {
        let stored = self.fixture.on_record(&self.place, self.model.run.id).await;
        prop_assert_eq!(&stored, &self.model);
        let numbers: Vec<u64> = stored.events.iter().map(|event| event.n).collect();
        let gapless: Vec<u64> = (1..=numbers.len() as u64).collect();
        prop_assert_eq!(numbers, gapless);
        let ends = stored.events.iter().filter(|it| it.kind.is_terminal());
        let ended = stored.run.state.status().is_terminal();
        prop_assert_eq!(ends.count(), usize::from(ended));
        Ok(())
    }
}

/// What the rules said; anything else that goes wrong is a failure of the check.
fn verdict<T>(
    result: Result<T, RunStoreError>,
) -> Result<Result<T, TransitionError>, TestCaseError> {
    match result {
        Ok(made) => Ok(Ok(made)),
        Err(RunStoreError::Refused(rule)) => Ok(Err(rule)),
        Err(other) => Err(TestCaseError::fail(format!("{other:?}"))),
    }
}
