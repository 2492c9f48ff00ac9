//! In whose name a run executes: his rights are those of the present.

use std::time::Duration;

use hango_conformance::Place;
use hango_domain::access::Role;
use hango_domain::event::EventKind;
use hango_domain::people::{TenantStatus, UserStatus};
use hango_domain::run::{RequeueReason, RunErrorCode, RunState, RunStatus};
use hango_ports::identity_store::UserPatch;
use hango_ports::tool::Idempotency;
use serde_json::json;

use crate::support::{Does, World, asks, says, settings, texts};

/// A member of the tenant, with a session of his own.
async fn member(world: &World) -> Place {
    let user = world.fixture.user(&world.place.owner, Role::Member).await;
    let session = world.fixture.session(&user, world.place.agent.id).await;
    Place {
        owner: user,
        session,
        ..world.place.clone()
    }
}

async fn disable(world: &World, member: &Place) {
    let patch = UserPatch {
        status: Some(UserStatus::Disabled),
        ..UserPatch::default()
    };
    let by = &world.place.owner;
    world
        .fixture
        .change_user(by, member.owner.user, patch)
        .await;
}

fn creator_inactive(state: &RunState) -> bool {
    matches!(state, RunState::Failed { error, .. } if error.code == RunErrorCode::CreatorInactive)
}

#[tokio::test(start_paused = true)]
async fn d13_a_run_whose_creator_was_disabled_before_its_claim_fails_and_nobody_is_called() {
    let world = World::new().await;
    let member = member(&world).await;
    let run = world.run_in(&member).await;
    disable(&world, &member).await;

    let process = world.start(settings()).await;
    let record = world.ended_in(&member, run.id).await;
    process.drain().await;

    assert!(
        creator_inactive(&record.run.state),
        "{:?}",
        record.run.state
    );
    assert_eq!(world.provider.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn d13_a_run_whose_creator_is_disabled_ends_at_its_next_boundary() {
    let mut world = World::new().await;
    let takes = Does::Takes(Duration::from_secs(1));
    let tool = world.tool("slow", Idempotency::Unsafe, takes);
    world.provider.then(asks(&[("c1", "slow", json!({}))]));
    let member = member(&world).await;

    let process = world.start(settings()).await;
    let run = world.run_in(&member).await;
    world.until("the tool works", || tool.count() == 1).await;
    disable(&world, &member).await;
    let record = world.ended_in(&member, run.id).await;
    process.drain().await;

    assert!(
        creator_inactive(&record.run.state),
        "{:?}",
        record.run.state
    );
    assert_eq!(texts(&record.messages)[2], "c1: slow did c1");
    assert_eq!((record.run.iterations, world.provider.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_suspended_tenants_run_is_given_back_at_its_boundary_and_goes_on_later() {
    let mut world = World::new().await;
    let takes = Does::Takes(Duration::from_secs(1));
    let tool = world.tool("slow", Idempotency::Unsafe, takes);
    let script = &world.provider;
    script.then(asks(&[("c1", "slow", json!({}))]));
    script.then(says("It is noon."));

    let process = world.start(settings()).await;
    let run = world.run().await;
    world.until("the tool works", || tool.count() == 1).await;
    world.set_tenant(TenantStatus::Suspended).await;
    let given_back = world.given_back(run.id).await;
    let polls = world.polls_after(3).await;
    let meanwhile = world.now(run.id).await;
    world.set_tenant(TenantStatus::Active).await;
    let record = world.ended(run.id).await;
    process.drain().await;

    let reason = RequeueReason::TenantSuspended;
    let last = given_back.events.last().map(|event| event.kind.clone());
    assert_eq!(last, Some(EventKind::RunRequeued { reason }));
    assert_eq!(given_back.run.progress.resume_turn, 1);
    assert_eq!(meanwhile, given_back.run, "after {polls} claims");
    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!((world.provider.count(), tool.count()), (2, 1));
}
