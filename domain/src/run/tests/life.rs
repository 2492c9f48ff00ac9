//! What holds of a run whatever is tried in whatever order, under whatever lease.

use std::cell::RefCell;
use std::collections::HashSet;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;

use super::*;

/// Something that somebody may try.
#[derive(Clone, Debug)]
enum Move {
    Claim(u128),
    /// A fenced change, under any lease ever handed out, stale ones of the same owner included.
    Fenced(Index, Fenced),
    /// The very same write as the last that was tried.
    Again,
    Cancel,
    Reclaim(u32),
    TakeBack,
    Sleep(u64),
}

#[derive(Clone, Copy, Debug)]
enum Fenced {
    Renew,
    Repair,
    Answer(u32),
    Resume(u32),
    Record(u32),
    GoOn(u32),
    GiveBackAtBoundary(u32),
    Retry(u32),
    GiveBack(u64),
    Succeed(Option<u32>),
    Fail,
    Cancelled,
}

/// How far the turn presented is off the one that would follow: seldom at all.
fn off() -> impl Strategy<Value = u32> {
    prop_oneof![9 => Just(0_u32), 1 => Just(1)]
}

fn any_fenced() -> impl Strategy<Value = Fenced> {
    prop_oneof![
        2 => Just(Fenced::Renew),
        1 => Just(Fenced::Repair),
        6 => off().prop_map(Fenced::Answer),
        1 => off().prop_map(Fenced::Resume),
        2 => off().prop_map(Fenced::Record),
        5 => off().prop_map(Fenced::GoOn),
        1 => off().prop_map(Fenced::GiveBackAtBoundary),
        2 => off().prop_map(Fenced::Retry),
        1 => (0..20_u64).prop_map(Fenced::GiveBack),
        1 => prop::option::of(off()).prop_map(Fenced::Succeed),
        1 => Just(Fenced::Fail),
        1 => Just(Fenced::Cancelled),
    ]
}

/// Weighted towards leases that change hands; most lives would otherwise end at their first turn.
fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        6 => (1..=3_u128).prop_map(Move::Claim),
        16 => (any::<Index>(), any_fenced()).prop_map(|(lease, change)| Move::Fenced(lease, change)),
        2 => Just(Move::Again),
        1 => Just(Move::Cancel),
        3 => (0..5_u32).prop_map(Move::Reclaim),
        1 => Just(Move::TakeBack),
        4 => (1..60_u64).prop_map(Move::Sleep),
    ]
}

/// A run with everybody who tries to change it.
struct World {
    run: Run,
    second: u64,
    leases: Vec<Lease>,
    last: Option<Change>,
    writes: u128,
    /// Events told so far.
    events: u64,
    /// What the turns cost that were completed.
    cost: Usage,
}

impl World {
    fn new() -> Self {
        Self {
            run: queued(),
            second: 0,
            leases: Vec::new(),
            last: None,
            writes: 1_000,
            events: 1,
            cost: Usage::default(),
        }
    }

    fn change(&mut self, attempt: &Move) -> Option<Change> {
        match attempt {
            Move::Claim(by) => Some(claim(*by)),
            Move::Fenced(lease, change) => {
                if self.leases.is_empty() {
                    return None;
                }
                let lease = *lease.get(&self.leases);
                Some(self.fenced(lease, *change))
            }
            Move::Again => self.last.clone(),
            Move::Cancel => Some(Change::RequestCancel {
                closing: Some(closing()),
            }),
            Move::Reclaim(most) => Some(reclaim(*most)),
            Move::TakeBack => Some(take_back()),
            Move::Sleep(seconds) => {
                self.second += seconds;
                None
            }
        }
    }

    fn fenced(&mut self, lease: Lease, change: Fenced) -> Change {
        self.writes += 1;
        let id = self.writes;
        let next = self.run.progress.resume_turn + 1;
        let then = AfterTurn::GiveBack(RequeueReason::Drain);
        let failure = RunError::new(RunErrorCode::Internal, "broken");
        match change {
            Fenced::Renew => renew(lease),
            Fenced::Repair => repair(lease, id),
            Fenced::Answer(off) => answer(lease, id, next + off),
            Fenced::Resume(off) => resume(lease, id, next + off),
            Fenced::Record(off) => record(lease, id, next + off),
            Fenced::GoOn(off) => go_on(lease, id, next + off),
            Fenced::GiveBackAtBoundary(off) => boundary(lease, id, next + off, then),
            Fenced::Retry(off) => retry(lease, id, next + off, shown_try()),
            Fenced::GiveBack(delay) => Change::GiveBack(GiveBack {
                delay: Duration::from_secs(delay),
                failed: (delay > 10).then(shown_try),
                closing: Some(closing()),
                ..give_back(lease, id)
            }),
            Fenced::Succeed(off) => Change::Finish(End {
                turn: off.map(|off| next + off),
                usage: usage(if off.is_some() { 7 } else { 0 }),
                ..end(lease, id, Outcome::Succeeded)
            }),
            Fenced::Fail => Change::Finish(end(lease, id, Outcome::Failed(failure))),
            Fenced::Cancelled => Change::Finish(end(lease, id, Outcome::Cancelled)),
        }
    }
}

/// What holds of any change, made or refused.
fn check(world: &mut World, change: &Change) -> Result<Option<Transition>, TestCaseError> {
    let before = world.run.clone();
    let from = before.state.status();
    let Ok(applied) = before.clone().apply(change, at(world.second)) else {
        return Ok(None);
    };
    if applied.repeated {
        prop_assert_eq!(&applied.run, &before);
        prop_assert!(applied.events.is_empty());
        return Ok(None);
    }
    let after = applied.run;
    prop_assert!(!from.is_terminal(), "{:?} changed an ended run", change);
    if let Some(lease) = change.lease() {
        prop_assert_eq!(before.lease(), Some(lease));
    }

    let moved = Transition {
        from,
        change: change.kind(),
        to: after.state.status(),
    };
    prop_assert!(TRANSITIONS.contains(&moved), "{:?}", moved);
    for event in &applied.events {
        world.events += 1;
        prop_assert_eq!(event.n, world.events);
        prop_assert_eq!(event.attempt, after.attempt);
    }
    prop_assert_eq!(after.progress.last_event, world.events);
    let ends = applied.events.iter().filter(|it| it.kind.is_terminal());
    prop_assert_eq!(ends.count(), usize::from(moved.to.is_terminal()));

    let (was, is) = (before.progress, after.progress);
    prop_assert!(is.resume_turn - was.resume_turn <= 1);
    prop_assert!(is.begun_turn >= was.begun_turn && is.answered_turn >= was.answered_turn);
    prop_assert!(is.begun_turn <= is.resume_turn + 1 && is.begun_turn >= is.resume_turn);
    prop_assert!(is.answered_turn <= is.begun_turn && is.answered_turn >= is.resume_turn);
    prop_assert_eq!(after.iterations, is.resume_turn);
    world.cost += match change {
        Change::Answer(change) if !applied.repeated => change.message.usage.unwrap_or_default(),
        Change::Finish(change) if !applied.repeated => change.usage,
        _ => Usage::default(),
    };
    if is.resume_turn > was.resume_turn {
        prop_assert_eq!(
            (is.tries, is.empty_answers, after.stalled_attempts),
            (0, 0, 0)
        );
    }
    prop_assert_eq!(after.usage, world.cost);
    world.run = after;
    Ok(Some(moved))
}

fn live(moves: &[Move], reached: &mut HashSet<Transition>) -> Result<(), TestCaseError> {
    let mut world = World::new();
    for attempt in moves {
        let Some(change) = world.change(attempt) else {
            continue;
        };
        let unchanged = world.run.clone();
        if let Some(moved) = check(&mut world, &change)? {
            reached.insert(moved);
        } else {
            prop_assert_eq!(&world.run, &unchanged);
        }
        if matches!(change, Change::Claim { .. }) {
            let fresh = world.run.lease().filter(|it| !world.leases.contains(it));
            world.leases.extend(fresh);
        }
        world.last = Some(change);
    }
    Ok(())
}

proptest! {
    #[test]
    fn whatever_is_tried_a_run_changes_only_along_the_table(moves in vec(any_move(), 0..60)) {
        live(&moves, &mut HashSet::new())?;
    }
}

/// By the same lives, always the same ones: the table has no row that nothing reaches.
#[test]
fn every_row_of_the_table_is_reached() {
    let reached = RefCell::new(HashSet::new());
    let mut runner = TestRunner::deterministic();

    let lives = runner.run(&vec(any_move(), 0..60), |moves| {
        live(&moves, &mut reached.borrow_mut())
    });

    assert!(lives.is_ok());
    let reached = reached.into_inner();
    let missed: Vec<Transition> = TRANSITIONS
        .into_iter()
        .filter(|row| !reached.contains(row))
        .collect();
    assert_eq!(missed, []);
}

#[test]
fn the_table_has_each_row_once_and_a_row_for_each_change() {
    let rows: HashSet<Transition> = HashSet::from(TRANSITIONS);
    let changes: HashSet<ChangeKind> = TRANSITIONS.iter().map(|row| row.change).collect();

    assert_eq!(rows.len(), TRANSITIONS.len());
    assert_eq!(changes, HashSet::from(CHANGES));
    assert!(TRANSITIONS.iter().all(|row| !row.from.is_terminal()));
}
