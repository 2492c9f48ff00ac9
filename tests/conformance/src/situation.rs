//! A run with all that its state depends on, read as of one moment.

use hango_domain::access::{Role, Visibility, visibility};
use hango_domain::event::EventKind;
use hango_domain::people::{TenantStatus, UserStatus};
use hango_domain::run::Change;
use hango_domain::{OwnerId, RunId};
use hango_ports::identity_store::UserPatch;
use hango_ports::run_store::Situation;

use crate::{Fixture, owner};

async fn situation(fixture: &Fixture, seen: Visibility, run: RunId) -> Option<Situation> {
    let situation = fixture.stores.runs.situation(seen, run).await;
    situation.expect("reads work")
}

/// The runs of its session that stand before it, and how many of its tenant's are running.
pub async fn what_stands_before_a_run_is_told_in_order(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let second = fixture.run(&place).await;
    let third = fixture.run(&place).await;
    fixture.run(&place).await;
    let session = fixture.session(&place.owner, place.agent.id).await;
    let elsewhere = fixture.new_run(&place.owner, session.id);
    let elsewhere = fixture.accept(elsewhere).await;
    fixture.held(elsewhere.id, owner(2)).await;
    // Another tenant's.
    fixture.running().await;

    let found = situation(&fixture, place.seen(), third.id).await;

    let found = found.expect("it is there");
    assert_eq!(found.before, [lease.run, second.id]);
    assert_eq!(found.tenant_running, 2);
    assert_eq!((&found.run, found.now), (&third, fixture.now()));
    let standing = found.standing;
    assert!(standing.creator.may_act() && standing.tenant_active && !standing.cancel_requested);
    let first = situation(&fixture, place.seen(), lease.run).await;
    let first = first.expect("it is there");
    assert_eq!((first.before, first.tenant_running), (Vec::new(), 2));

    fixture
        .cancel(&place.owner, second.id)
        .await
        .expect("it waits");
    let end = fixture.finish(lease, 1);
    fixture.written(Change::Finish(end)).await;

    let found = situation(&fixture, place.seen(), third.id).await;
    let found = found.expect("it is there");
    assert_eq!((found.before, found.tenant_running), (Vec::new(), 1));
}

/// Whatever became of its creator and its tenant since it was accepted.
pub async fn a_situation_tells_what_is_true_now(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let admin = fixture.user(&place.owner, Role::Admin).await;
    let session = fixture.session(&admin, place.agent.id).await;
    let run = fixture.new_run(&admin, session.id);
    let run = fixture.accept(run).await;
    fixture
        .cancel(&place.owner, lease.run)
        .await
        .expect("it runs");
    let patch = UserPatch {
        status: Some(UserStatus::Disabled),
        ..UserPatch::default()
    };
    fixture.change_user(&place.owner, admin.user, patch).await;
    fixture
        .set_tenant(&place.owner, TenantStatus::Suspended)
        .await;

    let asked = situation(&fixture, place.seen(), lease.run).await;
    let orphan = situation(&fixture, place.seen(), run.id).await;

    let (asked, orphan) = (asked.expect("it is there"), orphan.expect("it is there"));
    assert!(asked.standing.cancel_requested && asked.standing.creator.may_act());
    assert!(!orphan.standing.cancel_requested && !orphan.standing.creator.may_act());
    assert!(!asked.standing.tenant_active && !orphan.standing.tenant_active);
}

/// Who does not see the run sees nothing around it.
pub async fn a_situation_is_there_for_those_who_see_the_run(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let member = fixture.user(&place.owner, Role::Member).await;
    let stranger = fixture.place().await;

    for seen in [visibility(&member), stranger.seen()] {
        assert_eq!(situation(&fixture, seen, lease.run).await, None);
    }
    let nobodys = RunId(fixture.uuid());
    assert_eq!(situation(&fixture, place.seen(), nobodys).await, None);
    let session = fixture.session(&member, place.agent.id).await;
    let own = fixture.new_run(&member, session.id);
    let own = fixture.accept(own).await;
    assert!(
        situation(&fixture, visibility(&member), own.id)
            .await
            .is_some()
    );
}

/// Who held a run, and until when it did at first, stays on record when the claim is gone.
pub async fn the_holder_of_each_attempt_stays_on_record(fixture: Fixture) {
    let (place, lease) = fixture.running().await;
    let next = fixture.taken_over(lease, owner(2)).await;
    let end = fixture.finish(next, 1);
    fixture.written(Change::Finish(end)).await;

    let events = fixture.on_record(&place, lease.run).await.events;

    let holders: Vec<(OwnerId, bool)> = events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::RunStarted {
                owner,
                lease_expires_at,
            } => Some((owner?, lease_expires_at == Some(event.at.plus(crate::TTL)))),
            _ => None,
        })
        .collect();
    assert_eq!(holders, [(owner(1), true), (owner(2), true)]);
}
