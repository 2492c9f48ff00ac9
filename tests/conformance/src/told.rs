//! What both sinks must bear, whoever tells them: telemetry for operators, events for watchers.
//!
//! Telling is not allowed to wait or to fail, and it may come from anywhere: from any task, from many
//! threads at once, from a thread that belongs to no runtime.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use proptest::prelude::{Strategy, any, prop};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::other_side::PATIENCE;

/// How many are told where there are many: more than any queue holds.
const MANY: usize = 20_000;

/// How many tell at once.
const THREADS: usize = 8;

/// Everything of `kinds` in any order, repeated and left out.
pub(crate) fn bears_any_order<T>(kinds: &[T], tell: impl Fn(T) + Send + Sync + 'static)
where
    T: Clone + Send + 'static,
{
    let mut runner = TestRunner::deterministic();
    let any_of_them = prop::collection::vec(any::<prop::sample::Index>(), MANY);
    let any_of_them = any_of_them.new_tree(&mut runner).expect("there are kinds");
    let order = any_of_them.current();
    let told: Vec<T> = order.iter().map(|at| at.get(kinds).clone()).collect();
    at_once(1, &told, &Arc::new(tell));
}

/// Many, told from one thread while nobody takes any.
pub(crate) fn never_waits<T>(kinds: &[T], tell: impl Fn(T) + Send + Sync + 'static)
where
    T: Clone + Send + 'static,
{
    at_once(1, kinds, &Arc::new(tell));
}

/// Many, told from threads that belong to no runtime.
pub(crate) fn bears_threads<T>(kinds: &[T], tell: impl Fn(T) + Send + Sync + 'static)
where
    T: Clone + Send + 'static,
{
    at_once(THREADS, kinds, &Arc::new(tell));
}

fn at_once<T, F>(threads: usize, kinds: &[T], tell: &Arc<F>)
where
    T: Clone + Send + 'static,
    F: Fn(T) + Send + Sync + 'static,
{
    let (done, ended) = mpsc::channel();
    for _ in 0..threads {
        let (kinds, tell, done) = (kinds.to_vec(), Arc::clone(tell), done.clone());
        thread::spawn(move || {
            kinds
                .iter()
                .cycle()
                .take(MANY / threads)
                .cloned()
                .for_each(|it| tell(it));
            done.send(()).expect("the check waits");
        });
    }
    drop(done);
    for _ in 0..threads {
        // An error is a thread that panicked, or one that waits.
        let told = ended.recv_timeout(PATIENCE);
        told.expect("telling neither waits nor panics");
    }
}
