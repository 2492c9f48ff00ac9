//! A deterministic simulation of several processes of hango over one store.
//!
//! Everything that executes runs is the real thing: the engines with their schedulers, drivers, renewals,
//! sweeps, polls and drains, the use cases of the API, the domain, the in-memory store. Simulated are
//! time, chance, the order in which tasks are performed, the network to the store, the provider, the
//! tools, and what befalls a process. All of that follows from a seed, so a history that went wrong can
//! be had again.
//!
//! `docs/simulation.md` tells how to use it and what it can and cannot find.

mod check;
mod dice;
mod executor;
mod ids;
mod log;
mod people;
mod plan;
mod process;
mod provider;
mod scenario;
mod search;
mod store;
mod tools;
mod world;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

pub use check::Violation;
pub use search::{Found, search};

use scenario::Scenario;
use world::World;

/// What came of one seed.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The seed.
    pub seed: u64,
    /// What was wrong; empty if nothing was.
    pub wrong: Vec<Violation>,
    /// What kinds of things happened.
    pub seen: BTreeSet<&'static str>,
    /// All that happened, one line each; empty unless it was asked for.
    pub trace: String,
}

/// Plays the history of a seed and judges it. `traced` keeps what happened.
///
/// # Panics
///
/// Where the simulation itself is broken.
#[must_use]
pub fn simulate(seed: u64, traced: bool) -> Simulated {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O needs nothing but memory");
    runtime.block_on(async {
        let world = World::new(seed);
        let playing = Scenario::play(Arc::clone(&world));
        let scenario = world.executor.perform(playing).await;
        let wrong = check::check(&world, &scenario).await;
        let trace = if traced {
            format!("{:#?}\n{}", world.plan, world.log)
        } else {
            String::new()
        };
        world.executor.end();
        Simulated {
            seed,
            wrong,
            seen: world.log.kinds(),
            trace,
        }
    })
}

impl fmt::Display for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seed = self.seed;
        writeln!(f, "seed {seed}:")?;
        for wrong in &self.wrong {
            writeln!(f, "  {:.3} s: {}", wrong.at.as_secs_f64(), wrong.what)?;
        }
        write!(
            f,
            "  to see it: cargo run --release -p hango-simulation -- --replay {seed}"
        )
    }
}
