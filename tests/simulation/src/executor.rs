//! Performs the tasks of all simulated processes on one thread, in an order that the seed decides.
//!
//! A [`Group`] is a process, or the world around them. A group can be held up: its tasks are not polled
//! while time and everybody else go on, and whatever woke them meanwhile finds them afterwards, as after
//! `SIGSTOP`. And it can be killed: its tasks are dropped where they are, as by `SIGKILL`.
//!
//! Time is tokio's own, paused: it moves when nothing is left to do.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures::FutureExt;
use futures::future::BoxFuture;
use hango_application::engine::{Over, Tasks};
use tokio::sync::oneshot;
use tokio::task::coop::unconstrained;

use crate::dice::Dice;

/// More polls than this without time passing: something goes round in circles.
const MOST_POLLS_AT_ONCE: u32 = 100_000;

/// Tasks that are held up, and die, together.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Group(pub(crate) u32);

impl Group {
    /// What is not part of any process: the network, the store's machine, the clients.
    pub(crate) const WORLD: Self = Self(0);
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Executor(Arc<Mutex<State>>);

struct State {
    order: Dice,
    next_id: u64,
    tasks: BTreeMap<u64, Task>,
    ready: Vec<u64>,
    /// How often each group is held up at present.
    held_up: BTreeMap<Group, u32>,
    killed: BTreeSet<Group>,
    /// Who waits for a group to go on.
    waiting: Vec<Waker>,
    driver: Option<Waker>,
    panicked: Vec<Group>,
}

struct Task {
    group: Group,
    /// `None` while it is being polled.
    work: Option<BoxFuture<'static, ()>>,
    waker: Waker,
    is_ready: bool,
}

struct TaskWaker {
    id: u64,
    executor: Executor,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let mut state = self.executor.lock();
        let Some(task) = state.tasks.get_mut(&self.id) else {
            return;
        };
        if !std::mem::replace(&mut task.is_ready, true) {
            state.ready.push(self.id);
        }
        let driver = state.driver.clone();
        drop(state);
        driver.iter().for_each(Waker::wake_by_ref);
    }
}

impl Executor {
    pub(crate) fn new(order: Dice) -> Self {
        Self(Arc::new(Mutex::new(State {
            order,
            next_id: 0,
            tasks: BTreeMap::new(),
            ready: Vec::new(),
            held_up: BTreeMap::new(),
            killed: BTreeSet::new(),
            waiting: Vec::new(),
            driver: None,
            panicked: Vec::new(),
        })))
    }

    /// Adds a task to a group; none to a group that was killed.
    pub(crate) fn spawn(&self, group: Group, work: impl Future<Output = ()> + Send + 'static) {
        let mut state = self.lock();
        if state.killed.contains(&group) {
            return;
        }
        let id = state.next_id;
        state.next_id += 1;
        let waker = Waker::from(Arc::new(TaskWaker {
            id,
            executor: self.clone(),
        }));
        let task = Task {
            group,
            // The budget is for tasks that share a thread with strangers.
            work: Some(unconstrained(work).boxed()),
            waker,
            is_ready: true,
        };
        state.tasks.insert(id, task);
        state.ready.push(id);
        let driver = state.driver.clone();
        drop(state);
        driver.iter().for_each(Waker::wake_by_ref);
    }

    /// Performs `work` to its end, and the tasks beside it.
    pub(crate) async fn perform<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let (done, mut result) = oneshot::channel();
        self.spawn(Group::WORLD, async move {
            drop(done.send(work.await));
        });
        std::future::poll_fn(|context| {
            self.poll_ready(context);
            result.poll_unpin(context)
        })
        .await
        .expect("the world does not panic")
    }

    /// Polls whatever is ready, until nothing is.
    fn poll_ready(&self, context: &Context<'_>) {
        self.lock().driver = Some(context.waker().clone());
        for _ in 0..MOST_POLLS_AT_ONCE {
            let Some((id, mut work, waker)) = self.lock().next() else {
                return;
            };
            let mut context = Context::from_waker(&waker);
            let polled = catch_unwind(AssertUnwindSafe(|| work.poll_unpin(&mut context)));
            let mut state = self.lock();
            match polled {
                Ok(Poll::Pending) => {
                    // It is gone if its group was killed meanwhile.
                    if let Some(task) = state.tasks.get_mut(&id) {
                        task.work = Some(work);
                        continue;
                    }
                }
                Ok(Poll::Ready(())) => drop(state.tasks.remove(&id)),
                Err(_) => {
                    if let Some(task) = state.tasks.remove(&id) {
                        state.panicked.push(task.group);
                    }
                }
            }
            drop(state);
            drop(work);
        }
        panic!("something goes round in circles while time stands still");
    }

    /// Holds a group up, once more.
    pub(crate) fn hold_up(&self, group: Group) {
        *self.lock().held_up.entry(group).or_default() += 1;
    }

    /// Takes one hold from a group.
    pub(crate) fn let_go(&self, group: Group) {
        let mut state = self.lock();
        let holds = state.held_up.entry(group).or_default();
        *holds = holds.saturating_sub(1);
        if *holds == 0 {
            state.held_up.remove(&group);
        }
        let driver = state.driver.clone();
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        driver.iter().chain(&waiting).for_each(Waker::wake_by_ref);
    }

    /// Drops a group's tasks where they are, for good.
    pub(crate) fn kill(&self, group: Group) {
        let mut state = self.lock();
        state.killed.insert(group);
        state.held_up.remove(&group);
        let ids: Vec<u64> = state.tasks.keys().copied().collect();
        let mut dead = Vec::new();
        for id in ids {
            if state.tasks.get(&id).is_some_and(|it| it.group == group) {
                dead.extend(state.tasks.remove(&id));
            }
        }
        drop(state);
        // What they hold wakes others as it goes.
        drop(dead);
    }

    /// Drops what is left of all groups. They hold the executor, and it holds them.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        let left = std::mem::take(&mut state.tasks);
        drop(state);
        drop(left);
    }

    /// Performs `work`, which a runtime polls by itself, only while `group` is not held up.
    pub(crate) async fn as_part_of<T>(&self, group: Group, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|context| {
            let mut state = self.lock();
            if state.held_up.contains_key(&group) {
                state.waiting.push(context.waker().clone());
                return Poll::Pending;
            }
            drop(state);
            work.as_mut().poll(context)
        })
        .await
    }

    /// The groups whose tasks panicked.
    pub(crate) fn panicked(&self) -> Vec<Group> {
        self.lock().panicked.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes one of the tasks that may be polled.
    fn next(&mut self) -> Option<(u64, BoxFuture<'static, ()>, Waker)> {
        self.ready.retain(|id| self.tasks.contains_key(id));
        let may_go_on = |id: &u64| {
            let task = self.tasks.get(id);
            task.is_some_and(|task| task.work.is_some() && !self.held_up.contains_key(&task.group))
        };
        let places: Vec<usize> = (0..self.ready.len())
            .filter(|place| may_go_on(&self.ready[*place]))
            .collect();
        if places.is_empty() {
            return None;
        }
        let place = places[self.order.below(places.len())];
        let id = self.ready.swap_remove(place);
        let task = self.tasks.get_mut(&id)?;
        task.is_ready = false;
        Some((id, task.work.take()?, task.waker.clone()))
    }
}

/// The tasks of one process.
pub(crate) struct OfProcess {
    pub(crate) executor: Executor,
    pub(crate) group: Group,
}

impl Tasks for OfProcess {
    fn spawn(&self, work: BoxFuture<'static, ()>) {
        self.executor.spawn(self.group, work);
    }

    fn spawn_apart(&self, work: BoxFuture<'static, ()>) -> std::io::Result<Over> {
        let (working, over) = oneshot::channel::<Infallible>();
        self.executor.spawn(self.group, async move {
            work.await;
            drop(working);
        });
        // An error is the end.
        Ok(Box::pin(async move {
            let Err(_) = over.await;
        }))
    }
}
