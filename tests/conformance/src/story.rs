//! What is told of a run that nobody holds.

use hango_domain::RunId;
use hango_domain::event::EventKind;
use hango_domain::run::{Change, RequeueReason};
use hango_ports::run_store::Story;

use crate::{Fixture, TTL, owner};

async fn story(fixture: &Fixture, run: RunId) -> Option<Story> {
    let story = fixture.stores.runs.story(run).await;
    story.expect("the store answers")
}

/// Whatever else it told, of its life there is what a trace is made of, with the holders.
pub async fn a_story_has_the_claims_the_ways_back_and_the_turns(fixture: Fixture) {
    let (place, lease, calls) = fixture.answered(1, 2).await;
    let boundary = fixture.boundary(lease, 1, &calls);
    fixture.written(Change::CompleteTurn(boundary)).await;
    fixture.clock.advance(TTL);
    assert_eq!(fixture.sweep().await, [lease.run]);
    fixture.held(lease.run, owner(2)).await;

    let told = story(&fixture, lease.run).await.expect("it is there");

    let on_record = fixture.on_record(&place, lease.run).await.events;
    let of_life =
        |kind: &EventKind| ["run.started", "run.requeued", "turn.started"].contains(&kind.name());
    let expected: Vec<_> = on_record
        .into_iter()
        .filter(|event| of_life(&event.kind))
        .collect();
    assert_eq!(told.life, expected);
    assert_eq!(told.tool_calls as usize, calls.len());
    let owners: Vec<_> = told
        .life
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::RunStarted { owner, .. } => owner,
            _ => None,
        })
        .collect();
    assert_eq!(owners, [lease.owner, owner(2)]);
    let reason = RequeueReason::LeaseExpired;
    let back = EventKind::RunRequeued { reason };
    assert!(told.life.iter().any(|event| event.kind == back));
}

/// The run and its agent are as they are on record.
pub async fn a_story_is_of_the_run_as_it_is_now(fixture: Fixture) {
    let place = fixture.place().await;
    let run = fixture.run(&place).await;
    let cancelled = fixture.cancel(&place.owner, run.id).await;

    let told = story(&fixture, run.id).await.expect("it is there");

    assert_eq!(Some(told.run), cancelled.ok());
    assert_eq!(told.agent, place.agent.snapshot());
    assert_eq!((told.life, told.tool_calls), (vec![], 0));
}

/// A run that does not exist has none.
pub async fn who_is_not_there_has_no_story(fixture: Fixture) {
    fixture.running().await;

    let told = story(&fixture, RunId(fixture.uuid())).await;

    assert_eq!(told, None);
}
