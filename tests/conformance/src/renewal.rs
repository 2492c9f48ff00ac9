//! Keeping leases, and learning with each renewal what is true now.

use std::time::Duration;

use hango_domain::OwnerId;
use hango_domain::access::{CreatorNow, Role, Scope};
use hango_domain::people::{TenantStatus, UserStatus};
use hango_domain::run::{Change, Lease, RunState};
use hango_ports::identity_store::UserPatch;
use hango_ports::run_store::{Held, Renewal, Standing};

use crate::{Fixture, TTL, owner};

const fn held(lease: Lease) -> Held {
    Held {
        run: lease.run,
        attempt: lease.attempt,
    }
}

async fn renew(fixture: &Fixture, owner: OwnerId, leases: &[Lease]) -> Renewal {
    let leases = leases.iter().copied().map(held).collect();
    let renewal = fixture.stores.runs.renew(owner, leases, TTL).await;
    renewal.expect("losing a lease is not an error")
}

/// What an owner's run has in this crate's places: he acts on his own session.
const UNTROUBLED: Standing = Standing {
    cancel_requested: false,
    creator: CreatorNow {
        active: true,
        role: Role::Owner,
        created_session: true,
    },
    tenant_active: true,
};

/// A renewed lease ends one span after its renewal, and nothing else changes.
pub async fn a_renewal_pushes_the_end_away(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let mut expected = fixture.on_record(&place, lease.run).await;
    fixture.clock.almost(TTL);

    let renewal = renew(&fixture, owner(1), &[lease]).await;

    assert_eq!(renewal.renewed, [(held(lease), UNTROUBLED)]);
    expected.run.state = RunState::Running {
        owner: owner(1),
        expires_at: fixture.now().plus(TTL),
    };
    assert_eq!(fixture.on_record(&place, lease.run).await, expected);
    fixture.clock.almost(TTL);
    assert_eq!(fixture.sweep().await, []);
}

/// One write renews all; what is not in force is named as lost, what was forgotten as an orphan.
pub async fn renewed_lost_and_forgotten_leases_are_told_apart(fixture: Fixture) {
    let (_, first) = fixture.running().await;
    let (_, ended) = fixture.running().await;
    let (_, forgotten) = fixture.running().await;
    let (_, foreign) = fixture.running().await;
    fixture
        .written(Change::Finish(fixture.finish(ended, 1)))
        .await;
    fixture.taken_over(foreign, owner(2)).await;
    // The sweep took everything; the first process claims again what is its own here.
    let first = fixture.held(first.run, owner(1)).await;
    let forgotten = fixture.held(forgotten.run, owner(1)).await;

    let mut renewal = renew(&fixture, owner(1), &[first, ended, foreign]).await;

    renewal.lost.sort_by_key(|held| held.run);
    let mut lost = [held(ended), held(foreign)];
    lost.sort_by_key(|held| held.run);
    let expected = Renewal {
        renewed: vec![(held(first), UNTROUBLED)],
        lost: lost.to_vec(),
        orphans: vec![forgotten],
    };
    assert_eq!(renewal, expected);
}

/// A lease that ran out is lost, even if nobody took the run.
pub async fn a_lease_that_ran_out_is_not_renewed(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let before = fixture.on_record(&place, lease.run).await;
    fixture.clock.advance(TTL);

    let renewal = renew(&fixture, owner(1), &[lease]).await;

    let expected = Renewal {
        lost: vec![held(lease)],
        ..Renewal::default()
    };
    assert_eq!(renewal, expected);
    assert_eq!(fixture.on_record(&place, lease.run).await, before);
}

/// A process that claimed a run again does not keep its former attempt alive; the claim that it did
/// not name is an orphan.
pub async fn a_former_attempt_is_lost_and_the_present_one_an_orphan(fixture: Fixture) {
    let (_place, stale) = fixture.running().await;
    let fresh = fixture.taken_over(stale, owner(1)).await;

    let renewal = renew(&fixture, owner(1), &[stale]).await;

    let expected = Renewal {
        lost: vec![held(stale)],
        orphans: vec![fresh],
        ..Renewal::default()
    };
    assert_eq!(renewal, expected);
}

/// A process that names nothing learns of all that it holds: a claim whose answer was lost.
pub async fn a_claim_whose_answer_was_lost_is_found(fixture: Fixture) {
    let (_place, lease) = fixture.running().await;

    let renewal = renew(&fixture, owner(1), &[]).await;

    assert_eq!(renewal.orphans, [lease]);
    assert_eq!(renew(&fixture, owner(2), &[]).await, Renewal::default());
    let change = fixture.give_back(lease, Duration::ZERO);
    fixture.written(Change::GiveBack(change)).await;
    assert_eq!(renew(&fixture, owner(1), &[]).await, Renewal::default());
}

/// What becomes of the run, its creator and its tenant is visible at the next renewal and with the next
/// write.
pub async fn every_renewal_and_write_tells_what_is_true_now(fixture: Fixture) {
    let place = fixture.place().await;
    let admin = fixture.user(&place.owner, Role::Admin).await;
    let new = fixture.new_run(&admin, place.session.id);
    let run = fixture.accept(new).await;
    let lease = fixture.held(run.id, owner(1)).await;
    let look = async || {
        let renewal = renew(&fixture, owner(1), &[lease]).await;
        let written = fixture
            .written(Change::Retry(fixture.retry(lease, 1)))
            .await;
        assert_eq!(renewal.renewed, [(held(lease), written.standing)]);
        written.standing
    };
    let mut expected = Standing {
        creator: CreatorNow {
            active: true,
            role: Role::Admin,
            created_session: false,
        },
        ..UNTROUBLED
    };
    assert_eq!(look().await, expected);

    let demoted = UserPatch {
        role: Some(Role::Member),
        ..UserPatch::default()
    };
    fixture.change_user(&place.owner, admin.user, demoted).await;
    expected.creator.role = Role::Member;
    assert_eq!(look().await, expected);
    assert!(!expected.creator.may_act());

    let disabled = UserPatch {
        status: Some(UserStatus::Disabled),
        ..UserPatch::default()
    };
    fixture
        .change_user(&place.owner, admin.user, disabled)
        .await;
    expected.creator.active = false;
    assert_eq!(look().await, expected);

    fixture
        .set_tenant(&place.owner, TenantStatus::Suspended)
        .await;
    expected.tenant_active = false;
    assert_eq!(look().await, expected);

    // With no key of his tenant that would be good for anything.
    let operator = Scope {
        key: None,
        ..place.owner
    };
    let cancelled = fixture.cancel(&operator, lease.run).await;
    cancelled.expect("it runs");
    expected.cancel_requested = true;
    assert_eq!(look().await, expected);
}
