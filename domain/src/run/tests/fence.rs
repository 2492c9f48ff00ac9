//! Who may write on a run's behalf, and how a repeat of a write is answered.

use super::*;

/// A run whose owner 1 fell silent in attempt 1 and holds it again in attempt 2, an answer on record.
fn held_again() -> Run {
    let run = made(running(), &answer(lease(1), 1, 1), 1);
    let run = made(run, &reclaim(5), 30);
    made(run, &claim(1), 40)
}

fn fenced(lease: Lease) -> Vec<Change> {
    vec![
        renew(lease),
        repair(lease, 50),
        answer(lease, 50, 1),
        resume(lease, 50, 1),
        record(lease, 50, 1),
        go_on(lease, 50, 1),
        retry(lease, 50, 1, shown_try()),
        Change::GiveBack(give_back(lease, 50)),
        Change::Finish(end(lease, 50, Outcome::Succeeded)),
    ]
}

#[test]
fn a_process_does_not_write_as_its_former_self() {
    for change in fenced(lease(1)) {
        assert_eq!(refused(&held_again(), &change, 41), lost(lease(1)));
    }
}

#[test]
fn another_process_does_not_write_under_the_attempt_in_force() {
    let other = Lease {
        owner: owner(2),
        ..lease(2)
    };

    for change in fenced(other) {
        assert_eq!(refused(&held_again(), &change, 41), lost(other));
    }
}

#[test]
fn nobody_writes_on_behalf_of_a_queued_run() {
    let reclaimed = made(running(), &reclaim(5), 30);

    for change in fenced(lease(1)) {
        assert_eq!(refused(&reclaimed, &change, 31), lost(lease(1)));
    }
}

#[test]
fn a_write_other_than_a_renewal_needs_a_claim_that_nobody_took_even_if_it_expired() {
    let late = 1_000;

    assert_eq!(refused(&running(), &renew(lease(1)), late), lost(lease(1)));
    let answered = made(running(), &answer(lease(1), 1, 1), late);
    let completed = made(answered, &go_on(lease(1), 2, 1), late);

    assert_eq!(completed.progress.resume_turn, 1);
}

#[test]
fn a_repeat_is_answered_as_the_first_was_and_stores_nothing_even_when_the_lease_is_lost() {
    let open = made(running(), &answer(lease(1), 1, 1), 1);
    let waiting = running();
    for (run, change) in [
        (&waiting, repair(lease(1), 2)),
        (&waiting, answer(lease(1), 2, 1)),
        (&open, resume(lease(1), 2, 1)),
        (&open, record(lease(1), 2, 1)),
        (&open, go_on(lease(1), 2, 1)),
        (&waiting, retry(lease(1), 2, 1, shown_try())),
        (&waiting, Change::GiveBack(give_back(lease(1), 2))),
        (
            &waiting,
            Change::Finish(end(lease(1), 2, Outcome::Succeeded)),
        ),
    ] {
        let once = made(run.clone(), &change, 2);
        let repeated = |run: &Run| Applied {
            run: run.clone(),
            events: Vec::new(),
            repeated: true,
        };
        let again = |run: &Run| run.clone().apply(&change, at(50));

        assert_eq!(again(&once), Ok(repeated(&once)), "{change:?}");
        if let Ok(reclaimed) = once.clone().apply(&reclaim(5), at(40)) {
            let lost = reclaimed.run;
            let taken = made(lost.clone(), &claim(2), 41);
            assert_eq!(again(&lost), Ok(repeated(&lost)), "{change:?}");
            assert_eq!(again(&taken), Ok(repeated(&taken)), "{change:?}");
        }
    }
}

#[test]
fn turns_are_completed_one_after_the_other() {
    for presented in [0, 2, 7] {
        let out_of_order = TransitionError::TurnOutOfOrder {
            completed: 0,
            presented,
        };
        let last = End {
            turn: Some(presented),
            ..end(lease(1), 50, Outcome::Succeeded)
        };
        for change in [
            answer(lease(1), 50, presented),
            resume(lease(1), 50, presented),
            record(lease(1), 50, presented),
            go_on(lease(1), 50, presented),
            retry(lease(1), 50, presented, shown_try()),
            Change::Finish(last),
        ] {
            assert_eq!(refused(&running(), &change, 1), out_of_order);
        }
    }
}

#[test]
fn a_turn_has_one_answer_and_nothing_is_recorded_or_completed_without_it() {
    let wrong_point = TransitionError::WrongPoint { turn: 1 };
    let open = made(running(), &answer(lease(1), 1, 1), 1);

    for change in [
        resume(lease(1), 2, 1),
        record(lease(1), 2, 1),
        go_on(lease(1), 2, 1),
    ] {
        assert_eq!(refused(&running(), &change, 1), wrong_point);
    }
    for change in [answer(lease(1), 2, 1), retry(lease(1), 2, 1, shown_try())] {
        assert_eq!(refused(&open, &change, 1), wrong_point);
    }
}
