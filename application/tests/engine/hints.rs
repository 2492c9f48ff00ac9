//! Hints between processes: who tells whom, and what happens where one is lost or the store was away.
//! Nobody polls here, so whatever happens did so because of a hint.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use hango_application::engine::EngineSettings;
use hango_application::signals::Signals;
use hango_conformance::owner;
use hango_domain::run::{ChangeKind, RunStatus};
use hango_ports::WakeUp;
use hango_ports::tool::Idempotency;
use hango_ports::wake_up::Hint;
use serde_json::json;
use tokio::sync::{Mutex, broadcast};
use tokio::time::Instant;

use crate::support::{Does, Fault, Process, Say, World, asks, says, settings};

/// A poll that no test waits for.
const NEVER: Duration = Duration::from_hours(1);

/// How soon a hint is followed: before a run's deadline, which ends what nobody cancelled.
const SOON: Duration = Duration::from_mins(1);

/// More hints than any test needs: processes that only pass them to and fro reach it.
const ENDLESS: usize = 50;

/// A process's place among its peers.
struct Peer {
    sender: broadcast::Sender<(usize, Hint)>,
    heard: Mutex<broadcast::Receiver<(usize, Hint)>>,
    me: usize,
    said: AtomicUsize,
}

fn peers<const N: usize>() -> [Arc<Peer>; N] {
    let sender = broadcast::Sender::new(ENDLESS * N);
    std::array::from_fn(|me| {
        Arc::new(Peer {
            heard: Mutex::new(sender.subscribe()),
            sender: sender.clone(),
            me,
            said: AtomicUsize::new(0),
        })
    })
}

impl Peer {
    /// How many hints this process gave.
    fn said(&self) -> usize {
        self.said.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl WakeUp for Peer {
    fn announce(&self, hint: Hint) {
        if self.said.fetch_add(1, Ordering::SeqCst) < ENDLESS {
            // An error says that nobody listens.
            drop(self.sender.send((self.me, hint)));
        }
    }

    async fn next(&self) -> Hint {
        let mut heard = self.heard.lock().await;
        loop {
            match heard.recv().await.expect("the sender lives") {
                (sender, _) if sender == self.me => {}
                (_, hint) => return hint,
            }
        }
    }
}

fn workers(workers: usize) -> EngineSettings {
    EngineSettings {
        workers,
        poll_interval: NEVER,
        reclaim_interval: NEVER,
        ..settings()
    }
}

/// An answer that takes its time, but none that a test waits for.
fn slow() -> Vec<Say> {
    std::iter::once(Say::Pause(NEVER))
        .chain(says("Done."))
        .collect()
}

/// Starts processes with so many workers each, and waits until each has looked for runs once.
async fn start<const N: usize>(world: &World, peers: &[Arc<Peer>; N], each: usize) -> Vec<Process> {
    let mut processes = Vec::new();
    for (n, peer) in (1..).zip(peers) {
        let peer = Arc::clone(peer) as Arc<dyn WakeUp>;
        let process = world.start_among(peer, owner(n), workers(each)).await;
        processes.push(process);
    }
    let looked = || world.store.asked(ChangeKind::Claim) == N;
    world.until("each has looked for runs", looked).await;
    processes
}

fn executing(processes: &[Process]) -> Vec<usize> {
    let executing = processes.iter().map(|it| it.engine.executing());
    executing.collect()
}

#[tokio::test(start_paused = true)]
async fn a_process_that_can_execute_a_run_wakes_nobody_for_it() {
    let world = World::new().await;
    world.provider.otherwise(says("Done."));
    let peers: [_; 3] = peers();
    let processes = start(&world, &peers, 32).await;

    let run = world.fixture.run(&world.place).await;
    processes[0].signals.queued();
    world.ended(run.id).await;

    // One claim took the run, and one looked for the session's next.
    let claims = || world.store.asked(ChangeKind::Claim) == 3 + 2;
    world.until("its slot is offered again", claims).await;
    assert_eq!(peers.map(|peer| peer.said()), [0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_process_without_a_free_slot_leaves_runs_to_its_peers() {
    let world = World::new().await;
    world.provider.otherwise(slow());
    let peers: [_; 3] = peers();
    let processes = start(&world, &peers, 1).await;
    let begun = Instant::now();

    for _ in 0..3 {
        world.fixture.run(&world.place(|_| {}).await).await;
        processes[0].signals.queued();
    }
    let all = || executing(&processes) == [1, 1, 1];
    world.until("each executes one", all).await;

    assert!(begun.elapsed() < SOON, "somebody had to poll");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_nobody_has_a_slot_for_is_not_passed_to_and_fro() {
    let world = World::new().await;
    world.provider.otherwise(slow());
    let peers: [_; 2] = peers();
    let processes = start(&world, &peers, 1).await;

    for _ in 0..5 {
        world.fixture.run(&world.place(|_| {}).await).await;
        processes[0].signals.queued();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    assert_eq!(executing(&processes), [1, 1]);
    let said = peers.map(|peer| peer.said());
    assert!(said.iter().sum::<usize>() <= 2 + 5, "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_process_that_works_off_a_long_queue_tells_its_peers_once() {
    let world = World::new().await;
    world.provider.otherwise(says("Done."));
    let peers: [_; 1] = peers();
    let mut last = None;
    for _ in 0..30 {
        let place = world.place(|_| {}).await;
        last = Some((world.fixture.run(&place).await, place));
    }

    let peer = Arc::clone(&peers[0]) as Arc<dyn WakeUp>;
    let process = world.start_among(peer, owner(1), workers(1)).await;
    let (run, place) = last.expect("there are runs");
    world.ended_in(&place, run.id).await;

    assert_eq!(peers[0].said(), 1);
    process.drain().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_draining_process_gives_back_is_gone_on_with_at_once() {
    let mut world = World::new().await;
    let tool = world.tool(
        "slow",
        Idempotency::Unsafe,
        Does::Takes(Duration::from_secs(1)),
    );
    world.provider.then(asks(&[("c1", "slow", json!({}))]));
    world.provider.then(says("It is noon."));
    let peers: [_; 2] = peers();
    let mut processes = start(&world, &peers, 4).await;
    let run = world.fixture.run(&world.place).await;
    processes[0].signals.queued();
    world.until("the tool works", || tool.count() == 1).await;
    let begun = Instant::now();

    processes.remove(0).drain().await;
    let record = world.ended(run.id).await;

    assert_eq!(record.run.state.status(), RunStatus::Succeeded);
    assert_eq!(record.run.attempt, 2);
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "somebody had to poll"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_process_was_told_of_and_has_not_claimed_when_it_drains_is_for_its_peers() {
    let world = World::new().await;
    world.provider.otherwise(says("Done."));
    let peers: [_; 2] = peers();
    let mut processes = start(&world, &peers, 4).await;
    let run = world.fixture.run(&world.place).await;
    let begun = Instant::now();

    // In this order, and with nothing in between.
    processes[0].signals.queued();
    processes.remove(0).drain().await;
    world.ended(run.id).await;

    assert!(begun.elapsed() < SOON, "somebody had to poll");
}

#[tokio::test(start_paused = true)]
async fn a_process_that_executes_nothing_has_its_runs_begun_and_ended_by_others() {
    let world = World::new().await;
    world.provider.otherwise(slow());
    let peers: [_; 2] = peers();
    let [api, engine] = &peers;
    let api = Signals::new(Arc::clone(api) as _);
    let engine = Arc::clone(engine) as Arc<dyn WakeUp>;
    let process = world.start_among(engine, owner(1), workers(4)).await;
    let begun = Instant::now();

    let run = world.fixture.run(&world.place).await;
    api.queued();
    let executing = || process.engine.executing() == 1;
    world.until("the run is executed", executing).await;
    let owner = &world.place.owner;
    let cancelled = world.fixture.cancel(owner, run.id).await;
    cancelled.expect("the run has not ended");
    api.cancel_requested(run.id);
    let record = world.ended(run.id).await;

    assert_eq!(record.run.state.status(), RunStatus::Cancelled);
    assert!(begun.elapsed() < SOON, "somebody had to poll");
}

#[tokio::test(start_paused = true)]
async fn a_process_that_may_have_missed_hints_looks_for_all_they_could_have_said() {
    let world = World::new().await;
    world.provider.otherwise(slow());
    let peers: [_; 2] = peers();
    let [lossy, engine] = &peers;
    let engine = Arc::clone(engine) as Arc<dyn WakeUp>;
    let process = world.start_among(engine, owner(1), workers(4)).await;
    let looked = || world.store.asked(ChangeKind::Claim) == 1;
    world.until("it has looked for runs", looked).await;
    let begun = Instant::now();

    let run = world.fixture.run(&world.place).await;
    lossy.announce(Hint::Missed);
    let executing = || process.engine.executing() == 1;
    world.until("the run is executed", executing).await;
    let owner = &world.place.owner;
    let cancelled = world.fixture.cancel(owner, run.id).await;
    cancelled.expect("the run has not ended");
    lossy.announce(Hint::Missed);
    let record = world.ended(run.id).await;

    assert_eq!(record.run.state.status(), RunStatus::Cancelled);
    assert!(begun.elapsed() < SOON, "somebody had to poll");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_was_away_is_claimed_from_soon_after_it_is_back() {
    let world = World::new().await;
    world.provider.otherwise(says("Done."));
    let process = world.start(workers(4)).await;
    let looked = || world.store.asked(ChangeKind::Claim) == 1;
    world.until("it has looked for runs", looked).await;
    world.store.spoil(ChangeKind::Claim, Fault::NotDone);
    world.store.spoil(ChangeKind::Claim, Fault::NotDone);
    let begun = Instant::now();

    let run = world.run().await;
    world.ended(run.id).await;

    assert!(
        begun.elapsed() <= Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    process.drain().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_was_away_is_swept_soon_after_it_is_back() {
    let world = World::new().await;
    world.store.spoil(ChangeKind::Reclaim, Fault::NotDone);
    let begun = Instant::now();

    let process = world.start(workers(4)).await;
    let swept = || world.store.asked(ChangeKind::Reclaim) == 2;
    world.until("the sweep is made again", swept).await;

    assert!(begun.elapsed() < SOON, "the next sweep was waited for");
    process.drain().await;
}
