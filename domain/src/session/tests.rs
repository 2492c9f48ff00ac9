//! The counters of a session's row, by examples and against a plain list of its runs.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use uuid::Uuid;

use super::*;

fn run(n: u64) -> RunId {
    RunId(Uuid::from_u128(n.into()))
}

fn with_pending(pending_runs: u32) -> SessionLine {
    SessionLine {
        pending_runs,
        last_run_no: 7,
        ..SessionLine::default()
    }
}

#[test]
fn an_accepted_run_gets_the_next_number() {
    assert_eq!(
        with_pending(2).accept(OnBusy::Enqueue, 3),
        Ok(SessionLine {
            pending_runs: 3,
            last_run_no: 8,
            ..SessionLine::default()
        })
    );
}

#[test]
fn a_session_takes_as_many_pending_runs_as_it_may_have_exactly() {
    for on_busy in [OnBusy::Enqueue, OnBusy::Interrupt] {
        let full = LineError::Full {
            pending: 3,
            most: 3,
        };
        assert!(with_pending(2).accept(on_busy, 3).is_ok());
        assert_eq!(with_pending(3).accept(on_busy, 3), Err(full));
    }
}

#[test]
fn a_caller_who_wants_no_pending_runs_is_refused_because_of_them() {
    let busy = LineError::Busy { pending: 1 };

    assert_eq!(with_pending(1).accept(OnBusy::Reject, 16), Err(busy));
    assert!(with_pending(0).accept(OnBusy::Reject, 16).is_ok());
}

#[test]
fn the_line_knows_which_run_is_running_until_it_is_not() {
    let running = with_pending(2).moved(run(1), RunStatus::Queued, RunStatus::Running);
    assert_eq!(running.running_run, Some(run(1)));
    assert_eq!(running.pending_runs, 2);

    let requeued = running.moved(run(1), RunStatus::Running, RunStatus::Queued);
    assert_eq!(requeued, with_pending(2));

    let ended = running.moved(run(1), RunStatus::Running, RunStatus::Failed);
    assert_eq!(ended, with_pending(1));
}

#[test]
fn a_queued_run_that_is_cancelled_leaves_the_running_one_alone() {
    let running = with_pending(2).moved(run(1), RunStatus::Queued, RunStatus::Running);

    let cancelled = running.moved(run(2), RunStatus::Queued, RunStatus::Cancelled);

    assert_eq!(cancelled.running_run, Some(run(1)));
    assert_eq!(cancelled.pending_runs, 1);
}

#[test]
fn messages_are_counted_without_gaps() {
    assert_eq!(SessionLine::default().said().said().last_seq, 2);
}

/// Something that happens to a session.
#[derive(Clone, Debug)]
enum Move {
    Accept(OnBusy),
    Claim(Index),
    Requeue,
    End(RunStatus),
    Cancel(Index),
}

fn any_move() -> impl Strategy<Value = Move> {
    let on_busy = select(vec![OnBusy::Enqueue, OnBusy::Reject, OnBusy::Interrupt]);
    let ends = select(vec![
        RunStatus::Succeeded,
        RunStatus::Failed,
        RunStatus::Cancelled,
    ]);
    prop_oneof![
        4 => on_busy.prop_map(Move::Accept),
        3 => any::<Index>().prop_map(Move::Claim),
        1 => Just(Move::Requeue),
        2 => ends.prop_map(Move::End),
        1 => any::<Index>().prop_map(Move::Cancel),
    ]
}

/// A session's runs that have not ended, as a plain list.
#[derive(Default)]
struct Runs {
    line: SessionLine,
    queued: Vec<RunId>,
    running: Option<RunId>,
}

impl Runs {
    fn make(&mut self, what: &Move, most: u32) {
        match what {
            Move::Accept(on_busy) => {
                if let Ok(line) = self.line.accept(*on_busy, most) {
                    self.line = line;
                    self.queued.push(run(line.last_run_no));
                }
            }
            Move::Claim(at) if self.running.is_none() && !self.queued.is_empty() => {
                let claimed = self.queued.remove(at.index(self.queued.len()));
                self.running = Some(claimed);
                let (from, to) = (RunStatus::Queued, RunStatus::Running);
                self.line = self.line.moved(claimed, from, to);
            }
            Move::Requeue => {
                if let Some(back) = self.running.take() {
                    self.queued.push(back);
                    let (from, to) = (RunStatus::Running, RunStatus::Queued);
                    self.line = self.line.moved(back, from, to);
                }
            }
            Move::End(end) => {
                if let Some(ended) = self.running.take() {
                    self.line = self.line.moved(ended, RunStatus::Running, *end);
                }
            }
            Move::Cancel(at) if !self.queued.is_empty() => {
                let cancelled = self.queued.remove(at.index(self.queued.len()));
                let (from, to) = (RunStatus::Queued, RunStatus::Cancelled);
                self.line = self.line.moved(cancelled, from, to);
            }
            Move::Claim(_) | Move::Cancel(_) => {}
        }
    }
}

proptest! {
    #[test]
    fn whatever_happens_the_line_counts_what_a_list_would(
        moves in vec(any_move(), 0..60),
        most in 1..6_u32,
    ) {
        let mut runs = Runs::default();
        for what in &moves {
            runs.make(what, most);

            let pending = runs.queued.len() + usize::from(runs.running.is_some());
            prop_assert_eq!(runs.line.pending_runs as usize, pending);
            prop_assert_eq!(runs.line.running_run, runs.running);
            prop_assert!(runs.line.pending_runs <= most);
        }
    }
}
