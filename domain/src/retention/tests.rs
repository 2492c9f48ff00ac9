use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Map;
use uuid::Uuid;

use super::*;
use crate::run::fixtures::{at, queued, running};
use crate::run::{RunError, RunErrorCode, RunState};
use crate::{AgentId, SessionId, TenantId, UserId};

fn hour() -> Retention {
    Retention::new(Duration::from_hours(1)).expect("long enough")
}

fn session(updated_at: Timestamp) -> Session {
    Session {
        id: SessionId(Uuid::from_u128(3)),
        tenant_id: TenantId(Uuid::from_u128(2)),
        agent_id: AgentId(Uuid::from_u128(4)),
        created_by: UserId(Uuid::from_u128(5)),
        title: String::new(),
        metadata: Map::new(),
        created_at: at(0),
        updated_at,
    }
}

/// A moment a microsecond earlier.
fn just_before(moment: Timestamp) -> Timestamp {
    moment.minus(Duration::from_micros(1))
}

#[test]
fn nothing_is_kept_for_less_than_its_readers_need() {
    let too_short = Retention::LEAST.saturating_sub(Duration::from_nanos(1));

    assert_eq!(Retention::new(too_short), None);
    let least = Retention::new(Retention::LEAST).map(Retention::span);
    assert_eq!(least, Some(Retention::LEAST));
}

#[test]
fn a_run_is_old_when_it_ended_that_long_ago_however_it_ended() {
    let at = at(100);
    let error = RunError::new(RunErrorCode::Internal, "it broke");
    for state in [
        RunState::Succeeded { at },
        RunState::Failed { at, error },
        RunState::Cancelled { at },
    ] {
        let run = Run { state, ..queued() };
        let from = at.plus(Duration::from_hours(1));
        assert!(!hour().is_old_run(&run, just_before(from)), "{run:?}");
        assert!(hour().is_old_run(&run, from), "{run:?}");
    }
}

#[test]
fn a_run_that_has_not_ended_is_never_old() {
    let for_ever = Timestamp::from_micros(i64::MAX);
    for run in [queued(), running()] {
        assert!(!hour().is_old_run(&run, for_ever), "{run:?}");
    }
}

#[test]
fn a_session_is_old_when_neither_a_change_nor_a_message_is_younger() {
    let from = at(100).plus(Duration::from_hours(1));
    for (changed, said) in [
        (at(100), None),
        (at(100), Some(at(99))),
        (at(99), Some(at(100))),
    ] {
        let session = session(changed);
        assert!(!hour().is_old_session(&session, 0, said, just_before(from)));
        assert!(hour().is_old_session(&session, 0, said, from));
    }
}

#[test]
fn a_session_with_a_run_is_never_old() {
    let for_ever = Timestamp::from_micros(i64::MAX);
    assert!(!hour().is_old_session(&session(at(0)), 1, None, for_ever));
}

#[test]
fn what_belongs_to_a_thing_counts_with_it() {
    let run = queued();
    assert_eq!(rows_of_run(&run), 1 + run.progress.last_event);
    let line = SessionLine {
        last_seq: 7,
        ..SessionLine::default()
    };
    assert_eq!(rows_of_session(&line), 8);
}

proptest! {
    #[test]
    fn a_step_is_as_long_as_it_may_be_and_no_longer_by_more_than_one_thing(
        sizes in vec(1..40_u64, 0..30),
        rows in 1..200_u32,
    ) {
        let old = sizes.iter().copied().enumerate();

        let gone: Vec<usize> = one_step(old, rows).collect();

        let first: Vec<usize> = (0..gone.len()).collect();
        prop_assert_eq!(&gone, &first);
        let total: u64 = sizes[..gone.len()].iter().sum();
        let last = gone.last().map_or(0, |last| sizes[*last]);
        prop_assert!(total - last < rows.into());
        prop_assert!(gone.len() == sizes.len() || total >= rows.into());
    }
}
