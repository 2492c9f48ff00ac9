//! What may be asked of a run's store.

use proptest::prelude::*;
use proptest::sample::Index;

/// Which lease somebody presents: the newest, or *any* that was ever handed out, and one that never was.
/// With the newest alone the check would not notice a store that compares owners and forgets attempts;
/// without a liking for it nothing would ever be written.
pub(super) type Presented = Option<Index>;

/// Something that somebody may try.
#[derive(Clone, Debug)]
pub(super) enum Move {
    Claim {
        owner: u128,
    },
    Renew(Presented),
    Repair(Presented),
    Answer(Presented, Turn, Batch),
    Resume(Presented, Turn, Class),
    Record(Presented, Turn),
    CompleteTurn(Presented, Turn, Then),
    Retry(Presented, Turn, Kind),
    GiveBack(Presented, Wait),
    Finish(Presented, Option<Turn>, Ending),
    /// Sends an earlier write once more, as it was.
    Again(Index),
    Cancel,
    Reclaim {
        expired_only: bool,
    },
    Pass(Wait),
}

/// Which turn a holder believes to be in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turn {
    Last,
    Next,
    AfterNext,
}

/// How many tools an answer asks for, and how many of them begin at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    pub(super) calls: u32,
    pub(super) starting: usize,
}

/// Whether the tools may be executed again.
#[derive(Clone, Copy, Debug)]
pub(super) enum Class {
    Safe,
    Unsafe,
}

/// What follows a completed turn.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    GoOn,
    GiveBack,
}

/// What kind of try failed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Provider,
    Empty,
}

/// How a holder ends a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    Well,
    Badly,
    Cancelled,
}

/// Seconds.
pub(super) type Wait = u64;

/// Weighted towards leases changing hands, and towards turns that get somewhere; most histories would
/// otherwise end at their first end.
pub(super) fn any_move() -> impl Strategy<Value = Move> {
    let lease = || prop::option::weighted(0.3, any::<Index>());
    prop_oneof![
        14 => (1..4_u128).prop_map(|owner| Move::Claim { owner }),
        3 => lease().prop_map(Move::Renew),
        2 => lease().prop_map(Move::Repair),
        9 => (lease(), turn(), batch()).prop_map(|(lease, turn, batch)| Move::Answer(lease, turn, batch)),
        4 => (lease(), turn(), class()).prop_map(|(lease, turn, class)| Move::Resume(lease, turn, class)),
        8 => (lease(), turn()).prop_map(|(lease, turn)| Move::Record(lease, turn)),
        7 => (lease(), turn(), then()).prop_map(|(lease, turn, then)| Move::CompleteTurn(lease, turn, then)),
        2 => (lease(), turn(), kind()).prop_map(|(lease, turn, kind)| Move::Retry(lease, turn, kind)),
        2 => (lease(), 0..40_u64).prop_map(|(lease, delay)| Move::GiveBack(lease, delay)),
        1 => (lease(), prop::option::of(turn()), ending())
            .prop_map(|(lease, turn, ending)| Move::Finish(lease, turn, ending)),
        3 => any::<Index>().prop_map(Move::Again),
        1 => Just(Move::Cancel),
        5 => prop::bool::weighted(0.9).prop_map(|expired_only| Move::Reclaim { expired_only }),
        3 => (10..45_u64).prop_map(Move::Pass),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![1 => Just(Turn::Last), 14 => Just(Turn::Next), 1 => Just(Turn::AfterNext)]
}

fn batch() -> impl Strategy<Value = Batch> {
    (1..4_u32, 0..3_usize).prop_map(|(calls, starting)| Batch { calls, starting })
}

fn class() -> impl Strategy<Value = Class> {
    prop_oneof![Just(Class::Safe), Just(Class::Unsafe)]
}

fn then() -> impl Strategy<Value = Then> {
    prop_oneof![3 => Just(Then::GoOn), 1 => Just(Then::GiveBack)]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Provider), Just(Kind::Empty)]
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        Just(Ending::Well),
        Just(Ending::Badly),
        Just(Ending::Cancelled)
    ]
}
