//! Stop anywhere, go on from what was saved, and the end is the same.

use std::cell::RefCell;
use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

use super::player::{Break, Interruption, Player};
use super::script::{Script, any_script};
use super::*;

fn any_limits() -> impl Strategy<Value = LoopLimits> {
    (1..5_u32, 1..4_usize).prop_map(|(max_iterations, tool_concurrency)| LoopLimits {
        max_iterations,
        tool_concurrency,
        ..LIMITS
    })
}

fn any_of(breaks: Vec<Break>) -> impl Strategy<Value = Interruption> {
    (0..12_u32, select(breaks)).prop_map(|(after, what)| Interruption { after, what })
}

/// What a run survives.
fn interruptions() -> Vec<Break> {
    vec![
        Break::Crash,
        Break::Crash,
        Break::Stop(Stop::Abort),
        Break::Stop(Stop::LeaseLost),
        Break::Drain,
    ]
}

/// What it survives, and what ends it.
fn breaks() -> Vec<Break> {
    let mut breaks = vec![
        Break::Stop(Stop::Cancel),
        Break::Stop(Stop::Deadline),
        Break::Stop(Stop::Internal("broken".to_owned())),
        Break::Standing(CREATOR_INACTIVE),
        Break::Cancel,
    ];
    breaks.extend(interruptions());
    breaks
}

fn play_to_an_end(
    script: &Script,
    limits: LoopLimits,
    breaks: &[Interruption],
    pick: usize,
) -> Result<&'static str, TestCaseError> {
    let ended = Player::new(script, limits, pick).play(breaks)?;
    if ended.store.run.cancel_requested_at.is_some() {
        prop_assert_eq!(ended.store.ended(), "cancelled");
    }
    ended.store.check_end();
    Ok(ended.store.ended())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(384))]

    #[test]
    fn a_run_that_is_stopped_anywhere_ends_as_it_would_have_without(
        script in any_script(),
        limits in any_limits(),
        breaks in vec(any_of(interruptions()), 0..6),
        pick in 0..3_usize,
    ) {
        let whole = Player::new(&script, limits, pick).play(&[])?;

        let stopped = Player::new(&script, limits, pick).play(&breaks)?;

        prop_assert_eq!(stopped.said_without_doubt()?, whole.store.said());
        prop_assert_eq!(stopped.store.ended(), whole.store.ended());
        let kept = |player: &Player| {
            let run = &player.store.run;
            (run.iterations, run.usage, run.usage_discarded, run.stop_reason, run.progress.resume_turn)
        };
        prop_assert_eq!(kept(&stopped), kept(&whole));
        prop_assert_eq!(
            stopped.store.run.final_message_id.is_some(),
            whole.store.run.final_message_id.is_some()
        );
        stopped.store.check_end();
        whole.store.check_end();
    }

    #[test]
    fn whatever_ends_a_run_its_calls_are_settled_and_the_next_run_can_go_on(
        script in any_script(),
        limits in any_limits(),
        breaks in vec(any_of(breaks()), 0..6),
        pick in 0..3_usize,
    ) {
        play_to_an_end(&script, limits, &breaks, pick)?;
    }
}

/// By the same scripts, always the same ones.
#[test]
fn the_scripts_reach_every_end() {
    let reached = RefCell::new(BTreeSet::new());
    let plays = (any_script(), any_limits(), vec(any_of(breaks()), 0..3));
    let mut runner = TestRunner::deterministic();

    let played = runner.run(&plays, |(script, limits, breaks)| {
        let ended = play_to_an_end(&script, limits, &breaks, 0)?;
        reached.borrow_mut().insert(ended);
        Ok(())
    });

    assert!(played.is_ok());
    assert_eq!(
        reached.into_inner(),
        BTreeSet::from([
            "cancelled",
            "creator_inactive",
            "deadline_exceeded",
            "empty_answer",
            "internal",
            "max_iterations",
            "provider_rejected",
            "provider_unavailable",
            "succeeded",
            "truncated",
        ])
    );
}
