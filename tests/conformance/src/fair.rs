//! Tenants beside each other: they take turns, and none has more than its share.

use std::collections::BTreeSet;
use std::time::Duration;

use hango_domain::TenantId;
use hango_domain::people::TenantStatus;
use hango_domain::queue::ClaimLimits;
use hango_domain::run::Change;

use crate::{Fixture, no_limits, owner};

/// A tenant with many waiting runs does not delay another tenant's first by more than one round.
pub async fn tenants_take_turns(fixture: Fixture) {
    let busy = fixture.place().await;
    for _ in 0..20 {
        let session = fixture.session(&busy.owner, busy.agent.id).await;
        let new = fixture.new_run(&busy.owner, session.id);
        fixture.accept(new).await;
    }
    fixture.clock.advance(Duration::from_mins(1));
    let quiet = fixture.place().await;
    fixture.run(&quiet).await;
    let limits = ClaimLimits {
        runs: 2,
        ..no_limits()
    };

    let claimed = fixture.claim_all(owner(1), None, limits).await;

    let tenants: BTreeSet<TenantId> = claimed.iter().map(|it| it.run.tenant_id).collect();
    assert_eq!(tenants, BTreeSet::from([busy.tenant, quiet.tenant]));
}

/// Where places become free one by one, the tenant that has fewer runs running comes first, however long
/// the other one's have waited.
pub async fn a_tenant_with_fewer_running_runs_comes_first(fixture: Fixture) {
    let busy = fixture.place().await;
    for _ in 0..5 {
        let session = fixture.session(&busy.owner, busy.agent.id).await;
        let new = fixture.new_run(&busy.owner, session.id);
        fixture.accept(new).await;
    }
    let one = ClaimLimits {
        runs: 1,
        ..no_limits()
    };
    assert_eq!(fixture.claim_all(owner(1), None, one).await.len(), 1);
    fixture.clock.advance(Duration::from_mins(1));
    let quiet = fixture.place().await;
    let visit = fixture.run(&quiet).await;

    let claimed = fixture.claim_all(owner(1), None, one).await;

    let runs: Vec<_> = claimed.iter().map(|it| it.run.id).collect();
    assert_eq!(runs, [visit.id]);
}

/// A suspended tenant's runs wait until it may work again.
pub async fn a_suspended_tenants_runs_are_not_claimed(fixture: Fixture) {
    let place = fixture.place().await;
    let run = fixture.run(&place).await;
    fixture
        .set_tenant(&place.owner, TenantStatus::Suspended)
        .await;

    assert!(fixture.claim(run.id, owner(1)).await.is_none());
    fixture.set_tenant(&place.owner, TenantStatus::Active).await;

    fixture.held(run.id, owner(1)).await;
}

/// A tenant has no more running runs than the cap allows, in one batch or in several.
pub async fn a_tenants_cap_is_kept(fixture: Fixture) {
    let place = fixture.place().await;
    for _ in 0..5 {
        let session = fixture.session(&place.owner, place.agent.id).await;
        let new = fixture.new_run(&place.owner, session.id);
        fixture.accept(new).await;
    }
    let limits = ClaimLimits {
        running_per_tenant: 2,
        ..no_limits()
    };

    let claimed = fixture.claim_all(owner(1), None, limits).await;

    assert_eq!(claimed.len(), 2);
    assert!(fixture.claim_all(owner(2), None, limits).await.is_empty());
    let end = fixture.finish(claimed[0].lease, 1);
    fixture.written(Change::Finish(end)).await;
    assert_eq!(fixture.claim_all(owner(2), None, limits).await.len(), 1);
}
