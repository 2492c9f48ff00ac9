//! G01, G06, G22: replicas are killed at any moment and started again, while runs are asked for and
//! executed.

use std::time::Duration;

use anyhow::Context;

use super::{Scenario, Task};
use crate::cli::Takes;
use crate::database::Kind;
use crate::dice::Dice;
use crate::history::Expect;
use crate::report::Report;
use crate::world::{Setup, World};

pub(super) const KILL_STORM: Scenario = Scenario {
    name: "kill-storm",
    about: "G01: kill -9 of a replica at any moment, which starts again after 0 to 3 s",
    kinds: &[Kind::Postgres],
    also: &[Kind::Sqlite],
    takes: &[Takes::Runs, Takes::Faults, Takes::Replicas],
    run: |task| {
        let runs = task.runs.unwrap_or(100);
        let storm = Storm {
            name: KILL_STORM.name,
            runs,
            kills: task.faults.unwrap_or(25),
            sessions: runs.div_ceil(4).min(50),
            at_once: false,
        };
        Box::pin(storm.run(task))
    },
};

pub(super) const SESSION_SERIAL: Scenario = Scenario {
    name: "session-serial",
    about: "G06: the runs of few sessions, all asked for at once, while replicas are killed",
    kinds: &[Kind::Postgres],
    also: &[Kind::Sqlite],
    takes: &[Takes::Runs, Takes::Faults, Takes::Replicas],
    run: |task| {
        let runs = task.runs.unwrap_or(48);
        let storm = Storm {
            name: SESSION_SERIAL.name,
            runs,
            kills: task.faults.unwrap_or(6),
            sessions: runs.div_ceil(40).max(6),
            at_once: true,
        };
        Box::pin(storm.run(task))
    },
};

/// A storm.
struct Storm {
    name: &'static str,
    runs: usize,
    kills: usize,
    sessions: usize,
    /// Whether all runs are asked for at the beginning, or between the kills.
    at_once: bool,
}

impl Storm {
    async fn run(self, task: Task) -> anyhow::Result<Report> {
        let setup = Setup::of(self.name, task.seed, task.kind, task.replicas);
        let world = World::start(setup).await?;
        let mut dice = Dice::of(task.seed, "kills");
        let sessions = world.load.sessions(self.sessions).await?;

        let mut restarts = Vec::new();
        for kill in 0..self.kills {
            let so_far = if self.at_once { self.kills } else { kill + 1 };
            while world.load.begun() * self.kills < so_far * self.runs {
                let session: &String = dice.pick(&sessions);
                drop(world.load.begin(session));
            }
            tokio::time::sleep(dice.millis(100, 900)).await;
            let victim = victim(&world, &mut dice).await;
            world.fleet.kill(victim).await?;
            // Whoever has a file to himself is missed at once.
            let away = if world.fleet.size() > 1 { 3000 } else { 300 };
            let (fleet, away) = (world.fleet.clone(), dice.millis(0, away));
            restarts.push(tokio::spawn(async move {
                tokio::time::sleep(away).await;
                fleet.start(victim).await
            }));
        }
        for restart in restarts {
            restart.await.context("a restart")??;
        }

        let timing = world.timing;
        let mut outcome = world.finish(&Expect::SUCCESS).await?;
        outcome.must_recover(timing);
        Ok(outcome.report)
    }
}

/// Somebody who listens, and is not the last one.
pub(super) async fn victim(world: &World, dice: &mut Dice) -> usize {
    let least = world.fleet.size().min(2);
    loop {
        let listening = world.fleet.listening();
        if listening.len() >= least {
            return *dice.pick(&listening);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
