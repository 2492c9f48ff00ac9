//! What some runs cost, counted from just before the first to just after the last of them.

use std::time::Duration;

use crate::database::{Cost, Counters, Database, Wal};
use crate::figures::float;
use crate::machine::Ticks;
use crate::provider::Model;
use crate::stand::Stand;
use crate::wire::{Counted, Wire};

/// What some runs cost together.
pub(super) struct Window {
    pub(super) runs: usize,
    pub(super) from: Counters,
    pub(super) to: Counters,
    pub(super) wal: Wal,
    pub(super) own: Ticks,
    pub(super) counted: Counted,
    pub(super) statements: Vec<Cost>,
}

/// The same figure of text runs and of runs with ten tool turns.
#[derive(Clone, Copy, Default)]
pub(super) struct Pair {
    pub(super) text: f64,
    pub(super) tools: f64,
}

impl Pair {
    /// What each of the ten further turns costs.
    pub(super) fn turn(self) -> f64 {
        (self.tools - self.text) / float(Model::TOOLS.tools)
    }
}

/// Executes one run in each session.
pub(super) async fn window(
    stand: &Stand,
    database: &mut Database,
    wire: &Wire,
    sessions: &[String],
) -> anyhow::Result<Window> {
    database.count_statements().await?;
    let (before, own, from) = (wire.counted(), stand.cpu()?, database.counters().await?);
    stand.one_by_one(sessions).await?;
    // What is done behind the last answer is of the last run.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut to = database.counters().await?;
    let (counted, own) = (wire.counted() - &before, stand.cpu()? - own);
    let wal = database.wal_between(&from, &to).await?;
    let statements = database.statements().await?;
    database.settle().await;
    to.commits = database.counters().await?.commits;
    Ok(Window {
        runs: sessions.len(),
        from,
        to,
        wal,
        own,
        counted,
        statements,
    })
}
