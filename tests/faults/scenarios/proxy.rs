//! The network between replicas and their database is slow, deaf or cut.

use std::time::Duration;

use super::{Scenario, Task};
use crate::cli::Takes;
use crate::database::Kind;
use crate::dice::Dice;
use crate::fault::{Fault, Hits};
use crate::history::Expect;
use crate::moment::Moment;
use crate::proxy::{Proxy, Way};
use crate::report::Report;
use crate::world::{Setup, World};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "proxy",
    about: "F14, F28, F36, F42: the network to the database is slow, deaf one way, or cut at a byte",
    kinds: &[Kind::Postgres],
    also: &[],
    takes: &[Takes::Faults, Takes::Replicas],
    run: |task| Box::pin(run(task)),
};

async fn run(task: Task) -> anyhow::Result<Report> {
    let mut setup = Setup::of(SCENARIO.name, task.seed, task.kind, task.replicas);
    // Who reaches nobody else's database has slots that nobody can use.
    setup.slots_are_free = false;
    let world = World::start(setup).await?;
    let mut dice = Dice::of(task.seed, "weather");
    let sessions = world.load.sessions(40).await?;
    let load = world.load.steady(
        &sessions,
        Duration::from_millis(200),
        Dice::of(task.seed, "load"),
    );

    for round in 0..task.faults.unwrap_or(10) {
        tokio::time::sleep(dice.millis(100, 700)).await;
        weather(&world, round, &mut dice).await?;
    }
    tokio::time::sleep(world.timing.takeover()).await;
    drop(load);
    Ok(world.finish(&Expect::SUCCESS).await?.report)
}

/// One change of the weather before one replica, until it is over.
async fn weather(world: &World, round: usize, dice: &mut Dice) -> anyhow::Result<()> {
    let place = dice.below(world.fleet.size());
    let owner = Hits::Owner(world.fleet.owner_of(place).await?);
    let from = Moment::now();
    // Now and then longer than a lease.
    let long = dice.millis(500, 4500);
    let (what, hits) = match round % 5 {
        0 => {
            let delay = dice.millis(5, 300);
            world
                .database
                .with_proxy(place, |proxy| proxy.delay(delay))?;
            tokio::time::sleep(long).await;
            world
                .database
                .with_proxy(place, |proxy| proxy.delay(Duration::ZERO))?;
            // Where there is time for two round trips in a heartbeat, leases are kept.
            let keeps = 4 * delay < world.timing.heartbeat;
            ("slow network", if keeps { Hits::Nobody } else { owner })
        }
        1 => {
            let bytes = u32::try_from(dice.between(0, 6000)).unwrap_or_default();
            world
                .database
                .with_proxy(place, |proxy| proxy.cut_after(bytes))?;
            tokio::time::sleep(Duration::from_millis(400)).await;
            ("cut at a byte", Hits::Nobody)
        }
        2 => {
            world.database.with_proxy(place, Proxy::cut_all)?;
            ("cut", Hits::Nobody)
        }
        way => {
            let ways: &[Way] = match way {
                3 => &[*dice.pick(&[Way::Up, Way::Down])],
                _ => &[Way::Up, Way::Down],
            };
            let set = |stalled| {
                world.database.with_proxy(place, |proxy| {
                    for way in ways {
                        proxy.stall(*way, stalled);
                    }
                })
            };
            set(true)?;
            tokio::time::sleep(long).await;
            set(false)?;
            ("deaf network", owner)
        }
    };
    world.fleet.note(Fault {
        what,
        from,
        until: Moment::now(),
        hits,
        held: Vec::new(),
    });
    Ok(())
}
