//! What happens in a simulation: a time of trouble, then calm, in which everything that was accepted has to
//! end; a last look at whether every slot works; and a drain of all processes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::join_all;
use hango_application::use_cases::{Input, RunDraft};
use hango_domain::RunId;
use hango_domain::conversation::Block;
use hango_domain::run::{Run, RunState, RunStatus};
use hango_domain::session::OnBusy;
use hango_ports::Clock;
use serde_json::Map;
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

use crate::executor::Group;
use crate::log::What;
use crate::people::{Founder, Place, Session};
use crate::plan::{BRIEF_MS, LEASE, POLL, SWEEP, TROUBLE};
use crate::process::Slot;
use crate::world::World;

/// How often the calm is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// After what time of calm what went wrong before has no effect any more: requests on their way have
/// arrived, and leases that nobody holds have run out.
const SETTLED: Duration = Duration::from_secs(6);

/// How long the last run may take, in the calm, once it may be claimed.
const BOUND: Duration = Duration::from_mins(1);

/// See the module.
pub(crate) struct Scenario {
    world: Arc<World>,
    founder: Founder,
    pub(crate) places: Vec<Place>,
    slots: Vec<Arc<Slot>>,
}

impl Scenario {
    /// Plays it; the log says what happened.
    pub(crate) async fn play(world: Arc<World>) -> Arc<Self> {
        let founder = Founder::new(&world);
        let places = vec![founder.place("north").await, founder.place("south").await];
        let slots = 1..=world.plan.processes;
        let slots = slots.map(|index| Slot::new(&world, index)).collect();
        let scenario = Arc::new(Self {
            world,
            founder,
            places,
            slots,
        });
        scenario.slots.iter().for_each(|slot| slot.start());
        scenario.trouble().await;
        scenario.calm().await;
        scenario.every_slot_works().await;
        scenario.drain().await;
        scenario
    }

    async fn trouble(self: &Arc<Self>) {
        let (world, plan) = (&self.world, self.world.plan);
        let tracker = TaskTracker::new();
        let begin = |work: futures::future::BoxFuture<'static, ()>| {
            world
                .executor
                .spawn(Group::WORLD, tracker.track_future(work));
        };
        for slot in &self.slots {
            let (scenario, slot) = (Arc::clone(self), Arc::clone(slot));
            begin(Box::pin(
                async move { scenario.troubled_process(&slot).await },
            ));
        }
        for slot in self.slots.iter().filter(|_| plan.stutter) {
            let (world, slot) = (Arc::clone(world), Arc::clone(slot));
            begin(Box::pin(async move { stutter(&world, &slot).await }));
        }
        for n in 0..plan.runs {
            let (scenario, cancels) = (Arc::clone(self), n < plan.cancels);
            begin(Box::pin(async move { scenario.client(cancels).await }));
        }
        for _ in 0..plan.people {
            let scenario = Arc::clone(self);
            begin(Box::pin(async move { scenario.people_change().await }));
        }
        let world = Arc::clone(world);
        begin(Box::pin(async move { weather(&world).await }));
        tracker.close();
        tracker.wait().await;
    }

    /// What happens to one place where a process runs.
    async fn troubled_process(&self, slot: &Slot) {
        let (dice, most) = (&self.world.dice, self.world.plan.process);
        let span = u32::try_from(TROUBLE.as_millis()).unwrap_or(0) / most.max(1);
        for _ in 0..most {
            sleep(dice.millis(0, span)).await;
            match dice.between(0, 5) {
                0 | 1 => {
                    slot.kill();
                    sleep(dice.millis(0, 1500)).await;
                    slot.start();
                }
                2 => slot.hold_up(dice.millis(200, 4500), false).await,
                3 | 4 => slot.cut_off(dice.millis(200, 4500)).await,
                _ => {
                    let within = dice.one_of(&[0, 300, 3000]);
                    slot.drain(Duration::from_millis(within)).await;
                    sleep(dice.millis(0, 500)).await;
                    slot.start();
                }
            }
        }
    }

    /// Somebody who wants something done, and perhaps thinks better of it.
    async fn client(&self, cancels: bool) {
        let dice = &self.world.dice;
        let span = u32::try_from(TROUBLE.as_millis()).unwrap_or(0);
        sleep(dice.millis(0, span * 4 / 5)).await;
        let place = &self.places[dice.below(self.places.len())];
        let session = &place.sessions[dice.below(place.sessions.len())];
        let on_busy = dice.one_of(&[
            OnBusy::Enqueue,
            OnBusy::Enqueue,
            OnBusy::Enqueue,
            OnBusy::Interrupt,
            OnBusy::Reject,
        ]);
        let slot = &self.slots[dice.below(self.slots.len())];
        let Some(run) = self.accept(slot, session, on_busy).await else {
            return;
        };
        if dice.percent(50) {
            // Refused while a run is running, so seldom it stands between an answer and its results.
            sleep(dice.millis(0, 2500)).await;
            let (caller, id) = (session.by.clone(), session.id);
            let said = Input::new(vec![Block::text("By the way.")]);
            slot.request(
                |api| async move { api.append_message(&caller, id, said, None).await.is_ok() },
            )
            .await;
        }
        if cancels {
            sleep(dice.millis(0, 2500)).await;
            let slot = &self.slots[dice.below(self.slots.len())];
            let caller = session.by.clone();
            let asked = slot
                .request(|api| async move { api.cancel_run(&caller, run, Input::new(())).await });
            if let Some(Ok(_)) = asked.await {
                self.world.note(What::CancelAccepted(run));
            }
        }
    }

    /// Asks for a run; `None` if nobody knows what came of it.
    async fn accept(&self, slot: &Slot, session: &Session, on_busy: OnBusy) -> Option<RunId> {
        let (caller, id) = (session.by.clone(), session.id);
        let draft = RunDraft {
            input: vec![Block::text("Do something.")],
            on_busy,
            metadata: Map::new(),
        };
        let asked = slot.request(|api| async move {
            api.accept_run(&caller, id, Input::new(draft), None).await
        });
        let run = asked.await?.ok()?.thing.id;
        self.world.note(What::Accepted(run));
        Some(run)
    }

    /// A tenant is suspended for a while, or a member disabled for good.
    async fn people_change(&self) {
        let dice = &self.world.dice;
        sleep(dice.millis(0, 4000)).await;
        let place = &self.places[dice.below(self.places.len())];
        if dice.percent(50) {
            self.founder.let_work(place, false).await;
            sleep(dice.millis(100, 2000)).await;
            self.founder.let_work(place, true).await;
        } else {
            self.founder.disable_member(place).await;
        }
    }

    /// Nothing goes wrong any more: what was accepted ends.
    async fn calm(&self) {
        let world = &self.world;
        world.weather.calm.store(true, Ordering::SeqCst);
        world.note(What::Calm);
        for place in &self.places {
            self.founder.let_work(place, true).await;
        }
        self.until_all_ended().await;
    }

    async fn until_all_ended(&self) {
        let world = &self.world;
        let begun = world.age();
        let mut counted_from = begun;
        let mut claimable: BTreeMap<RunId, Duration> = BTreeMap::new();
        loop {
            let (now, age) = (world.clock.now(), world.age());
            let mut open: Vec<Run> = Vec::new();
            let mut waiting: Vec<RunId> = Vec::new();
            for place in &self.places {
                let runs = world.runs_of(place.tenant).await;
                waiting.extend(self.claimable(&runs));
                open.extend(
                    runs.into_iter()
                        .filter(|run| !run.state.status().is_terminal()),
                );
            }
            if open.is_empty() {
                return;
            }
            if open
                .iter()
                .any(|run| run.available_at.is_some_and(|at| at > now))
            {
                counted_from = age;
            }
            if age > counted_from + BOUND {
                let ids: Vec<RunId> = open.iter().map(|run| run.id).collect();
                return world.note(What::Wrong(format!("runs that never end: {ids:?}")));
            }
            claimable.retain(|run, _| waiting.contains(run));
            for run in waiting {
                let since = *claimable.entry(run).or_insert(age);
                if age > begun + SETTLED && age > since + 2 * POLL + 2 * LOOK {
                    let wrong = format!("{run} waits while a slot is free");
                    return world.note(What::Wrong(wrong));
                }
            }
            for run in &open {
                if let RunState::Running { expires_at, .. } = run.state
                    && age > begun + SETTLED
                    && now.since(expires_at) > 2 * SWEEP + Duration::from_secs(1)
                {
                    let wrong = format!("{} has a lease that ran out long ago", run.id);
                    return world.note(What::Wrong(wrong));
                }
            }
            sleep(LOOK).await;
        }
    }

    /// Which of a tenant's runs somebody who has a free slot should claim now.
    fn claimable(&self, runs: &[Run]) -> Vec<RunId> {
        let engine = &self.world.plan.engine;
        let executing: usize = self.slots.iter().map(|slot| slot.executing()).sum();
        let open = |run: &&Run| !run.state.status().is_terminal();
        let running = runs
            .iter()
            .filter(|run| run.state.status() == RunStatus::Running);
        let cap = engine.running_per_tenant as usize;
        let full = cap > 0 && running.count() >= cap;
        if full || executing >= self.slots.len() * engine.workers {
            return Vec::new();
        }
        let now = self.world.clock.now();
        let is_head = |run: &&Run| {
            let mut session = runs.iter().filter(open);
            !session.any(|other| {
                other.session_id == run.session_id && other.session_no < run.session_no
            })
        };
        let due = |run: &&Run| run.available_at.is_none_or(|at| at <= now);
        let queued = runs.iter().filter(|run| run.state == RunState::Queued);
        queued
            .filter(is_head)
            .filter(due)
            .map(|run| run.id)
            .collect()
    }

    /// As many runs as there are slots are executed at once.
    async fn every_slot_works(&self) {
        let (world, engine) = (&self.world, self.world.plan.engine);
        if !world.plan.is_quiet() {
            sleep(SETTLED).await;
        }
        let slots = self.slots.len() * engine.workers;
        let of_each = slots.div_ceil(self.places.len());
        let mut asked: BTreeMap<usize, usize> = BTreeMap::new();
        for (n, place) in self.places.iter().enumerate() {
            for session in self.founder.steady_sessions(place, of_each).await {
                match self.accept(&self.slots[0], &session, OnBusy::Enqueue).await {
                    Some(_) => *asked.entry(n).or_default() += 1,
                    None => world.note(What::Wrong("a run is not accepted in the calm".to_owned())),
                }
            }
        }
        let cap = engine.running_per_tenant as usize;
        let may = |count: &usize| if cap == 0 { *count } else { cap.min(*count) };
        let expected = slots.min(asked.values().map(may).sum());
        sleep(2 * POLL + LOOK).await;
        let executing: usize = self.slots.iter().map(|slot| slot.executing()).sum();
        if executing < expected {
            let wrong = format!("{executing} runs are executed where {expected} could be");
            world.note(What::Wrong(wrong));
        }
        self.until_all_ended().await;
    }

    async fn drain(&self) {
        // What a lost answer left behind is found by the next renewal but one.
        sleep(LEASE).await;
        let drains = self
            .slots
            .iter()
            .map(|slot| slot.drain(Duration::from_secs(10)));
        join_all(drains).await;
    }
}

/// A process that is held up briefly, now and then.
async fn stutter(world: &World, slot: &Slot) {
    while world.age() < TROUBLE {
        sleep(world.dice.millis(100, 300)).await;
        slot.hold_up(world.dice.millis(1, BRIEF_MS), true).await;
    }
}

/// Storms, and steps of the store's clock.
async fn weather(world: &World) {
    let (dice, plan) = (&world.dice, world.plan);
    for _ in 0..plan.storms {
        sleep(dice.millis(0, 2500)).await;
        world.weather.storm.store(true, Ordering::SeqCst);
        world.note(What::StormBegins);
        sleep(dice.millis(50, 2800)).await;
        world.weather.storm.store(false, Ordering::SeqCst);
        world.note(What::StormEnds);
    }
    for _ in 0..plan.steps {
        sleep(dice.millis(0, 2500)).await;
        let by = dice.millis(200, 3000);
        world.clock.step(by);
        world.note(What::ClockSteps(by));
    }
}
