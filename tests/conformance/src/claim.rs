//! Handing runs out: one claim wins, sessions keep their order.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use hango_domain::RunId;
use hango_domain::conversation::NewMessage;
use hango_domain::queue::ClaimLimits;
use hango_domain::run::{Change, Lease, RunState, StoredMemory};
use hango_ports::run_store::{Claimed, RunContext};

use crate::{Fixture, TTL, no_limits, owner};

fn runs_of(claimed: &[Claimed]) -> Vec<RunId> {
    claimed.iter().map(|claimed| claimed.run.id).collect()
}

/// Of any number of processes that ask for a run at the same moment, one gets it.
pub async fn of_eight_claimers_exactly_one_wins(fixture: Fixture) {
    for _ in 0..10 {
        let place = fixture.place().await;
        let run = fixture.run(&place).await;

        let claims = (1..=8).map(|n| fixture.claims(owner(n), Some(run.id), no_limits()));
        let claims = join_all(claims).await;

        let lost: Vec<_> = claims.iter().map(|it| it.lost).collect();
        assert_eq!(
            lost.iter().sum::<u32>(),
            7,
            "each loser has lost it once: {lost:?}"
        );
        let won: Vec<Claimed> = claims.into_iter().flat_map(|it| it.won).collect();
        assert_eq!(runs_of(&won), [run.id]);
        let stored = fixture.on_record(&place, run.id).await.run;
        assert_eq!(stored.lease(), Some(won[0].lease));
        assert_eq!(stored.attempt, 1);
    }
}

/// Whatever claims race for, no run is handed out twice, and none is forgotten.
pub async fn racing_batches_hand_out_each_run_once(fixture: Fixture) {
    let place = fixture.place().await;
    let mut queued = BTreeSet::new();
    for _ in 0..24 {
        let session = fixture.session(&place.owner, place.agent.id).await;
        let new = fixture.new_run(&place.owner, session.id);
        queued.insert(fixture.accept(new).await.id);
    }
    let limits = ClaimLimits {
        runs: 4,
        ..no_limits()
    };

    let rounds = join_all((1..=8).map(|n| fixture.claim_all(owner(n), None, limits))).await;
    let rest = fixture.claims(owner(9), None, no_limits()).await;
    assert_eq!(rest.lost, 0, "nobody was in the way");
    let rest = rest.won;

    let handed: Vec<RunId> = rounds
        .iter()
        .chain([&rest])
        .flat_map(|it| runs_of(it))
        .collect();
    assert_eq!(handed.len(), 24);
    assert_eq!(BTreeSet::from_iter(handed), queued);
}

/// A claim brings the executor all that it needs.
pub async fn a_claim_brings_all_that_the_executor_needs(fixture: Fixture) {
    let place = fixture.place().await;
    let run = fixture.run(&place).await;
    fixture.clock.advance(Duration::from_millis(1500));

    let claimed = fixture.claim(run.id, owner(1)).await;

    let claimed = claimed.expect("nothing stands before the claim");
    let now = fixture.now();
    assert_eq!(claimed.lease.attempt, 1);
    assert_eq!(claimed.elapsed, Duration::ZERO);
    assert_eq!(claimed.run.started_at, Some(now));
    let running = RunState::Running {
        owner: owner(1),
        expires_at: now.plus(TTL),
    };
    assert_eq!(claimed.run.state, running);
    let input = NewMessage::user(run.input_message_id, run.input.clone());
    let expected = RunContext {
        agent: place.agent.snapshot(),
        history: vec![input.stored(run.session_id, Some(run.id), 1, now)],
        calls: Vec::new(),
    };
    assert_eq!(claimed.context.ok(), Some(expected));
    assert!(claimed.standing.creator.may_act());
    assert!(claimed.standing.tenant_active);
    assert!(!claimed.standing.cancel_requested);
}

/// The deadline counts from the first start, whoever has the run now.
pub async fn a_later_claim_tells_how_long_ago_the_run_was_started_first(fixture: Fixture) {
    let (_place, lease) = fixture.running().await;
    fixture.clock.advance(TTL);
    assert_eq!(fixture.sweep().await, [lease.run]);

    let claimed = fixture.claim(lease.run, owner(2)).await;

    let claimed = claimed.expect("nothing stands before the claim");
    assert_eq!(claimed.elapsed, TTL);
    let second = Lease {
        owner: owner(2),
        attempt: 2,
        ..lease
    };
    assert_eq!(claimed.lease, second);
}

/// Runs of a session start one after the other, in the order in which they were accepted.
pub async fn runs_of_a_session_start_in_their_order(fixture: Fixture) {
    let place = fixture.place().await;
    let first = fixture.run(&place).await;
    let second = fixture.run(&place).await;
    assert_eq!([first.session_no, second.session_no], [1, 2]);

    assert!(fixture.claim(second.id, owner(1)).await.is_none());
    let lease = fixture.held(first.id, owner(1)).await;
    assert!(fixture.claim(second.id, owner(1)).await.is_none());
    fixture
        .written(Change::Finish(fixture.finish(lease, 1)))
        .await;

    fixture.held(second.id, owner(1)).await;
}

/// A run that waits for its moment holds back the later ones of its session: they would read a history
/// that lacks its answer.
pub async fn a_waiting_run_holds_back_the_later_ones_of_its_session(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let second = fixture.run(&place).await;
    let wait = Duration::from_secs(20);
    let change = fixture.give_back(lease, wait);
    fixture.written(Change::GiveBack(change)).await;

    assert!(
        fixture
            .claim_all(owner(1), None, no_limits())
            .await
            .is_empty()
    );
    assert!(fixture.claim(second.id, owner(1)).await.is_none());
    fixture.clock.advance(wait);

    let claimed = fixture.claim_all(owner(1), None, no_limits()).await;
    assert_eq!(runs_of(&claimed), [lease.run]);
}

/// A batch has at most one run of a session.
pub async fn a_batch_has_at_most_one_run_of_a_session(fixture: Fixture) {
    let place = fixture.place().await;
    let first = fixture.run(&place).await;
    for _ in 0..3 {
        fixture.run(&place).await;
    }

    let claimed = fixture.claim_all(owner(1), None, no_limits()).await;

    assert_eq!(runs_of(&claimed), [first.id]);
}

/// An older program beside a newer one leaves alone what it cannot read.
pub async fn a_run_of_a_newer_memory_format_is_left_to_who_can_read_it(fixture: Fixture) {
    let (_place, lease, calls) = fixture.answered(1, 1).await;
    let mut boundary = fixture.boundary(lease, 1, &calls);
    boundary.memory = Some(StoredMemory {
        version: 2,
        json: serde_json::json!({"plan": "of another kind"}),
    });
    fixture.written(Change::CompleteTurn(boundary)).await;
    let change = fixture.give_back(lease, Duration::ZERO);
    fixture.written(Change::GiveBack(change)).await;
    let reading = |memory_version| ClaimLimits {
        memory_version,
        ..no_limits()
    };

    assert!(
        fixture
            .claim_all(owner(1), None, reading(1))
            .await
            .is_empty()
    );

    let claimed = fixture.claim_all(owner(1), None, reading(2)).await;
    assert_eq!(runs_of(&claimed), [lease.run]);
}

/// Who asks for one run gets that one or nothing; what waits longer does not stand before it.
pub async fn who_asks_for_one_run_gets_that_one_or_nothing(fixture: Fixture) {
    let place = fixture.place().await;
    fixture.run(&place).await;
    let session = fixture.session(&place.owner, place.agent.id).await;
    let asked = fixture
        .accept(fixture.new_run(&place.owner, session.id))
        .await;
    let limits = ClaimLimits {
        runs: 1,
        running_per_tenant: 1,
        ..no_limits()
    };

    let claimed = fixture.claim_all(owner(1), Some(asked.id), limits).await;

    assert_eq!(runs_of(&claimed), [asked.id]);
    let unknown = RunId(fixture.uuid());
    assert!(fixture.claim(unknown, owner(1)).await.is_none());
    assert!(fixture.claim(asked.id, owner(1)).await.is_none());
}
