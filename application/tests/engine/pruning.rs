//! What is old is removed, step by step: runs and sessions only where an operator wants that.

use std::time::Duration;

use hango_application::engine::EngineSettings;
use hango_conformance::owner;
use hango_domain::RunId;
use hango_domain::retention::Retention;
use hango_domain::run::Change;
use hango_ports::Clock as _;
use hango_ports::run_store::Pruned;

use crate::support::{Say, World, says, settings};

/// How long things are kept here, and how often old ones are looked for then.
const KEPT: Duration = Retention::LEAST;
const LOOK: Duration = Duration::from_secs(3);

/// An engine that keeps nothing for long.
fn forgetful() -> EngineSettings {
    EngineSettings {
        retention: Retention::new(KEPT),
        ..settings()
    }
}

/// Whether the run is there.
async fn is_there(world: &World, run: RunId) -> bool {
    let runs = &world.fixture.stores.runs;
    let found = runs.find(world.place.seen(), run).await;
    found.expect("reads work").is_some()
}

/// Waits until the store was asked so often to remove what is old.
async fn asked(world: &World, times: usize) {
    let asked = || world.store.prunes().len() >= times;
    world.until("old things are looked for", asked).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_and_its_session_are_removed_soon_after_they_have_become_old() {
    let world = World::new().await;
    world.provider.then(says("It is noon."));
    let process = world.start(forgetful()).await;
    let run = world.run().await;
    let record = world.ended(run.id).await;
    let ended = record.run.state.finished_at().expect("it ended");

    let both = || {
        let all = world.store.prunes();
        let gone = all.iter().filter_map(|it| it.pruned);
        gone.filter(|it| *it != Pruned::default()).count() == 2
    };
    world.until("both are removed", both).await;
    process.drain().await;

    let kept = world.store_clock.now().since(ended);
    assert!(kept >= KEPT, "{kept:?}");
    assert!(kept <= KEPT + LOOK + Duration::from_secs(1), "{kept:?}");
    assert!(!is_there(&world, run.id).await);
    let sessions = &world.fixture.stores.sessions;
    let session = sessions.find(world.place.seen(), run.session_id).await;
    assert_eq!(session.expect("reads work"), None);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_keeps_everything_removes_the_answers_of_another_day_alone() {
    let world = World::new().await;
    let (fixture, place) = (&world.fixture, &world.place);
    let run = fixture.run(place).await;
    let lease = fixture.held(run.id, owner(9)).await;
    let end = Change::Finish(fixture.finish(lease, 1));
    fixture.written(end).await;
    let new = fixture.new_session(&place.owner, place.agent.id);
    let audit = fixture.audit(&place.owner, "session.create", new.id.0);
    let once = Some(fixture.once(&place.owner, "key"));
    let made = fixture.stores.sessions.create(new, audit, once).await;
    made.expect("the agent takes it");
    world.clock.advance(Duration::from_hours(24 * 366));

    let process = world.start(settings()).await;
    asked(&world, 2).await;
    process.drain().await;

    let pruned: Vec<_> = world.store.prunes().iter().map(|it| it.pruned).collect();
    let answers = |answers| {
        Some(Pruned {
            answers,
            ..Pruned::default()
        })
    };
    assert_eq!(pruned, [answers(1), answers(0)]);
    assert!(is_there(&world, run.id).await);
}

#[tokio::test(start_paused = true)]
async fn steps_follow_each_other_with_a_pause_until_nothing_is_left() {
    let world = World::new().await;
    for _ in 0..300 {
        let run = world.fixture.run(&world.place).await;
        let lease = world.fixture.held(run.id, owner(9)).await;
        let end = Change::Finish(world.fixture.finish(lease, 1));
        world.fixture.written(end).await;
    }
    world.clock.advance(KEPT);

    let process = world.start(forgetful()).await;
    asked(&world, 5).await;
    process.drain().await;

    let prunes = &world.store.prunes()[..5];
    let runs: Vec<_> = prunes.iter().map(|it| it.pruned).collect();
    let pruned = |runs, sessions| {
        Some(Pruned {
            runs,
            sessions,
            ..Pruned::default()
        })
    };
    // Of 8 rows each, and a session of 601.
    let expected = [
        pruned(125, 0),
        pruned(125, 0),
        pruned(50, 0),
        pruned(0, 1),
        pruned(0, 0),
    ];
    assert_eq!(runs, expected);
    for pair in prunes.windows(2) {
        assert!(pair[1].at - pair[0].at >= Duration::from_millis(100));
        assert_eq!(pair[1].request, pair[0].request);
    }
    let took = prunes[4].at - prunes[0].at;
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_asked_again_at_the_next_look() {
    let world = World::new().await;
    world.clock.advance(KEPT);
    world.store.set_down(true);
    let process = world.start(forgetful()).await;
    asked(&world, 2).await;
    world.store.set_down(false);

    asked(&world, 4).await;
    process.drain().await;

    let prunes = world.store.prunes();
    let down = prunes.iter().take_while(|it| it.pruned.is_none());
    let down: Vec<_> = down.map(|it| it.at).collect();
    assert!(down.len() >= 2, "{prunes:?}");
    assert!(down[1] - down[0] >= LOOK, "{prunes:?}");
    let removed = prunes[down.len()].pruned.map(|it| it.sessions);
    assert_eq!(removed, Some(1), "{prunes:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_looked_for_in_a_drain() {
    let world = World::new().await;
    world.provider.otherwise(vec![Say::Hang]);
    let process = world.start(forgetful()).await;
    world.run().await;
    let executing = || process.engine.executing() == 1;
    world.until("a run is executed", executing).await;
    asked(&world, 2).await;

    let (before, drained) = (world.store.prunes().len(), world.store_clock.now());
    process.engine.drain(LOOK * 10).await;

    assert!(world.store_clock.now().since(drained) >= LOOK * 10);
    assert_eq!(world.store.prunes().len(), before);
}
