//! Which runs are claimed next: order within a session, fairness between tenants, and every limit.

use proptest::collection::vec;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;

const LIMITS: ClaimLimits = ClaimLimits {
    runs: 10,
    running_per_tenant: 0,
    memory_version: 1,
};

fn second(n: i64) -> Timestamp {
    Timestamp::from_micros(n * 1_000_000)
}

fn run(n: u128) -> RunId {
    RunId(Uuid::from_u128(n))
}

/// A queued run, the only one of its session, accepted at second `n`.
fn waiting(n: u32, tenant: u128) -> Pending {
    Pending {
        run: run(n.into()),
        tenant: TenantId(Uuid::from_u128(tenant)),
        tenant_active: true,
        session: SessionId(Uuid::from_u128(n.into())),
        session_no: 1,
        running: false,
        available_at: None,
        created_at: second(n.into()),
        memory_version: 1,
    }
}

/// A queued run behind the others of that run's session.
fn behind(first: Pending, n: u32) -> Pending {
    Pending {
        session: first.session,
        session_no: first.session_no + 1,
        ..waiting(n, first.tenant.0.as_u128())
    }
}

fn running(pending: Pending) -> Pending {
    Pending {
        running: true,
        ..pending
    }
}

fn claimed(pending: &[Pending], limits: ClaimLimits) -> Vec<u128> {
    let runs = eligible(pending, limits, second(100));
    runs.into_iter().map(|run| run.0.as_u128()).collect()
}

#[test]
fn the_oldest_comes_first() {
    let pending = [waiting(3, 1), waiting(1, 1), waiting(2, 1)];

    assert_eq!(claimed(&pending, LIMITS), [1, 2, 3]);
}

#[test]
fn a_session_offers_its_first_run_and_no_other() {
    let first = waiting(5, 1);
    let second = behind(first, 1);

    assert_eq!(claimed(&[second, first], LIMITS), [5]);
    assert_eq!(claimed(&[second], LIMITS), [1]);
    assert_eq!(claimed(&[running(first), second], LIMITS), []);
}

#[test]
fn a_run_that_waits_holds_its_session_and_nobody_else() {
    let first = Pending {
        available_at: Some(second(101)),
        ..waiting(1, 1)
    };
    let due = Pending {
        available_at: Some(second(100)),
        ..waiting(3, 1)
    };

    assert_eq!(claimed(&[first, behind(first, 2), due], LIMITS), [3]);
}

#[test]
fn a_run_of_a_newer_format_or_a_suspended_tenant_is_left_alone() {
    let newer = Pending {
        memory_version: 2,
        ..waiting(1, 1)
    };
    let suspended = Pending {
        tenant_active: false,
        ..waiting(2, 2)
    };
    let older = Pending {
        memory_version: 0,
        ..waiting(3, 1)
    };

    assert_eq!(claimed(&[newer, suspended, older], LIMITS), [3]);
    assert_eq!(claimed(&[newer, behind(newer, 4)], LIMITS), []);
}

#[test]
fn tenants_take_turns_so_that_many_runs_of_one_do_not_delay_another() {
    let mut pending: Vec<Pending> = (1..=50).map(|n| waiting(n, 1)).collect();
    pending.extend([waiting(60, 2), waiting(61, 2), waiting(70, 3)]);
    let four = ClaimLimits { runs: 6, ..LIMITS };

    assert_eq!(claimed(&pending, four), [1, 60, 70, 2, 61, 3]);
}

#[test]
fn one_free_place_is_for_the_tenant_that_has_the_fewest_running() {
    let mut pending: Vec<Pending> = (1..=50).map(|n| waiting(n, 1)).collect();
    pending[0] = running(pending[0]);
    pending.push(waiting(60, 2));
    let one = ClaimLimits { runs: 1, ..LIMITS };

    assert_eq!(claimed(&pending, one), [60]);
    assert_eq!(
        claimed(&pending, ClaimLimits { runs: 3, ..LIMITS }),
        [60, 2, 3]
    );
}

#[test]
fn a_tenant_has_no_more_running_than_its_cap() {
    let pending = [
        running(waiting(1, 1)),
        waiting(2, 1),
        waiting(3, 1),
        waiting(4, 2),
        waiting(5, 2),
        waiting(6, 2),
    ];
    let two_each = ClaimLimits {
        running_per_tenant: 2,
        ..LIMITS
    };

    assert_eq!(claimed(&pending, two_each), [4, 2, 5]);
    let over = [
        running(waiting(1, 1)),
        running(waiting(2, 1)),
        waiting(3, 1),
    ];
    let one_each = ClaimLimits {
        running_per_tenant: 1,
        ..LIMITS
    };
    assert_eq!(claimed(&over, one_each), []);
}

#[test]
fn no_room_claims_nothing() {
    let none = ClaimLimits { runs: 0, ..LIMITS };

    assert_eq!(claimed(&[waiting(1, 1)], none), []);
}

/// A few tenants with a few sessions each, in which at most the first run is running.
fn any_pending() -> impl Strategy<Value = Vec<Pending>> {
    let one = (0..4_u128, 0..3_u128, 0..200_i64, 0..8_u8, 0..9_u8);
    vec(one, 0..40).prop_map(|runs| {
        let mut numbers: BTreeMap<SessionId, u64> = BTreeMap::new();
        let of_run =
            |(n, (tenant, session, available, state, odd)): (u32, (u128, u128, i64, u8, u8))| {
                let session = SessionId(Uuid::from_u128(tenant * 10 + session));
                let session_no = numbers.entry(session).or_default();
                *session_no += 1;
                Pending {
                    session,
                    session_no: *session_no,
                    running: *session_no == 1 && state == 0,
                    available_at: (state < 4).then(|| second(available)),
                    tenant_active: tenant != 3 || odd == 0,
                    memory_version: 1 + u32::from(odd == 1),
                    ..waiting(n, tenant)
                }
            };
        (1..).zip(runs).map(of_run).collect()
    })
}

fn any_limits() -> impl Strategy<Value = ClaimLimits> {
    (0..8_u32, 0..4_u32).prop_map(|(runs, running_per_tenant)| ClaimLimits {
        runs,
        running_per_tenant,
        ..LIMITS
    })
}

proptest! {
    #[test]
    fn whatever_waits_every_limit_holds(pending in any_pending(), limits in any_limits()) {
        let runs = eligible(&pending, limits, second(100));

        prop_assert!(runs.len() <= limits.runs as usize);
        let mut sessions = BTreeSet::new();
        let mut of_tenant: BTreeMap<TenantId, u32> = BTreeMap::new();
        for run in pending.iter().filter(|run| run.running) {
            *of_tenant.entry(run.tenant).or_default() += 1;
        }
        for id in &runs {
            let run = pending.iter().find(|run| run.run == *id).expect("a run that waits");
            prop_assert!(!run.running && run.tenant_active && run.memory_version == 1);
            prop_assert!(run.available_at.is_none_or(|at| at <= second(100)));
            prop_assert!(sessions.insert(run.session), "two of a session");
            let earlier = pending
                .iter()
                .any(|other| other.session == run.session && other.session_no < run.session_no);
            prop_assert!(!earlier, "past the head of a session");
            let count = of_tenant.entry(run.tenant).or_default();
            *count += 1;
            prop_assert!(limits.running_per_tenant == 0 || *count <= limits.running_per_tenant);
        }
    }

    #[test]
    fn what_waits_and_could_be_claimed_is_claimed_while_there_is_room(
        pending in any_pending(),
        limits in any_limits(),
    ) {
        let all = eligible(&pending, ClaimLimits { runs: u32::MAX, ..limits }, second(100));
        let some = eligible(&pending, limits, second(100));

        prop_assert_eq!(&some[..], &all[..all.len().min(limits.runs as usize)]);
    }

    #[test]
    fn a_tenants_first_run_waits_for_no_more_than_one_of_each_other(
        crowds in vec(1..20_u32, 0..6),
        at in any::<prop::sample::Index>(),
    ) {
        let mut pending = Vec::new();
        let mut n = 0;
        for (tenant, many) in (1..).zip(&crowds) {
            for _ in 0..*many {
                n += 1;
                pending.push(waiting(n, tenant));
            }
        }
        // It came last of all, and stands anywhere.
        let lonely = waiting(n + 1, 99);
        pending.insert(at.index(pending.len() + 1), lonely);

        let runs = eligible(&pending, LIMITS, second(1_000));

        let place = runs.iter().position(|run| *run == lonely.run);
        prop_assert!(place.is_some_and(|place| place <= crowds.len()));
    }
}

/// A run as a census sees it, that told its last event at that second.
fn counted(pending: Pending, told: i64) -> Counted {
    Counted {
        pending,
        told_at: second(told),
        freed_at: None,
        tenant_since: second(0),
        started_at: pending.running.then(|| second(told)),
    }
}

fn tenant(n: u128) -> TenantId {
    TenantId(Uuid::from_u128(n))
}

fn counts(queued: u64, running: u64) -> Counts {
    Counts { queued, running }
}

#[test]
fn a_census_names_the_tenants_that_have_the_most_and_sums_up_the_others() {
    let mut runs: Vec<_> = (1..=3).map(|n| counted(waiting(n, 1), 0)).collect();
    runs.push(counted(running(waiting(4, 2)), 0));
    runs.push(counted(waiting(5, 2), 0));
    runs.push(counted(waiting(6, 4), 0));
    runs.push(counted(running(waiting(7, 3)), 0));

    let all = census(&runs, 10, second(100));
    let two = census(&runs, 2, second(100));
    let none = census(&runs, 0, second(100));

    let expected = [
        (tenant(1), counts(3, 0)),
        (tenant(2), counts(1, 1)),
        (tenant(3), counts(0, 1)),
        (tenant(4), counts(1, 0)),
    ];
    assert_eq!(
        (&all.tenants[..], all.others),
        (&expected[..], counts(0, 0))
    );
    assert_eq!(
        (&two.tenants[..], two.others),
        (&expected[..2], counts(1, 1))
    );
    assert_eq!((&none.tenants[..], none.others), (&[][..], counts(5, 2)));
    for it in [all, two, none] {
        assert_eq!(it.total(), counts(5, 2));
    }
    assert_eq!(census(&[], 10, second(100)), Census::default());
}

#[test]
fn a_run_is_claimable_since_the_last_thing_that_stood_before_it_was_gone() {
    let plain = counted(waiting(1, 1), 10);
    let freed = Counted {
        freed_at: Some(second(60)),
        ..plain
    };
    let of_tenant = Counted {
        tenant_since: second(70),
        ..plain
    };
    let mut due = plain;
    due.pending.available_at = Some(second(80));

    for (run, since) in [(plain, 10), (freed, 60), (of_tenant, 70), (due, 80)] {
        let age = census(&[run], 10, second(100)).claimable_for;
        assert_eq!(age, Some(second(100).since(second(since))));
    }
    let all = [freed, plain, due];
    let age = census(&all.map(apart), 10, second(100)).claimable_for;
    assert_eq!(age, Some(second(100).since(second(10))));
}

/// The same in a session of its own.
fn apart(run: Counted) -> Counted {
    let n = run.freed_at.map_or(1, Timestamp::as_micros)
        + run.pending.available_at.map_or(1, Timestamp::as_micros);
    let mut run = run;
    run.pending.session = SessionId(Uuid::from_u128(n.unsigned_abs().into()));
    run
}

#[test]
fn what_cannot_be_claimed_has_no_age() {
    let first = waiting(1, 1);
    let suspended = Pending {
        tenant_active: false,
        ..first
    };
    let later = Pending {
        available_at: Some(second(101)),
        ..first
    };

    for runs in [
        vec![suspended],
        vec![later, behind(later, 2)],
        vec![running(first), behind(first, 2)],
    ] {
        let runs: Vec<_> = runs.into_iter().map(|run| counted(run, 5)).collect();
        assert_eq!(census(&runs, 10, second(100)).claimable_for, None);
    }
}

#[test]
fn the_oldest_that_is_running_counts_from_its_first_claim() {
    let runs = [
        counted(running(waiting(1, 1)), 40),
        counted(running(waiting(2, 1)), 20),
        counted(waiting(3, 1), 10),
    ];

    let age = census(&runs, 10, second(100)).running_for;

    assert_eq!(age, Some(second(100).since(second(20))));
    assert_eq!(census(&runs[2..], 10, second(100)).running_for, None);
}
