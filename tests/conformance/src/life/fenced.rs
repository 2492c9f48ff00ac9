//! The writes of holders, well-behaved but for the lease they present and the turn they believe in.

use std::time::Duration;

use hango_domain::journal::{self, CallState, ToolCall};
use hango_domain::run::{
    AfterTurn, Change, End, FailedTry, Outcome, RequeueReason, Resume, RunError, RunErrorCode,
    TryFailure,
};
use hango_domain::tool::Idempotency;

use super::moves::{Class, Ending, Kind, Move, Then};
use super::replay::Replay;

impl Replay<'_> {
    /// The write of that move; `None` where it makes no sense, whoever makes it.
    pub(super) fn fenced(&self, step: &Move) -> Option<Change> {
        let fixture = self.fixture;
        let open = self.model.open_turn();
        Some(match step {
            Move::Repair(lease) => Change::Repair(fixture.repair(self.lease(*lease))),
            Move::Answer(lease, turn, batch) => {
                let (lease, turn) = (self.lease(*lease), self.turn(*turn));
                Change::Answer(fixture.answer(lease, turn, batch.calls, batch.starting))
            }
            Move::Resume(lease, turn, class) => {
                let plan = journal::resume(&open, |_| match class {
                    Class::Safe => Some(Idempotency::Safe),
                    Class::Unsafe => Some(Idempotency::Unsafe),
                });
                let starts = open.iter().filter(|it| plan.execute.contains(&it.position));
                Change::Resume(Resume {
                    lease: self.lease(*lease),
                    write: fixture.write_id(),
                    turn: self.turn(*turn),
                    starts: starts.map(ToolCall::to_started).collect(),
                    in_doubt: plan.in_doubt,
                })
            }
            Move::Record(lease, turn) => {
                let started = open.iter().find(|call| call.state == CallState::Started)?;
                let pending = open.iter().find(|call| call.state == CallState::Pending);
                let mut change = fixture.record(self.lease(*lease), started, pending);
                change.turn = self.turn(*turn);
                Change::Record(change)
            }
            Move::CompleteTurn(lease, turn, then) => {
                let mut change = fixture.boundary(self.lease(*lease), self.turn(*turn), &open);
                change.then = match then {
                    Then::GoOn => AfterTurn::GoOn,
                    Then::GiveBack => AfterTurn::GiveBack(RequeueReason::Drain),
                };
                Change::CompleteTurn(change)
            }
            Move::Retry(lease, turn, kind) => {
                let mut change = fixture.retry(self.lease(*lease), self.turn(*turn));
                change.failed.kind = try_failure(*kind);
                Change::Retry(change)
            }
            Move::GiveBack(lease, delay) => {
                let delay = Duration::from_secs(*delay);
                let mut change = fixture.give_back(self.lease(*lease), delay);
                change.failed = (!delay.is_zero()).then_some(FailedTry {
                    kind: TryFailure::Provider,
                    usage: crate::USAGE,
                    shown: false,
                });
                Change::GiveBack(change)
            }
            Move::Finish(lease, turn, ending) => {
                let turn = turn.map(|turn| self.turn(turn));
                let mut change = fixture.finish(self.lease(*lease), turn.unwrap_or(0));
                change.turn = turn;
                change.outcome = outcome(*ending);
                self.close(&mut change, &open);
                Change::Finish(change)
            }
            Move::Claim { .. }
            | Move::Renew(_)
            | Move::Again(_)
            | Move::Cancel
            | Move::Reclaim { .. }
            | Move::Pass(_) => return None,
        })
    }

    /// Whoever ends a run answers its open calls first.
    fn close(&self, change: &mut End, open: &[ToolCall]) {
        if open.is_empty() {
            return;
        }
        let closing = journal::close(open, hango_domain::MessageId(self.fixture.uuid()));
        change.results = closing.results;
        change.messages.insert(0, closing.message);
    }
}

const fn try_failure(kind: Kind) -> TryFailure {
    match kind {
        Kind::Provider => TryFailure::Provider,
        Kind::Empty => TryFailure::Empty,
    }
}

fn outcome(ending: Ending) -> Outcome {
    match ending {
        Ending::Well => Outcome::Succeeded,
        Ending::Badly => Outcome::Failed(RunError::new(
            RunErrorCode::ProviderAuth,
            "the provider refused the key",
        )),
        Ending::Cancelled => Outcome::Cancelled,
    }
}
