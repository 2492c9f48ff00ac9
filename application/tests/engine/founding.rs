//! Criteria of the founding documents that need the whole engine to be seen in one piece.

use std::time::Duration;

use hango_conformance::{Place, owner};
use hango_domain::access::Role;
use hango_domain::conversation::Block;
use hango_domain::model::{Stop, StreamEvent};
use hango_domain::run::{RunErrorCode, RunStatus};
use hango_ports::tool::Idempotency;
use serde_json::json;

use crate::support::{Does, Say, World, asks, failed_with, says, settings, texts};

#[tokio::test(start_paused = true)]
async fn an_owners_run_on_a_members_session_executes_with_the_sessions_history() {
    let world = World::new().await;
    world.provider.then(says("Hello, member."));
    world.provider.then(says("Hello, owner."));
    let member = world.fixture.user(&world.place.owner, Role::Member).await;
    let session = world.fixture.session(&member, world.place.agent.id).await;
    let as_member = Place {
        owner: member,
        session: session.clone(),
        ..world.place.clone()
    };
    let as_owner = Place {
        session,
        ..world.place.clone()
    };
    let process = world.start(settings()).await;
    let before = world.run_in(&as_member).await;
    world.ended_in(&as_member, before.id).await;

    let run = world.run_in(&as_owner).await;
    let record = world.ended_in(&as_owner, run.id).await;
    process.drain().await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    let asked = texts(&world.provider.calls()[1].asked.messages);
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert!(asked[1].contains("Hello, member."), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_paused_turn_is_not_resumed_and_the_runs_error_names_it() {
    let world = World::new().await;
    let text = StreamEvent::Text {
        index: 0,
        text: "Let me think".to_owned(),
    };
    let pause = StreamEvent::Stop(Stop::Unsupported("pause_turn".to_owned()));
    world
        .provider
        .then(vec![Say::Event(text), Say::Event(pause)]);
    let process = world.start(settings()).await;

    let run = world.run().await;
    let record = world.ended(run.id).await;
    process.drain().await;

    let code = failed_with(&record.run.state);
    assert_eq!(code, Some(RunErrorCode::UnsupportedStop));
    let message = record.run.state.error().map(|error| error.message.as_str());
    assert!(message.is_some_and(|message| message.contains("pause_turn")));
    assert_eq!(world.provider.count(), 1);
    let stored: Vec<_> = record
        .messages
        .iter()
        .map(|message| (message.partial, message.content.clone()))
        .collect();
    let kept = (true, vec![Block::text("Let me think")]);
    assert_eq!(stored, [(false, run.input.clone()), kept]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_holders_run_goes_on_behind_its_completed_turn_when_the_lease_ran_out() {
    let mut world = World::new().await;
    let tool = world.tool("count", Idempotency::Unsafe, Does::Returns);
    world.provider.then(asks(&[("c1", "count", json!({}))]));
    world.provider.then(vec![Say::Hang]);
    world.provider.then(says("Counted."));
    let mut settings = settings();
    settings.lease_ttl = Duration::from_mins(1);
    settings.heartbeat = Duration::from_secs(20);
    settings.reclaim_interval = Duration::from_millis(10);
    settings.poll_interval = Duration::from_millis(10);
    let first = world.start_as(owner(1), settings).await;
    let run = world.run().await;
    let in_second_turn = || world.provider.count() == 2;
    world
        .until("the second turn is asked for", in_second_turn)
        .await;
    drop(first);

    let second = world.start_as(owner(2), settings).await;
    let before = world.fixture.on_record(&world.place, run.id).await.run;
    world.clock.advance(settings.lease_ttl);
    let record = world.ended(run.id).await;
    second.drain().await;

    assert_eq!(before.state.status(), RunStatus::Running);
    assert_eq!(before.progress.resume_turn, 1);
    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!((record.run.attempt, record.run.iterations), (2, 2));
    assert_eq!((world.provider.count(), tool.count()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_run_is_queued_then_running_then_succeeded() {
    let world = World::new().await;
    let slowly = std::iter::once(Say::Pause(Duration::from_secs(1))).chain(says("Done."));
    world.provider.then(slowly.collect());
    let process = world.start(settings()).await;
    let queued = world.run().await;
    let run = queued.id;
    world
        .until("it is asked for", || world.provider.count() == 1)
        .await;
    let running = world.fixture.on_record(&world.place, run).await.run;
    let ended = world.ended(run).await.run;
    process.drain().await;

    let seen = [queued, running, ended].map(|run| run.state.status());
    assert_eq!(
        seen,
        [RunStatus::Queued, RunStatus::Running, RunStatus::Succeeded]
    );
}
