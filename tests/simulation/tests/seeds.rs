//! Some thousand seeds, with every test.

use std::collections::BTreeSet;

use hango_simulation::{search, simulate};

/// Enough to find most defects, and few enough to wait for.
const SEEDS: u64 = 2_000;

#[test]
fn whatever_goes_wrong_what_must_be_true_is() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);

    let found = search(0, SEEDS, threads);

    let wrong: Vec<String> = found.wrong.iter().map(ToString::to_string).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(found.tried, SEEDS);
}

#[test]
fn a_seed_has_one_history() {
    for seed in 0..40 {
        let (first, second) = (simulate(seed, true), simulate(seed, true));

        assert!(!first.trace.is_empty());
        if first.trace != second.trace {
            let mut lines = first.trace.lines().zip(second.trace.lines());
            let apart = lines.find(|(one, other)| one != other);
            panic!("seed {seed} has two histories, which part at {apart:#?}");
        }
    }
}

/// A simulation in which nothing happens finds nothing.
#[test]
fn everything_happens_in_some_seed() {
    let expected = [
        "starts",
        "dies",
        "stutters",
        "is held up",
        "cut off",
        "drained",
        "clock steps",
        "storm begins",
        "tenant suspended",
        "told nothing",
        "acceptance told",
        "cancel told",
        "interrupted",
        "cancelled for another",
        "cancelled",
        "cancel requested",
        "claimed",
        "renewed",
        "lost",
        "answer",
        "resume",
        "in doubt",
        "record",
        "boundary",
        "retry",
        "finish",
        "back for a drain",
        "back for a provider",
        "back for a suspension",
        "back as an orphan",
        "repeated",
        "refused",
        "taken back",
        "taken back and ended",
        "tool",
        "model",
    ];
    let mut missing: BTreeSet<&str> = expected.into();

    for seed in 0..SEEDS {
        if missing.is_empty() {
            return;
        }
        for seen in simulate(seed, false).seen {
            missing.remove(seen);
        }
    }

    panic!("never seen: {missing:?}");
}
